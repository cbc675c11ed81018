"""Speed and memory by row length, vocabulary size, number of objectives and processes.

    python -m benchmarks.race.scaling CORPUS --out results [--size base]

One point is one contestant of the race in a process of its own. A step has the same number of
tokens at every row length (one row, where that is more). Writes scaling-MACHINE.json after each
point and a figure, scaling-MACHINE.svg; a point that is in the file is not measured again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.race import machine
from benchmarks.race.run import HERE, make_model

MIXES = {
    1: "mlm",
    2: "mlm tlm",
    3: "mlm tlm camlm",
    4: "mlm tlm camlm moco",
    5: "mlm tlm camlm moco btmlm",
    6: "mlm tlm camlm moco btmlm cooccurrence",
}
"""Number of objectives -> their names; half of the tokens are text, half pairs."""

_SHAPE = ("size", "vocabulary", "rows", "row_length")
"""Settings that all points of a file share, except the one that is varied."""


def mix(names: list[str]) -> str:
    """A recipe of these objectives, as YAML."""
    text = [name for name in names if name in ("mlm", "btmlm", "cooccurrence")]
    pairs = [name for name in names if name not in text]
    share = 0.5 if pairs else 1.0
    lines = [
        "name: scaling",
        f"summary: {' + '.join(names)}",
        "model: {init_from: none, dropout: 0.1}",
        "stages:",
        "  - steps: 1000",
        "    streams:",
        f"      text: {{objectives: [{', '.join(text)}], share: {share}, across_documents: true}}",
    ]
    if pairs:
        lines.append(f"      parallel: {{objectives: [{', '.join(pairs)}], share: 0.5}}")
    return "\n".join(lines)


def point(given: argparse.Namespace, recipe: str, *, processes: int = 1, **change: int) -> Any:
    """The measurements of one contestant, or the last line of its error."""
    settings = {**vars(given), **change}
    asked = argparse.Namespace(**settings)
    with tempfile.TemporaryDirectory() as folder:
        make_model(Path(folder), asked)
        start = [sys.executable, "-m", "benchmarks.race.contestants"]
        if processes > 1:
            start[1:2] = ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", "-m"]
        command = [*start, "isoglot", str(given.corpus), folder, "--recipe", recipe]
        for name in ("rows", "micro_rows", "row_length", "steps", "warm_up", "workers"):
            command += [f"--{name.replace('_', '-')}", str(settings[name])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(given: argparse.Namespace, file: Path) -> dict[str, dict[str, Any]]:
    """Measure the points that the file does not have yet; each is written when it is done."""
    tokens, mlm = given.rows * given.row_length, f"{HERE}/recipes/mlm.yaml"
    shape = {name: getattr(given, name) for name in _SHAPE}
    told = {"shape": shape, "found": {}}
    if file.is_file():
        told = json.loads(file.read_text(encoding="utf-8"))
        if told["shape"] != shape:
            raise SystemExit(f"{file} is of {told['shape']}. Name another folder with --out.")
    found: dict[str, dict[str, Any]] = told["found"]

    def reach(series: str, at: int, recipe: str, **change: int) -> None:
        points = found.setdefault(series, {})
        if "error" in points.get(str(at), {"error": "not measured yet"}):
            points[str(at)] = point(given, recipe, **change)
            file.write_text(json.dumps(told, indent=1), encoding="utf-8")
        print(f"{series:<12} {at:>8}", points[str(at)], flush=True)

    for length in given.lengths:
        rows = max(1, tokens // length)
        micro = max(1, given.micro_rows * given.row_length // length)
        reach("row length", length, mlm, row_length=length, rows=rows, micro_rows=micro)
    for words in given.words:
        reach("words", words, mlm, vocabulary=words)
    with tempfile.TemporaryDirectory() as folder:
        for number in given.mixes:
            path = Path(folder) / f"{number}.yaml"
            path.write_text(mix(MIXES[number].split()), encoding="utf-8")
            reach("objectives", number, str(path))
    for processes in given.processes:
        reach("processes", processes, mlm, processes=processes)
    return found


def plot(found: dict[str, dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(found), figsize=(3.2 * len(found), 5), squeeze=False)
    for column, (series, points) in enumerate(found.items()):
        good = {
            int(at): one
            for at, one in sorted(points.items(), key=lambda item: int(item[0]))
            if "error" not in one
        }
        for row, (key, label) in enumerate(
            [("tokens_per_second", "tokens/s"), ("peak_gib", "peak GiB")]
        ):
            axis = axes[row][column]
            axis.plot(list(good), [one[key] for one in good.values()], marker="o")
            axis.set_ylim(bottom=0)
            axis.set_xlabel(series)
            axis.set_ylabel(label)
            if series in ("row length", "words"):
                axis.set_xscale("log", base=2)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--size", default="base")
    parser.add_argument("--vocabulary", type=int, default=250_002)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument(
        "--micro-rows", type=int, help="rows of a micro-batch; none: all rows of a step"
    )
    parser.add_argument("--row-length", type=int, default=512)
    parser.add_argument("--lengths", nargs="*", type=int, default=[128, 512, 2048, 8192])
    parser.add_argument("--words", nargs="*", type=int, default=[32_000, 64_000, 128_000, 250_002])
    parser.add_argument("--mixes", nargs="*", type=int, default=list(MIXES), help="objectives")
    parser.add_argument("--processes", nargs="*", type=int, default=[1])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warm-up", type=int, default=6)
    parser.add_argument("--workers", type=int, default=8)
    given = parser.parse_args()
    given.corpus = given.corpus.resolve()
    given.micro_rows = given.micro_rows or given.rows
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"scaling-{machine.name()}.json"
    plot(measure(given, path), path.with_suffix(".svg"))


if __name__ == "__main__":
    main()

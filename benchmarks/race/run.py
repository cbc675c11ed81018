"""Compare the speed of Isoglot with that of transformers' Trainer on this machine.

    python -m benchmarks.race.run CORPUS --out results [--size base] [--vocabulary 250002]

Same text, same initial weights, same tokens per step, each contestant in a process of its own.
Padding is not counted. The share of the peak is the model's FLOP/s (`flops.py`) over those of large
matrix products on this machine. Quote ratios. Writes race-MACHINE.json after each contestant and
prints a table; a contestant that is in the file, with the same shapes, does not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.race import machine
from benchmarks.race.same_loss import same_loss

HERE = Path(__file__).parent
CONTESTANTS: dict[str, list[str]] = {
    "rows: Trainer, default flags": ["trainer", "--input", "rows"],
    "rows: Trainer, best flags": ["trainer-best", "--input", "rows"],
    "rows: Trainer, best flags, bf16 on a CPU": ["trainer-best", "--bf16", "--input", "rows"],
    "rows: Isoglot": ["isoglot", "--recipe", f"{HERE}/recipes/mlm.yaml"],
    "rows: Isoglot, bf16 on a CPU": [
        "isoglot", "--bf16", "--recipe", f"{HERE}/recipes/mlm.yaml"
    ],
    "rows: Isoglot, deterministic": [
        "isoglot", "--deterministic", "--recipe", f"{HERE}/recipes/mlm.yaml"
    ],
    "pairs: Trainer, default flags": ["trainer", "--input", "pairs"],
    "pairs: Trainer, best flags": ["trainer-best", "--input", "pairs"],
    "pairs: Trainer, best flags, not compiled": ["trainer-best", "--eager", "--input", "pairs"],
    "pairs: Trainer, best flags, bf16 on a CPU": ["trainer-best", "--bf16", "--input", "pairs"],
    "pairs: Isoglot": ["isoglot", "--recipe", f"{HERE}/recipes/tlm.yaml"],
    "pairs: Isoglot, bf16 on a CPU": [
        "isoglot", "--bf16", "--recipe", f"{HERE}/recipes/tlm.yaml"
    ],
    "mix: ernie-m, first stage": ["isoglot", "--recipe", "ernie-m", "--stage", "0"],
    "mix: ernie-m, second stage": ["isoglot", "--recipe", "ernie-m", "--stage", "1"],
    "mix: ppa": ["isoglot", "--recipe", "ppa"],
    "mix: xlm": ["isoglot", "--recipe", "xlm"],
}  # fmt: skip


def make_model(folder: Path, given: argparse.Namespace) -> None:
    """Write the weights that all contestants start from."""
    import torch
    from transformers import XLMRobertaForMaskedLM

    from isoglot.corpus import Corpus
    from isoglot.models.config import ModelConfig
    from isoglot.models.loading import scratch_config

    torch.manual_seed(0)
    settings = ModelConfig(size=given.size, max_positions=given.row_length)
    shape = scratch_config(settings, vocabulary_size=given.vocabulary, pad=1, cls=0, sep=2)
    XLMRobertaForMaskedLM(shape).save_pretrained(folder)
    shutil.copytree(Corpus.open(given.corpus).tokenizer_folder, folder, dirs_exist_ok=True)


def run_one(name: str, model: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Run one contestant; when out of memory, again with smaller micro-batches."""
    command = [sys.executable, "-m", "benchmarks.race.contestants", *CONTESTANTS[name]]
    command[4:4] = [str(given.corpus), str(model)]
    for setting in ("rows", "row_length", "steps", "warm_up", "workers"):
        command += [f"--{setting.replace('_', '-')}", str(getattr(given, setting))]
    for setting in given.set:
        command += ["--set", setting]
    if given.profile:
        command += ["--profile", str(kernels_file(given.out, name))]
    micro_rows = given.micro_rows or given.rows
    while True:
        done = subprocess.run(
            [*command, "--micro-rows", str(micro_rows)],
            capture_output=True, text=True, check=False, env=os.environ,
        )  # fmt: skip
        if done.returncode == 0:
            return {"micro_rows": micro_rows, **json.loads(done.stdout.strip().splitlines()[-1])}
        if "out of memory" not in done.stderr.lower() or micro_rows % 2:
            return {"error": done.stderr.strip().splitlines()[-1]}
        micro_rows //= 2


def kernels_file(folder: Path, name: str) -> Path:
    """The file of a contestant's kernel profile."""
    words = "".join(letter if letter.isalnum() else " " for letter in name).split()
    return folder / f"kernels-{'-'.join(words)}-{machine.name()}.txt"


def chosen(name: str, words: list[str]) -> bool:
    """Is a contestant selected by its name, or by a word in it?"""
    return not words or any(word == name if word in CONTESTANTS else word in name for word in words)


def finished(path: Path, shape: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The measurements of contestants that have run with these shapes already."""
    if not path.is_file():
        return {}
    told = json.loads(path.read_text(encoding="utf-8"))
    if told["shape"] != shape:
        raise SystemExit(f"{path} is of {told['shape']}. Name another folder with --out.")
    return {name: one for name, one in told["found"].items() if "error" not in one}


def table(found: dict[str, dict[str, Any]]) -> str:
    lines = [
        "| | micro-batch rows | tokens/s | vs. Trainer | peak GiB | share of matmul peak |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name in [name for name in CONTESTANTS if name in found]:
        one = found[name]
        if "error" in one:
            lines.append(f"| {name} | failed: {one['error']} | | | | |")
            continue
        base = found.get(f"{name.split(':')[0]}: Trainer, default flags", {})
        ratio = one["tokens_per_second"] / base["tokens_per_second"] if "step_ms" in base else None
        lines.append(
            f"| {name} | {one['micro_rows']} | {one['tokens_per_second']:,.0f} "
            f"| {f'{ratio:.2f}×' if ratio else ''} "
            f"| {one['peak_gib']:.1f} | {100 * one['operations_per_second'] / one['peak']:.1f} % |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument(
        "--only", nargs="*", default=[], help="these contestants, or those whose name has a word"
    )
    parser.add_argument("--size", default="base")
    parser.add_argument("--vocabulary", type=int, default=250_002)
    parser.add_argument("--rows", type=int, default=128, help="rows of a step")
    parser.add_argument("--row-length", type=int, default=512)
    parser.add_argument("--micro-rows", type=int, help="most rows of a micro-batch; none: all")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=8)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--set", action="append", default=[], help="a setting of Isoglot's")
    parser.add_argument("--profile", action="store_true", help="also write kernel profiles")
    given = parser.parse_args()
    given.corpus = given.corpus.resolve()
    peak = machine.matmul_peak()
    print(f"{machine.name()}: matrix products at {peak / 1e12:.1f} TFLOP/s", flush=True)
    path = given.out / f"race-{machine.name()}.json"
    settings = ("size", "vocabulary", "rows", "row_length", "set")
    shape = {name: getattr(given, name) for name in settings}
    found = finished(path, shape)
    # of this call: another call may have measured another peak, or more steps
    measured = {"peak": peak, "steps": given.steps, "warm_up": given.warm_up}
    with tempfile.TemporaryDirectory() as folder:
        make_model(Path(folder), given)
        losses = same_loss(Path(folder), given.corpus, given.row_length)
        print("loss of one batch: Trainer's {:.5f}, Isoglot's {:.5f}".format(*losses))
        given.out.mkdir(parents=True, exist_ok=True)
        for name in CONTESTANTS:
            if "on a CPU" in name and machine.on_gpu():
                continue
            done = name in found and (not given.profile or kernels_file(given.out, name).is_file())
            if done or not chosen(name, given.only):
                continue
            found[name] = {**measured, **run_one(name, Path(folder), given)}
            print(f"{name:<34}", found[name], flush=True)
            told = {"shape": shape, "losses": losses, "found": found}
            path.write_text(json.dumps(told, indent=1), encoding="utf-8")
    print(
        f"\n{given.size}, vocabulary {given.vocabulary:,}, {given.rows} x {given.row_length} tokens"
    )
    print(table(found))


if __name__ == "__main__":
    main()

"""Translation without translations on real text: one close pair and one distant one.

    python -m benchmarks.unmt.real_text DATA unmt.tar.xz      where the data is
    python -m benchmarks.unmt.real unmt.tar.xz WORK           where the accelerator is

Prepares each pair's text (a vocabulary of its own), trains every recipe × seed, translates the
tests and prints BLEU. What has finished is not run again; --minutes stops in time, and the next
call goes on from the checkpoint. A small machine can make less of it: --set model.hidden_size=128.
"""

from __future__ import annotations

import argparse
import tarfile
import time
from itertools import product
from pathlib import Path

from benchmarks.unmt.cell import run_cells, table

from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig

RECIPES = Path(__file__).parent / "recipes"
USUAL = ("real-mass", "real-mass+gc", "real-none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--pairs", nargs="+", default=["en-de", "ne-en"])
    parser.add_argument("--recipes", nargs="+", default=list(USUAL))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--parallel", type=int, default=1, help="trainings at a time")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--vocabulary", type=int, default=16_000)
    parser.add_argument("--lines", type=int, help="of each text and test, to try things out")
    parser.add_argument("--share", type=float, default=1.0, help="of the steps of every stage")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    arguments = parser.parse_args()
    until = time.time() + 60 * arguments.minutes
    work: Path = arguments.work
    raw = work / "raw"
    if not raw.is_dir():
        with tarfile.open(arguments.archive) as packed:
            packed.extractall(raw, filter="data")
    cells = []
    for pair in arguments.pairs:
        corpus, tests = prepared(raw / pair, work / pair, arguments.vocabulary, arguments.lines)
        for name, seed in product(arguments.recipes, arguments.seeds):
            cells.append(
                {
                    "recipe": str(RECIPES / f"{name}.yaml"),
                    "corpus": corpus,
                    "tests": tests,
                    "folder": work / pair / f"{name}-seed{seed}",
                    "seed": seed,
                    "settings": arguments.settings,
                    "share": arguments.share,
                    "until": until,
                }
            )
    run_cells(cells, arguments.parallel)
    for pair in arguments.pairs:
        print(f"\n{pair}\n{table(sorted((work / pair).glob('*-seed*')))}\n")


def prepared(
    raw: Path, folder: Path, vocabulary: int, most: int | None
) -> tuple[Path, dict[str, Path]]:
    """The corpus of a pair, made if missing, and its tests."""
    if most is not None:
        raw = _shortened(raw, folder / "raw", most)
    codes = sorted(file.stem for file in (raw / "text").glob("*.txt"))
    config = PrepareConfig(
        sources={
            "text": SourceConfig(
                kind="text",
                format="lines",
                files={code: (f"text/{code}.txt",) for code in codes},
            )
        },
        tokenizer=TokenizerConfig(
            vocab_size=vocabulary, byte_fallback=False, character_coverage=1.0
        ),
    )
    prepare(config, folder / "corpus", base=raw)
    pair = raw.name if most is None else folder.name
    tests = {f"{file.stem}:{pair}": file for file in sorted((raw / "test").glob("*.tsv"))}
    return folder / "corpus", tests


def _shortened(raw: Path, folder: Path, most: int) -> Path:
    """The first lines of every file."""
    for file in raw.rglob("*.*"):
        if file.is_file():
            short = folder / file.relative_to(raw)
            short.parent.mkdir(parents=True, exist_ok=True)
            lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
            short.write_text("".join(lines[:most]), encoding="utf-8")
    return folder


if __name__ == "__main__":
    main()

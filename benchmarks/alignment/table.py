"""The study's tables, in Markdown, from WORK/results/*.json.

    python -m benchmarks.alignment.table WORK [--layer 4] [--by centered]

Accuracy@1 in percent, mean over both directions; ± is the standard deviation over seeds. `best` is
at the layer with the best mean over languages and seeds of that recipe and test, so it is chosen on
the test and flatters every recipe a little; `layer N` is the same layer for all.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Found(NamedTuple):
    """One accuracy of one cell."""

    recipe: str
    seed: int
    test: str
    layer: int
    language: str
    value: float


class Study:
    """All cells of a folder of results."""

    def __init__(self, folder: Path, way: str) -> None:
        self.cells: list[dict[str, Any]] = [
            json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))
        ]
        self.found = list(_found(self.cells, way))
        self.tests = list(dict.fromkeys(found.test for found in self.found))
        self.layers = sorted({found.layer for found in self.found})
        self.languages = list(dict.fromkeys(found.language for found in self.found))
        # the checkpoint first, then from the worst to the best
        self.recipes = sorted(
            {cell["recipe"] for cell in self.cells},
            key=lambda recipe: (
                recipe != "checkpoint",
                self.by_seed(recipe, self.tests[0], self.best(recipe, self.tests[0]))[0],
            ),
        )

    def by_seed(
        self, recipe: str, test: str, layer: int, language: str | None = None
    ) -> tuple[float, float | None]:
        """Mean and standard deviation over seeds of the mean over languages, or of one language."""
        seeds: dict[int, list[float]] = defaultdict(list)
        for found in self.found:
            if (found.recipe, found.test, found.layer) == (recipe, test, layer) and (
                language in (None, found.language)
            ):
                seeds[found.seed].append(found.value)
        values = [mean(of) for of in seeds.values()]
        return mean(values), stdev(values) if len(values) > 1 else None

    def best(self, recipe: str, test: str) -> int:
        """The layer with the best mean; the lower of equals."""
        return max(self.layers, key=lambda layer: (self.by_seed(recipe, test, layer)[0], -layer))

    def main_table(self, layer: int) -> Iterator[str]:
        """Recipe × test, at the best layer and at a fixed one."""
        heads = [
            f"{test}, {at}" for test in self.tests for at in ("best (layer)", f"layer {layer}")
        ]
        yield from _head(["recipe", *heads, "seeds", "tokens"])
        for recipe in self.recipes:
            row = []
            for test in self.tests:
                best = self.best(recipe, test)
                row.append(f"{_said(*self.by_seed(recipe, test, best))} ({best})")
                row.append(_said(*self.by_seed(recipe, test, layer)))
            cells = [cell for cell in self.cells if cell["recipe"] == recipe]
            tokens = mean(cell["tokens"] for cell in cells) / 1e6
            yield _row([recipe, *row, str(len(cells)), f"{tokens:.1f}M"])

    def language_table(self, test: str) -> Iterator[str]:
        """Recipe × language, at the best layer of the recipe."""
        yield from _head(["recipe", *self.languages])
        for recipe in self.recipes:
            best = self.best(recipe, test)
            scores = (self.by_seed(recipe, test, best, language) for language in self.languages)
            yield _row([recipe, *(_said(*score) for score in scores)])

    def layer_table(self, test: str) -> Iterator[str]:
        """Recipe × layer; 0 is the embeddings."""
        yield from _head(["recipe", *(f"layer {layer}" for layer in self.layers)])
        for recipe in self.recipes:
            scores = (self.by_seed(recipe, test, layer) for layer in self.layers)
            yield _row([recipe, *(_said(*score) for score in scores)])


def _found(cells: list[dict[str, Any]], way: str) -> Iterator[Found]:
    for cell in cells:
        for score in cell["scores"]:
            if score["metric"].startswith(f"{way} accuracy@1".strip()):
                yield Found(
                    recipe=cell["recipe"],
                    seed=cell["seed"],
                    test=score["test"],
                    layer=score["layer"],
                    language=score["language"],
                    value=100 * score["value"],
                )


def _said(value: float, deviation: float | None) -> str:
    return f"{value:.1f}" if deviation is None else f"{value:.1f} ± {deviation:.1f}"


def _head(names: list[str]) -> Iterator[str]:
    yield _row(names)
    yield "|---|" + "--:|" * (len(names) - 1)


def _row(entries: Iterable[str]) -> str:
    return f"| {' | '.join(entries)} |"


def tables(folder: Path, *, layer: int, way: str = "") -> Iterator[str]:
    """The lines of all tables."""
    study = Study(folder, way)
    yield from study.main_table(layer)
    for test in study.tests:
        yield from ("", f"{test}, by language, each recipe at its best layer:", "")
        yield from study.language_table(test)
        yield from ("", f"{test}, by layer:", "")
        yield from study.layer_table(test)


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the study's tables.")
    parser.add_argument("work", type=Path)
    parser.add_argument("--layer", type=int, default=4, help="the layer read of every recipe")
    parser.add_argument(
        "--by", choices=["centered", "first token"], default="", help="instead of the mean state"
    )
    given = parser.parse_args()
    if not any((given.work / "results").glob("*.json")):
        parser.error(f"{given.work / 'results'} has no results yet: run the study first")
    print("\n".join(tables(given.work / "results", layer=given.layer, way=given.by)))


if __name__ == "__main__":
    main()

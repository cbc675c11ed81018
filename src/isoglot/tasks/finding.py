"""Finding a task's files under a data folder, whichever of its layouts they have.

A `Layout` is a path with `{language}`, `{other}` and `{split}` in it. Files of one language and
split, such as shards or treebanks, make one part; where two layouts give the same part, the one
named first wins. A folder with an `eval` folder in it stands for that folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import E, P, Part, Split, Task
from isoglot.tasks.codes import two_letters

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SPLITS: dict[str, Split] = {
    "translated_train": "train",
    "training": "train",
    "train": "train",
    "validation": "dev",
    "valid": "dev",
    "val": "dev",
    "dev_2k": "dev",
    "dev": "dev",
    "trial": "dev",
    "testa": "dev",
    "test_annotated": "test",
    "test_2k": "test",
    "testb": "test",
    "test": "test",
}
_PLACES = {
    "{language}": r"(?P<language>[a-z]{2,3})",
    "{name}": r"(?P<language>[a-z]{4,})",
    "{other}": r"(?P<other>[a-z]{2,3})",
    "{split}": f"(?P<split>{'|'.join(_SPLITS)})",
    "*": r"[^/]*",
}
_TEST: Split = "test"
_PACKED = r"(\.(xz|gz|bz2|zst))?"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where files lie: a pattern, and what it does not say."""

    pattern: str
    """`{language}` and `{other}` are codes, `{name}` a language's name; `*` is anything."""
    languages: tuple[str, ...] = ()
    """Languages inside each file, where its name has none."""
    split: Split | None = None
    """The split, where the name has none."""
    other: str = ""
    """The second language of a pair, where the name has only the first."""

    def find(self, root: Path) -> Iterator[tuple[str, Split, Path]]:
        """Language, split and file of everything under a folder that has this layout."""
        regex = _regex(self.pattern)
        anything = re.sub(r"(\{\w+\}|\*)+", "*", self.pattern)
        for path in sorted(root.glob(anything.removesuffix("*") + "*")):
            match = regex.fullmatch(path.relative_to(root).as_posix())
            if match is None or not path.is_file():
                continue
            said = match.groupdict()
            split = self.split or _SPLITS[said["split"]]
            if said.get("language") is None:
                for language in self.languages:
                    yield language, split, path
                continue
            language = two_letters(said["language"])
            other = said.get("other") or self.other
            yield f"{language}-{two_letters(other)}" if other else language, split, path


def _regex(pattern: str) -> re.Pattern[str]:
    expression, seen = "", set()
    for piece in re.split(r"(\{\w+\}|\*)", pattern):
        # a place that comes back must say the same again
        again = f"(?P={piece[1:-1]})" if piece in seen else None
        expression += again or _PLACES.get(piece) or re.escape(piece)
        if piece.startswith("{"):
            seen.add(piece)
    return re.compile(expression + _PACKED)


def hub(
    name: str,
    config: str = "{language}",
    languages: tuple[str, ...] = (),
    *,
    test: str | None = None,
    other: str = "",
) -> list[Layout]:
    """The layouts of a Hugging Face dataset: its repository's files, or saved to disk.

    `test` is what the dataset calls the test part, where it calls it something else.
    """
    said, split = ("{split}", None) if test is None else (test, _TEST)
    return [
        Layout(f"{name}/{config}/{said}-*.parquet", languages, split, other),
        Layout(f"{name}/{config}/{said}/data-*.arrow", languages, split, other),
    ]


def find_parts(folder: Path, layouts: tuple[Layout, ...]) -> list[Part]:
    """The parts that lie under a data folder."""
    root = folder / "eval" if (folder / "eval").is_dir() else folder
    found: dict[tuple[str, Split], list[Path]] = {}
    for layout in layouts:
        by_part: dict[tuple[str, Split], list[Path]] = {}
        for language, split, path in layout.find(root):
            by_part.setdefault((language, split), []).append(path)
        for key, files in by_part.items():
            found.setdefault(key, files)
    return [Part(language, split, tuple(files)) for (language, split), files in found.items()]


class FileTask(Task[E, P]):
    """A task whose parts are found by layouts."""

    layouts: ClassVar[tuple[Layout, ...]]

    @override
    def parts(self, folder: Path) -> list[Part]:
        return find_parts(folder, self.layouts)

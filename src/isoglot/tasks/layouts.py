"""Finding a task's files under a data folder, in any of the layouts that the data set comes in.

A `Layout` is a path with `{language}`, `{other}` and `{split}` in it. All files of one language and
split, such as shards or treebanks, make one `TaskSplit`; where two layouts give the same split, the
first wins. A data folder with a folder `eval` in it stands for that folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.errors import CorpusError
from isoglot.languages import canonical, code_of_name, from_wikipedia
from isoglot.tasks.base import E, P, Split, Task, TaskSplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_SPLIT_NAMES: dict[str, Split] = {
    **dict.fromkeys(("translated_train", "training", "train"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev_2k", "dev", "trial", "testa"), "dev"),
    **dict.fromkeys(("test_annotated", "test_2k", "testb", "test"), "test"),
}
_CODE = r"[a-z]{2,3}(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}))*"
_PLACEHOLDERS = {
    "{language}": f"(?P<language>{_CODE})",
    "{wikipedia}": r"(?P<wikipedia>[a-z]{2,3}(?:-[a-z]+)*|simple)",
    "{name}": r"(?P<name>[a-z]{4,})",
    "{other}": f"(?P<other>{_CODE})",
    "{split}": f"(?P<split>{'|'.join(_SPLIT_NAMES)})",
    "*": r"[^/]*",
}
_TEST: Split = "test"
_COMPRESSED = r"(\.(xz|gz|bz2|zst))?"


class FileTask(Task[E, P]):
    """A task whose splits are found by layouts."""

    layouts: ClassVar[tuple[Layout, ...]] = ()
    """Empty for a task that generates its examples."""
    companions: ClassVar[tuple[str, ...]] = ()
    """Patterns of files beside those of `layouts` that are read with them, or known and not read:
    the other side of translations, gold links, splits without labels."""

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        return find_splits(folder, self.layouts)


@dataclass(frozen=True, slots=True)
class Layout:
    """A path pattern, and the language and split of files whose names do not have them."""

    pattern: str
    """`{language}` and `{other}` are language codes, `{wikipedia}` is that of a Wikipedia, `{name}`
    a language's English name, `*` anything."""
    languages: tuple[str, ...] = ()
    """Languages inside each file, for names without a language."""
    split: Split | None = None
    """The split, for names without one."""
    other: str = ""
    """The second language of a pair, for names that have only the first."""

    def find(self, root: Path) -> Iterator[tuple[str, Split, Path]]:
        """Language, split and path of every file under a folder that matches the pattern."""
        regex = compile_pattern(self.pattern)
        for path in sorted(root.glob(to_glob(self.pattern).removesuffix("*") + "*")):
            match = regex.fullmatch(path.relative_to(root).as_posix())
            if match is None or not path.is_file():
                continue
            groups = match.groupdict()
            split = self.split or _SPLIT_NAMES[groups["split"]]
            language = _language(groups)
            if language is None:
                for one in self.languages:
                    yield one, split, path
                continue
            other = groups.get("other") or self.other
            yield f"{language}-{canonical(other)}" if other else language, split, path


def _language(groups: Mapping[str, str | None]) -> str | None:
    """The code of the language that a file's name has, if it has one."""
    if name := groups.get("name"):
        return code_of_name(name) or name
    if code := groups.get("wikipedia"):
        return from_wikipedia(code)
    return canonical(code) if (code := groups.get("language")) else None


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression, for a path below the data folder, compressed or not."""
    expression, seen = "", set()
    for token in re.split(r"(\{\w+\}|\*)", pattern):
        # a placeholder that is repeated must match the same text again
        repeated = f"(?P={token[1:-1]})" if token in seen else None
        expression += repeated or _PLACEHOLDERS.get(token) or re.escape(token)
        if token.startswith("{"):
            seen.add(token)
    return re.compile(expression + _COMPRESSED)


def to_glob(pattern: str) -> str:
    """A pattern with `*` for each placeholder."""
    return re.sub(r"(\{\w+\}|\*)+", "*", pattern)


def data_root(folder: Path) -> Path:
    """The folder `eval` in a data folder, or the data folder itself."""
    return folder / "eval" if (folder / "eval").is_dir() else folder


def hf_layouts(
    name: str,
    config: str = "{language}",
    languages: tuple[str, ...] = (),
    *,
    test: str | None = None,
    other: str = "",
) -> list[Layout]:
    """The two layouts of a Hugging Face data set: its repository's files, and `save_to_disk`.

    `test` is the data set's own name of the split that is the test split here.
    """
    said, split = ("{split}", None) if test is None else (test, _TEST)
    return [
        Layout(f"{name}/{config}/{said}-*.parquet", languages, split, other),
        Layout(f"{name}/{config}/{said}/data-*.arrow", languages, split, other),
    ]


def find_splits(folder: Path, layouts: tuple[Layout, ...]) -> list[TaskSplit]:
    """The splits whose files are under a data folder."""
    root = data_root(folder)
    found: dict[tuple[str, Split], list[Path]] = {}
    for layout in layouts:
        of_layout: dict[tuple[str, Split], list[Path]] = {}
        for language, split, path in layout.find(root):
            files = of_layout.setdefault((language, split), [])
            files.append(path)
            # without a `*` a language has one file: `nb.test` and `nob.test.xz` are the same
            if len(files) > 1 and "*" not in layout.pattern:
                raise CorpusError(
                    f"{files[0]} and {path} are both the {split} split of {language}. Keep one of "
                    "them."
                )
        for key, files in of_layout.items():
            found.setdefault(key, files)
    return [TaskSplit(language, split, tuple(files)) for (language, split), files in found.items()]

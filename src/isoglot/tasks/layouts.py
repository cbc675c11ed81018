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

from isoglot.tasks.base import E, P, Split, Task, TaskSplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SPLIT_NAMES: dict[str, Split] = {
    **dict.fromkeys(("translated_train", "training", "train"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev_2k", "dev", "trial", "testa"), "dev"),
    **dict.fromkeys(("test_annotated", "test_2k", "testb", "test"), "test"),
}
_PLACEHOLDERS = {
    "{language}": r"(?P<language>[a-z]{2,3})",
    "{name}": r"(?P<language>[a-z]{4,})",
    "{other}": r"(?P<other>[a-z]{2,3})",
    "{split}": f"(?P<split>{'|'.join(_SPLIT_NAMES)})",
    "*": r"[^/]*",
}
_TEST: Split = "test"
_COMPRESSED = r"(\.(xz|gz|bz2|zst))?"


class FileTask(Task[E, P]):
    """A task whose splits are found by layouts."""

    layouts: ClassVar[tuple[Layout, ...]] = ()
    """Empty for a task that generates its examples."""

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        return find_splits(folder, self.layouts)


@dataclass(frozen=True, slots=True)
class Layout:
    """A path pattern, and the language and split of files whose names do not have them."""

    pattern: str
    """`{language}` and `{other}` are language codes, `{name}` a language's name, `*` anything."""
    languages: tuple[str, ...] = ()
    """Languages inside each file, for names without a language."""
    split: Split | None = None
    """The split, for names without one."""
    other: str = ""
    """The second language of a pair, for names that have only the first."""

    def find(self, root: Path) -> Iterator[tuple[str, Split, Path]]:
        """Language, split and path of every file under a folder that matches the pattern."""
        regex = _compile(self.pattern)
        anything = re.sub(r"(\{\w+\}|\*)+", "*", self.pattern)
        for path in sorted(root.glob(anything.removesuffix("*") + "*")):
            match = regex.fullmatch(path.relative_to(root).as_posix())
            if match is None or not path.is_file():
                continue
            groups = match.groupdict()
            split = self.split or _SPLIT_NAMES[groups["split"]]
            if groups.get("language") is None:
                for language in self.languages:
                    yield language, split, path
                continue
            language = two_letter_code(groups["language"])
            other = groups.get("other") or self.other
            yield f"{language}-{two_letter_code(other)}" if other else language, split, path


def _compile(pattern: str) -> re.Pattern[str]:
    expression, seen = "", set()
    for token in re.split(r"(\{\w+\}|\*)", pattern):
        # a placeholder that is repeated must match the same text again
        repeated = f"(?P={token[1:-1]})" if token in seen else None
        expression += repeated or _PLACEHOLDERS.get(token) or re.escape(token)
        if token.startswith("{"):
            seen.add(token)
    return re.compile(expression + _COMPRESSED)


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
    root = folder / "eval" if (folder / "eval").is_dir() else folder
    found: dict[tuple[str, Split], list[Path]] = {}
    for layout in layouts:
        of_layout: dict[tuple[str, Split], list[Path]] = {}
        for language, split, path in layout.find(root):
            of_layout.setdefault((language, split), []).append(path)
        for key, files in of_layout.items():
            found.setdefault(key, files)
    return [TaskSplit(language, split, tuple(files)) for (language, split), files in found.items()]


# fmt: off
_TWO_LETTERS = {
    "afr": "af", "amh": "am", "ara": "ar", "arb": "ar", "aze": "az", "bel": "be", "ben": "bn",
    "bos": "bs", "bre": "br", "bul": "bg", "cat": "ca", "ces": "cs", "cmn": "zh", "cym": "cy",
    "dan": "da", "deu": "de", "ell": "el", "eng": "en", "epo": "eo", "esp": "es", "est": "et",
    "eus": "eu", "fao": "fo", "fin": "fi", "fra": "fr", "gla": "gd", "gle": "ga", "glg": "gl",
    "hau": "ha", "heb": "he", "hin": "hi", "hrv": "hr", "hun": "hu", "hye": "hy", "ibo": "ig",
    "ido": "io", "ile": "ie", "ina": "ia", "ind": "id", "isl": "is", "ita": "it", "jav": "jv",
    "jp": "ja", "jpn": "ja", "kat": "ka", "kaz": "kk", "khm": "km", "kin": "rw", "kor": "ko",
    "kur": "ku", "lat": "la", "lav": "lv", "lit": "lt", "lug": "lg", "mal": "ml", "mar": "mr",
    "mkd": "mk", "mon": "mn", "ned": "nl", "nld": "nl", "nno": "nn", "nob": "nb", "oci": "oc",
    "pes": "fa", "pol": "pl", "por": "pt", "ron": "ro", "rus": "ru", "slk": "sk", "slv": "sl",
    "spa": "es", "sqi": "sq", "srp": "sr", "swa": "sw", "swe": "sv", "swh": "sw", "tam": "ta",
    "tat": "tt", "tel": "te", "tgl": "tl", "tha": "th", "tuk": "tk", "tur": "tr", "uig": "ug",
    "ukr": "uk", "urd": "ur", "uzb": "uz", "vie": "vi", "wol": "wo", "xho": "xh", "yid": "yi",
    "yor": "yo", "zho": "zh", "zsm": "ms", "zul": "zu",
}
"""`esp` and `ned` are CoNLL-2002's own codes; `jp` is the Amazon reviews'."""
_TYDIQA_NAMES = {
    "arabic": "ar", "bengali": "bn", "english": "en", "finnish": "fi", "indonesian": "id",
    "japanese": "ja", "korean": "ko", "russian": "ru", "swahili": "sw", "telugu": "te",
    "thai": "th",
}
"""The language names in TyDi QA's file names and question ids."""
# fmt: on


def two_letter_code(code: str) -> str:
    """The two-letter code of a language, or its own code where it has none."""
    return _TYDIQA_NAMES.get(code) or _TWO_LETTERS.get(code, code)


def tydiqa_name(code: str) -> str | None:
    """TyDi QA's name of a language, if it is one of its eleven."""
    return next((name for name, short in _TYDIQA_NAMES.items() if short == code), None)

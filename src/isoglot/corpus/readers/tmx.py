"""Translation memories: TMX, every version.

A unit (`<tu>`) holds a text in several languages; the two of the pair are read, so one file can
serve many pairs. What marks up the text (`<ph>`, `<bpt>`, ...) is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.markup import (
    LANGUAGE,
    local_name,
    plain_text,
    read_elements,
    same_language,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_CODES = frozenset({"bpt", "ept", "it", "ph", "sub", "ut", "x"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TmxReader(Reader):
    """Pairs; what is counted are units. One without both languages is counted as `unmatched`."""

    first: str = ""
    """The language tag of the first text, as in the file; by default any that fits the language:
    `en`, `en-GB` and `EN-US` for `en`."""
    second: str = ""
    """The language tag of the second text."""

    name = "tmx"
    kinds = ("pairs",)

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        first, second = self.first or self.languages[0], self.second or self.languages[1]
        for file, path in enumerate(files):
            for unit in read_elements(path, "tmx", ["tu"]):
                texts = (_text(unit, first), _text(unit, second))
                shown = "\t".join(filter(None, texts))
                if "\ufffd" in shown:
                    yield Skipped("encoding", shown, unit.sourceline, file)
                elif texts[0] is None or texts[1] is None:
                    yield Skipped("unmatched", shown, unit.sourceline, file)
                else:
                    yield Record((texts[0], texts[1]), 0, unit.sourceline, file)


def _text(unit: Any, language: str) -> str | None:
    """The text of a unit in a language, from its first variant in it."""
    for variant in unit:
        if local_name(variant) != "tuv":
            continue
        tag = variant.get(LANGUAGE) or variant.get("lang") or ""
        if same_language(tag, language):
            for part in variant:
                if local_name(part) == "seg":
                    return plain_text(part, _CODES)
    return None

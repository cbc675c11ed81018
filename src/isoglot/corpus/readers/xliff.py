"""Translations in the making: XLIFF 1.2 (`<trans-unit>`) and 2.0 (`<segment>`).

A file says what its two languages are; read for the pair in the other order, its texts change
places. What marks up the text (`<ph>`, `<bpt>`, ...) is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.markup import local_name, plain_text, read_elements, same_language

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_CODES = frozenset({"bpt", "ept", "it", "ph", "sub", "x", "bx", "ex", "sc", "ec", "cp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class XliffReader(Reader):
    """Pairs; what is counted are units. One without a target is counted under `untranslated`."""

    name = "xliff"
    kinds = ("pairs",)

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        for file, path in enumerate(files):
            for unit in read_elements(path, "xliff", ["trans-unit", "segment"]):
                yield self._record(unit, file)

    def _record(self, unit: Any, file: int) -> Record | Skipped:
        source, target = _text(unit, "source"), _text(unit, "target")
        line, shown = unit.sourceline, "\t".join(filter(None, (source, target)))
        if "\ufffd" in shown:
            return Skipped("encoding", shown, line, file)
        if source is None or not target:
            return Skipped("untranslated", shown, line, file)
        tags = _languages(unit)
        if self._fit(tags):
            return Record((source, target), 0, line, file)
        if self._fit(tags[::-1]):
            return Record((target, source), 0, line, file)
        return Skipped("other languages", shown, line, file)

    def _fit(self, tags: tuple[str, str]) -> bool:
        """Are these the languages that are asked for, in this order? A file may not say."""
        return all(
            not tag or same_language(tag, language)
            for tag, language in zip(tags, self.languages, strict=False)
        )


def _languages(unit: Any) -> tuple[str, str]:
    """The tags of source and target, from the nearest element around that has them."""
    for place in unit.iterancestors():
        if (source := place.get("source-language")) is not None:
            return source, place.get("target-language", "")
        if (source := place.get("srcLang")) is not None:
            return source, place.get("trgLang", "")
    return "", ""


def _text(unit: Any, name: str) -> str | None:
    """The text of a unit's own source or target; proposals have theirs deeper inside."""
    for part in unit:
        if local_name(part) == name:
            return plain_text(part, _CODES)
    return None

"""Raw sentences of CoNLL-U files, from their comments.

A sentence is the lines up to a blank one; its text is in `# text = ...`, and `# newdoc` begins a
document. A sentence without its text is counted under `no text`: words alone do not say where the
spaces were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.files import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ConlluReader(Reader):
    """Sentences of one language; what is counted are sentences, not lines."""

    name = "conllu"
    kinds = ("text",)

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        document = -1
        for file, path in enumerate(files):
            document += 1
            read_any = False
            for number, lines in _sentences(path):
                # the first document of a file may or may not be announced
                document += read_any and _value(lines, "newdoc") is not None
                read_any = True
                text = _value(lines, "text")
                if text:
                    yield Record((text,), document, number, file)
                else:
                    bad = any(isinstance(line, Skipped) for line in lines)
                    shown = "\n".join(line for line in lines if isinstance(line, str))
                    yield Skipped("encoding" if bad else "no text", shown, number, file)


def _sentences(path: Path) -> Iterator[tuple[int, list[str | Skipped]]]:
    """The comments of each sentence (and what cannot be read), with the line where it begins."""
    comments: list[str | Skipped] = []
    begun = 0
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, str) and not line.strip():
            if begun:
                yield begun, comments
            comments, begun = [], 0
            continue
        begun = begun or number
        if isinstance(line, Skipped) or line.startswith("#"):
            comments.append(line)
    if begun:
        yield begun, comments


def _value(lines: list[str | Skipped], name: str) -> str | None:
    """What a comment says: `# name = value` or `# name`; None where there is none."""
    for line in lines:
        if isinstance(line, str):
            key, _, value = line.removeprefix("#").partition("=")
            if key.split(maxsplit=1)[:1] == [name]:
                return value.strip()
    return None

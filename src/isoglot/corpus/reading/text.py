"""Texts of one language: plain lines, CoNLL-U files, and JSON lines (which may hold pairs too)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.reading.files import read_lines, read_objects, shown_object, text_at
from isoglot.corpus.reading.line_ranges import COMPRESSED
from isoglot.corpus.reading.reader import LineReader, Reader, Record, Skipped
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.corpus.reading.line_ranges import LineRange


_NO_LINES = {
    ".csv": "CSV",
    ".json": "JSON",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".parquet": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".conllu": "CoNLL-U",
    ".tmx": "TMX",
    ".xlf": "XLIFF",
    ".xliff": "XLIFF",
}


def require_lines(path: Path, content: str) -> None:
    """Raises a `CorpusError` for a file whose ending says that it has no plain lines.

    For commands that read lines alone; `content` is what they expect on each of them.
    """
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED]
    if endings and (kind := _NO_LINES.get(endings[-1])):
        raise CorpusError(
            f"{path}: is {kind} by its ending, which `isoglot adapt` and `isoglot prepare` read, "
            f"and this command does not. Write plain lines to a .txt file, {content} on each."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesReader(LineReader):
    """One sentence or paragraph a line; a blank line, or the end of the file, ends a document.

    Paragraphs become sentences by the source's setting `split: sentences`. Blank lines are counted
    under `blank`.
    """

    name = "lines"
    kinds = ("text",)
    documents_span_lines = True

    @override
    def read_ranges(
        self, files: Sequence[Path], ranges: Sequence[LineRange]
    ) -> Iterator[Record | Skipped]:
        document = 0
        for file, (path, wanted) in enumerate(zip(files, ranges, strict=True)):
            inside = False
            for number, line in enumerate(read_lines(path, wanted), start=wanted.first):
                if isinstance(line, Skipped):
                    yield line.in_file(file)
                elif not line.strip():
                    yield Skipped("blank", line, number, file)
                    # blank lines in a row are one boundary
                    document += inside
                    inside = False
                else:
                    yield Record((line,), document, number, file)
                    inside = True
            document += inside


@dataclass(frozen=True, slots=True, kw_only=True)
class ConlluReader(Reader):
    """Raw sentences from the comments `# text = ...`; counts are of sentences, not lines.

    A blank line ends a sentence, and `# newdoc` begins a document. A sentence without its text is
    counted under `no text`: words alone do not say where the spaces were.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLinesReader(LineReader):
    """An object a line, with a text in one field of it, or a pair in two.

    A line is a document; line ends inside its text end paragraphs. A field may lie inside others:
    `translation.en` is the field `en` of the object in `translation`. A line without an object is
    counted under `not JSON`, one without text under `no field`.
    """

    field: str = "text"
    """The field that holds the text."""
    first: str = ""
    """For pairs, the field of the first language's text; by default the language's name."""
    second: str = ""
    """For pairs, the field of the second language's text."""

    name = "jsonl"
    kinds = ("text", "pairs")

    @override
    def read_ranges(
        self, files: Sequence[Path], ranges: Sequence[LineRange]
    ) -> Iterator[Record | Skipped]:
        fields = [self.field]
        if self.pairs:
            fields = [self.first or self.languages[0], self.second or self.languages[1]]
        document = 0
        for file, (path, wanted) in enumerate(zip(files, ranges, strict=True)):
            for number, found in read_objects(path, wanted):
                if isinstance(found, Skipped):
                    yield found.in_file(file)
                    continue
                texts = tuple(text for name in fields if (text := text_at(found, name)) is not None)
                if len(texts) < len(fields):
                    yield Skipped("no field", shown_object(found), number, file)
                else:
                    yield Record(texts, 0 if self.pairs else document, number, file)
                    document += 1

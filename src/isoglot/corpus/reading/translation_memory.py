"""Translation memories in XML: TMX, and XLIFF 1.2 and 2.0.

Files are streamed, element by element. Nothing is downloaded, and no entity is expanded but the
characters that XML and HTML name. Bytes that are not in the file's encoding become U+FFFD, so that
they spoil one text and not the file; a file that is cut short, or whose tags do not match, raises
an error that names the line. Inline markup (`<ph>`, `<bpt>`, ...) is left out of texts.
"""

from __future__ import annotations

import codecs
import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from isoglot.corpus.reading.files import read_blocks
from isoglot.corpus.reading.reader import Reader, Record, Skipped
from isoglot.errors import CorpusError
from isoglot.languages import canonical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
"""The attribute `xml:lang`."""

_DECLARED = re.compile(rb"""^<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
"""Beginning of a file -> its encoding, with a byte order mark or without."""
_WIDE = re.compile(r"utf[-_]?(16|32)|ucs", re.IGNORECASE)
_NO_ENCODINGS = ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_BEARABLE = ("ERR_INVALID_CHAR", "ERR_UNDECLARED_ENTITY", "WAR_UNDECLARED_ENTITY")
_TMX_CODES = frozenset({"bpt", "ept", "it", "ph", "sub", "ut", "x"})
_XLIFF_CODES = frozenset({"bpt", "ept", "it", "ph", "sub", "x", "bx", "ex", "sc", "ec", "cp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TmxReader(Reader):
    """TMX of any version. A unit holds a text in several languages; those of the pair are read.

    Counts are of units; one without both languages is counted under `unmatched`.
    """

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
                texts = (_tmx_text(unit, first), _tmx_text(unit, second))
                shown = "\t".join(filter(None, texts))
                if "\ufffd" in shown:
                    yield Skipped("encoding", shown, unit.sourceline, file)
                elif texts[0] is None or texts[1] is None:
                    yield Skipped("unmatched", shown, unit.sourceline, file)
                else:
                    yield Record((texts[0], texts[1]), 0, unit.sourceline, file)


def _tmx_text(unit: Any, language: str) -> str | None:
    """The text of a unit in a language, from its first variant in it."""
    for variant in unit:
        if local_name(variant) != "tuv":
            continue
        tag = variant.get(LANGUAGE) or variant.get("lang") or ""
        if same_language(tag, language):
            for part in variant:
                if local_name(part) == "seg":
                    return plain_text(part, _TMX_CODES)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class XliffReader(Reader):
    """XLIFF 1.2 (`<trans-unit>`) and 2.0 (`<segment>`), in either direction of its languages.

    Counts are of units; one without a target is counted under `untranslated`.
    """

    name = "xliff"
    kinds = ("pairs",)

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        for file, path in enumerate(files):
            for unit in read_elements(path, "xliff", ["trans-unit", "segment"]):
                yield self._record(unit, file)

    def _record(self, unit: Any, file: int) -> Record | Skipped:
        source, target = _xliff_text(unit, "source"), _xliff_text(unit, "target")
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
        """Whether these are the languages of the pair, in this order; an empty tag matches any."""
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


def _xliff_text(unit: Any, name: str) -> str | None:
    """The text of a unit's own source or target; proposals have theirs deeper inside."""
    for part in unit:
        if local_name(part) == name:
            return plain_text(part, _XLIFF_CODES)
    return None


def read_elements(path: Path, root: str, names: Collection[str]) -> Iterator[Any]:
    """The elements of these names in any namespace, each when it ends.

    An element is freed when the next one is requested; the attributes of its ancestors stay.
    """
    from lxml import etree

    parser = etree.XMLPullParser(
        events=("end",),
        tag=[f"{{*}}{name}" for name in names],
        encoding="utf-8",
        recover=True,
        resolve_entities=False,
        no_network=True,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
    checked = False
    for data in _sound(path):
        parser.feed(data)
        fault = _fault(parser)
        for _, element in parser.read_events():
            # elements after a fault in the same block may be incomplete
            if fault is not None and element.sourceline >= fault.line:
                break
            if not checked:
                _check_root(path, element, root)
                checked = True
            yield element
            _forget(element)
        if fault is not None:
            raise _broken(path, fault.line, fault.message)
    _close(etree, parser, path, root)


def plain_text(element: Any, codes: Collection[str]) -> str:
    """The text of an element and of those inside it, except of the ones with these names."""
    if not len(element):
        return element.text or ""
    parts: list[str] = []
    waiting: list[Any] = [element]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            parts.append(node)
        elif not isinstance(node.tag, str):
            parts.append(html.unescape(node.text or ""))  # an entity, such as &nbsp;
        elif node is element or local_name(node) not in codes:
            for child in reversed(node):
                waiting.append(child.tail or "")
                waiting.append(child)
            waiting.append(node.text or "")
    return "".join(parts)


def local_name(element: Any) -> str:
    """The name of an element without its namespace; empty for an entity, which has none."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def same_language(tag: str, language: str) -> bool:
    """Whether a language tag (`en-US`) matches a language of the settings (`en`, `eng`)."""
    told, asked = (canonical(name).split("_") for name in (tag, language))
    return told[0] == asked[0] and set(asked[1:]) <= set(told[1:])


def _sound(path: Path) -> Iterator[bytes]:
    """The file in UTF-8, without characters that XML does not allow."""
    decoder: codecs.IncrementalDecoder | None = None
    for block in read_blocks(path):
        if decoder is None:
            decoder = _decoder(path, block)
        yield _legal(decoder.decode(block))
    if decoder is not None:
        yield _legal(decoder.decode(b"", final=True))


def _legal(text: str) -> bytes:
    return _ILLEGAL.sub("", text).removeprefix("\ufeff").encode("utf-8", "replace")


def _decoder(path: Path, start: bytes) -> codecs.IncrementalDecoder:
    """A decoder for the encoding that a file begins with, or declares; UTF-8 if it does not."""
    encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "")
    if not encoding:
        declared = _DECLARED.match(start.removeprefix(codecs.BOM_UTF8))
        encoding = declared[1].decode("ascii") if declared else "utf-8"
        # a declaration in single bytes is not UTF-16, whatever it says
        encoding = "utf-8" if _WIDE.search(encoding) else encoding
    if not _is_text_encoding(encoding):
        raise CorpusError(
            f"{path}: declares the encoding {encoding!r}, which is unknown or not an "
            "encoding of text. Convert it to UTF-8."
        )
    return codecs.getincrementaldecoder(encoding)(errors="replace")


def _is_text_encoding(name: str) -> bool:
    """Some of Python's codecs make no text of bytes (zlib, base64), or only of whole files."""
    try:
        known = codecs.lookup(name)
        codecs.getincrementaldecoder(name)
    except LookupError:
        return False
    return known._is_text_encoding and known.name.replace("_", "-") not in _NO_ENCODINGS  # noqa: SLF001


def _fault(parser: Any) -> Any:
    """The first fatal error in the file so far."""
    return next(
        (entry for entry in parser.feed_error_log if entry.type_name not in _BEARABLE), None
    )


def _forget(element: Any) -> None:
    """Frees an element, and its predecessors on every level."""
    element.clear()
    place = element
    while (parent := place.getparent()) is not None:
        while place.getprevious() is not None:
            del parent[0]
        place = parent


def _check_root(path: Path, element: Any, root: str) -> None:
    found = local_name(element.getroottree().getroot())
    if found != root:
        raise CorpusError(
            f"{path}: is not {root.upper()}: its root element is <{found}>, not <{root}>. Name "
            "another file, or correct the source's format."
        )


def _close(etree: Any, parser: Any, path: Path, root: str) -> None:
    """Raises for a file that is no XML, or does not end."""
    try:
        found = parser.close()
    except etree.XMLSyntaxError:
        found = None
    if found is None:
        raise _broken(path, 1, "it is not XML")
    fault = _fault(parser)
    if fault is not None:
        raise _broken(path, fault.line, f"{fault.message.strip()}; it may be cut short")
    _check_root(path, found, root)


def _broken(path: Path, line: int, what: str) -> CorpusError:
    return CorpusError(
        f"{path}, line {line}: the XML is damaged ({what.strip()}). Correct that line, or download "
        "the file again."
    )

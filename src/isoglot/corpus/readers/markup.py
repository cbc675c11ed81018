"""XML files of translations, streamed: elements one by one, and the plain text in them.

Nothing is fetched, and no entity is expanded but the characters that XML and HTML name. Bytes that
are not in the file's encoding become U+FFFD, so that they spoil one text and not the file; a file
that is cut short, or whose tags do not match, is an error that names the line.
"""

from __future__ import annotations

import codecs
import html
import re
from typing import TYPE_CHECKING, Any

from isoglot.corpus.languages import plain_code
from isoglot.corpus.readers.packed import read_blocks
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
"""The attribute `xml:lang`."""

_DECLARED = re.compile(rb"""^<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_BEARABLE = ("ERR_INVALID_CHAR", "ERR_UNDECLARED_ENTITY", "WAR_UNDECLARED_ENTITY")


def read_elements(path: Path, root: str, names: Collection[str]) -> Iterator[Any]:
    """The elements of these names, whatever their namespace, each when it ends.

    An element is gone when the next one is asked for; the attributes of its ancestors stay.
    """
    etree = _lxml(path)
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
            # what is after a fault in the same block may be torn
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
    """The name of an element without its namespace."""
    name: str = element.tag.rpartition("}")[2]
    return name


def same_language(tag: str, language: str) -> bool:
    """Does a language tag (`en-US`) say what a language of the settings (`en`, `eng`) says?"""
    told, asked = (name.lower().replace("_", "-").split("-") for name in (tag, language))
    return plain_code(told[0]) == plain_code(asked[0]) and set(asked[1:]) <= set(told[1:])


def _lxml(path: Path) -> Any:
    try:
        from lxml import etree
    except ImportError as error:
        raise CorpusError(
            f"{path}: reading XML needs one more package. Run: pip install 'isoglot[prepare]'"
        ) from error
    return etree


def _sound(path: Path) -> Iterator[bytes]:
    """The file in UTF-8, without characters that XML does not allow."""
    decoder: codecs.IncrementalDecoder | None = None
    for block in read_blocks(path):
        if decoder is None:
            decoder = _decoder(path, block)
        yield _ILLEGAL.sub("", decoder.decode(block)).removeprefix("\ufeff").encode("utf-8")


def _decoder(path: Path, start: bytes) -> codecs.IncrementalDecoder:
    """A decoder for the encoding that a file begins with, or declares; UTF-8 if it does not."""
    encoding = "utf-8"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif declared := _DECLARED.match(start.removeprefix(codecs.BOM_UTF8)):
        encoding = declared[1].decode("ascii")
    try:
        return codecs.getincrementaldecoder(encoding)(errors="replace")
    except LookupError as error:
        raise CorpusError(
            f"{path}: declares the encoding {encoding!r}, which is not known. Convert it to UTF-8."
        ) from error


def _fault(parser: Any) -> Any:
    """The first thing in the file so far that cannot be read over."""
    return next(
        (entry for entry in parser.feed_error_log if entry.type_name not in _BEARABLE), None
    )


def _forget(element: Any) -> None:
    """Frees an element, and what came before it on every level."""
    element.clear()
    place = element
    while (parent := place.getparent()) is not None:
        while place.getprevious() is not None:
            del parent[0]
        place = parent


def _check_root(path: Path, element: Any, root: str) -> None:
    found = local_name(element.getroottree().getroot())
    if found != root:
        raise CorpusError(f"{path}: is not {root.upper()}: it holds <{found}>, not <{root}>.")


def _close(etree: Any, parser: Any, path: Path, root: str) -> None:
    """Refuses a file that is no XML, or does not end."""
    try:
        found = parser.close()
    except etree.XMLSyntaxError:
        found = None
    if found is None:
        raise _broken(path, 1, "it is no XML")
    fault = _fault(parser)
    if fault is not None:
        raise _broken(path, fault.line, f"{fault.message.strip()}; it may be cut short")
    _check_root(path, found, root)


def _broken(path: Path, line: int, what: str) -> CorpusError:
    return CorpusError(
        f"{path}, line {line}: the XML is damaged ({what.strip()}). Mend that line, or fetch the "
        "file again."
    )

"""Texts to normalized sentences.

A text is split into sentences as `split` says: not at all, at line ends, by punctuation, or by
pysbd. pysbd handles abbreviations well, but its time grows with the square of the length. It is
asked only about texts with a sentence end in the middle, 1000 characters at a time, and its answer
is ignored where it loses a part of the text. `punctuation` is fifty times as fast; it also replaces
pysbd for languages that pysbd does not know.

Normalization removes invisible characters, makes whitespace single spaces and composes Unicode.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

from isoglot.corpus.tokenization.vocabulary import SPACE_MARK
from isoglot.languages import plain_code

if TYPE_CHECKING:
    from collections.abc import Callable

UnicodeForm = Literal["NFC", "NFKC"]
SplitMode = Literal["none", "lines", "punctuation", "sentences"]
"""How a text becomes sentences."""

_PYSBD_CHARACTERS = 1000
"""Characters that pysbd is given at a time."""

_PYSBD_EXCLUDED = ("ar", "fa")
"""Languages for which pysbd ends sentences at commas or colons."""

_LINE_ENDS = re.compile(r"\r\n|\n|\r")

# Possessive quantifiers and look-behinds match a run of marks only from its first: otherwise a
# million dots would take 10^12 steps. A pattern that begins with a set of characters is searched
# for several times faster than one that begins with a look-behind.
_CLOSING = "\"'”’»)\\]」』）"
_MARKS = ".!?…؟۔।॥።։။"
_WIDE_MARKS = "。！？｡"
_SENTENCE_ENDS = re.compile(
    rf"[{_MARKS}{_WIDE_MARKS}]"
    # marks that are followed by a space; no single letter before a full stop, as in initials
    rf"(?:(?<=[{_MARKS}])(?<![{_MARKS}].)(?:[{_MARKS}]++|(?<!\b\w\.))[{_CLOSING}]*+\s++"
    # marks that need none
    rf"|(?<=[{_WIDE_MARKS}])(?<![{_WIDE_MARKS}].)[{_WIDE_MARKS}]*+[{_CLOSING}]*+\s*+)"
)


def sentence_splitter(mode: SplitMode, language: str) -> Callable[[str], list[str]]:
    """A function that splits texts of a language into at least one sentence.

    Sentences are blank only where the whole text is.
    """
    if mode == "none":
        return lambda text: [text]
    if mode == "lines":
        return split_lines
    if mode == "punctuation" or not _segmenter(plain_code(language)):
        return partial(_split_each_line, split_punctuation)
    return partial(_split_each_line, partial(_split_by_rules, plain_code(language)))


def split_lines(text: str) -> list[str]:
    """The lines of a text that are not blank."""
    if "\n" not in text and "\r" not in text:
        return [text]
    return [line for line in _LINE_ENDS.split(text) if line.strip()] or [""]


def split_punctuation(text: str) -> list[str]:
    """Splits after marks that end sentences, unless lower case follows."""
    pieces, start = [], 0
    for match in _SENTENCE_ENDS.finditer(text):
        end = match.end()
        if not text[end : end + 1].islower():
            pieces.append(text[start:end].rstrip())
            start = end
    rest = text[start:]
    if rest.strip() or not pieces:
        pieces.append(rest)
    return pieces


def _split_each_line(split: Callable[[str], list[str]], text: str) -> list[str]:
    return [piece for line in split_lines(text) for piece in split(line)]


def _split_by_rules(language: str, text: str) -> list[str]:
    """Sentences by pysbd, or by punctuation where pysbd loses text."""
    rough = split_punctuation(text)
    if len(rough) == 1:
        return rough
    pieces: list[str] = []
    for part in _grouped(rough):
        if len(part) == 1 or sum(map(len, part)) > 2 * _PYSBD_CHARACTERS:
            pieces.extend(part)
            continue
        joined = " ".join(part)
        found = [piece for piece in map(str.strip, _segmenter(language).segment(joined)) if piece]
        whole = "".join("".join(found).split()) == "".join(joined.split())
        pieces.extend(found if whole else part)
    return pieces


def _grouped(rough: list[str]) -> list[list[str]]:
    """Neighboring pieces, in groups of about `_PYSBD_CHARACTERS`."""
    groups: list[list[str]] = [[]]
    size = 0
    for piece in rough:
        if size + len(piece) > _PYSBD_CHARACTERS and groups[-1]:
            groups.append([])
            size = 0
        groups[-1].append(piece)
        size += len(piece)
    return groups


@lru_cache(maxsize=64)
def _segmenter(language: str) -> Any:
    """The segmenter of a language; None where pysbd has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses invalid escapes in regular expressions
        import pysbd
        from pysbd.languages import LANGUAGE_CODES
    known = language in LANGUAGE_CODES and language not in _PYSBD_EXCLUDED
    return pysbd.Segmenter(language=language) if known else None


INVISIBLE = (
    "[\\x00-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f"  # control characters that are not whitespace
    "\\u00ad\\u200b\\u2060\\ufeff"  # soft hyphen, zero-width space, word joiner, byte order mark
    "\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]"  # writing direction
)
"""Pattern of characters that are removed. The joiners U+200C and U+200D stay: Persian, Hindi and
emoji are spelled with them."""

_INVISIBLE = re.compile(INVISIBLE)


def normalize_text(text: str, form: UnicodeForm = "NFC") -> str:
    """The text without invisible characters, with single spaces, in a Unicode form."""
    if not text.isascii():
        text = unicodedata.normalize(form, _INVISIBLE.sub("", text)).replace(SPACE_MARK, " ")
    elif not text.isprintable():
        text = _INVISIBLE.sub("", text)
    return " ".join(text.split())

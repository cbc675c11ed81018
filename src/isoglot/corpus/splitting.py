"""Texts to sentences: as they are, at line ends, by punctuation, or by the rules of a language.

`sentences` asks pysbd, for the languages it knows: good with abbreviations, and slow, since it goes
through a text dozens of times. It is asked only about texts that hold an end of a sentence in their
middle, a thousand characters at a time, and never believed where it loses a part of the text.
`punctuation` is the rule that stands in for it elsewhere, and is fifty times as fast.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

from isoglot.corpus.languages import plain_code
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Callable

SplitMode = Literal["none", "lines", "punctuation", "sentences"]
"""How a text becomes sentences."""

_MOST_AT_ONCE = 1000
"""Characters that pysbd is given at once: its time grows with their square."""

_CUT_AT_COMMAS = ("ar", "fa")
"""Languages for which pysbd ends sentences at commas or colons."""

_LINE_ENDS = re.compile(r"\r\n|\n|\r")

# A run of marks is looked at once, from its first, and never again from its middle: else a million
# dots would take a million million steps.
_CLOSING = "\"'”’»)\\]」』）"
_SENTENCE_ENDS = re.compile(
    # marks that are followed by a space; no single letter before a full stop, as in initials
    rf"(?<![.!?…؟۔।॥።։။])(?:(?<!\b\w)\.|[.!?…؟۔।॥።։။]{{2,}}+|[!?…؟۔।॥።։။])[{_CLOSING}]*+\s++"
    # marks that need none
    rf"|(?<![。！？｡])[。！？｡]++[{_CLOSING}]*+\s*+"
)


def splitter(mode: SplitMode, language: str) -> Callable[[str], list[str]]:
    """A function that splits texts of a language.

    It gives at least one piece, and pieces without text only where the whole text is blank.
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
    """Sentences that end with a mark that ends sentences, and do not go on in lower case."""
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
    lines = split_lines(text)
    return (
        split(lines[0]) if len(lines) == 1 else [piece for line in lines for piece in split(line)]
    )


def _split_by_rules(language: str, text: str) -> list[str]:
    """Sentences by pysbd, or by punctuation where it cannot be believed."""
    rough = split_punctuation(text)
    if len(rough) == 1:
        return rough
    pieces: list[str] = []
    for part in _grouped(rough):
        if len(part) == 1 or sum(map(len, part)) > 2 * _MOST_AT_ONCE:
            pieces.extend(part)
            continue
        joined = " ".join(part)
        found = [piece for piece in map(str.strip, _segmenter(language).segment(joined)) if piece]
        whole = "".join("".join(found).split()) == "".join(joined.split())
        pieces.extend(found if whole else part)
    return pieces


def _grouped(rough: list[str]) -> list[list[str]]:
    """Neighbouring pieces, in groups of about as many characters as are split at once."""
    groups: list[list[str]] = [[]]
    size = 0
    for piece in rough:
        if size + len(piece) > _MOST_AT_ONCE and groups[-1]:
            groups.append([])
            size = 0
        groups[-1].append(piece)
        size += len(piece)
    return groups


@lru_cache(maxsize=64)
def _segmenter(language: str) -> Any:
    """The segmenter of a language; None where pysbd has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its regular expressions are in the old spelling
            import pysbd
            from pysbd.languages import LANGUAGE_CODES
    except ImportError as error:
        raise CorpusError(
            "split: sentences needs one more package. Run: pip install 'isoglot[prepare]', or use "
            "split: punctuation."
        ) from error
    known = language in LANGUAGE_CODES and language not in _CUT_AT_COMMAS
    return pysbd.Segmenter(language=language) if known else None

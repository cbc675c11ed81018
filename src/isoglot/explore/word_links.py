"""Two sentences, their words, and the links between them: what the tab *Alignment* draws.

Words, links and their order are those of `isoglot align` (`isoglot.alignment`). A link's weight is
the cosine of the two nearest tokens of its words at the chosen layer.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoglot.alignment.align_files import WITHOUT_RULES, word_method
from isoglot.alignment.aligner import Link, WordAligner, Words
from isoglot.alignment.config import AlignConfig
from isoglot.corpus.scripts import script_of
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.corpus.tokenization.vocabulary import NO_SPACES
from isoglot.errors import CorpusError, IsoglotError
from isoglot.languages import plain_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.evaluation.settings import Aligner
    from isoglot.explore.session import ExploreModel

MAX_WORDS = 100
"""Words of a sentence that are drawn."""
_MAX_CHARACTERS = 5_000
"""Characters of a sentence that are read: a text of megabytes costs nothing."""
_BY_DICTIONARY = ("zh", "th")
_BY_CHARACTER = (*sorted(WITHOUT_RULES), "yue", "wuu", "lzh")
_LANGUAGE_OF_SCRIPT = {
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "THAI": "th",
    "LAO": "lo",
    "MYANMAR": "my",
    "KHMER": "km",
}
"""Script without spaces -> the language that a sentence is taken for if none is named."""


@dataclass(frozen=True, slots=True)
class SentenceWords:
    """The words of a sentence, and how they were found."""

    words: list[str]
    note: str = ""
    """A sentence for the page; empty: the words are those between spaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedPair:
    """The words of two sentences, joined."""

    words: Words
    links: list[Link]
    """As `isoglot align` writes them."""
    cosines: list[list[float]]
    """For each first word, its cosine with each second word; -1 for a word without a token."""
    layer: int
    is_cut: bool
    """Whether a sentence is longer than the model's positions."""


def find_words(text: str, language: str = "") -> SentenceWords:
    """The words of a sentence; without a language, that of its script is taken.

    Text is split at spaces, as `isoglot align` does. Chinese and Thai are split as with its option
    `--pretokenize`, other text without spaces at every character.
    """
    text = text[:_MAX_CHARACTERS]
    code = plain_code(language) if language else _guess_language(text)
    note = ""
    if code in _BY_DICTIONARY:
        try:
            text = Pretokenizer({code: word_method(code)}).apply(text, code)
            note = f"Words of {code} are cut as by isoglot align --pretokenize {code}."
        except CorpusError as error:
            text, note = _spaced_characters(text), f"Each character is a word: {error}"
    elif code in _BY_CHARACTER:
        text = _spaced_characters(text)
        note = f"Each character of {code} is a word: there are no rules for its words."
    words = text.split()
    if len(words) > MAX_WORDS:
        note = f"{note} Only the first {MAX_WORDS} words of {len(words):,} are shown.".strip()
    return SentenceWords(words[:MAX_WORDS], note)


def _guess_language(text: str) -> str:
    if NO_SPACES.search(text) is None:
        return ""
    if any(unicodedata.name(letter, "").startswith(("HIRAGANA", "KATAKANA")) for letter in text):
        return "ja"
    return _LANGUAGE_OF_SCRIPT.get(script_of(text) or "", "")


def _spaced_characters(text: str) -> str:
    """The text with spaces around each character of a script without spaces."""
    spaced = ""
    for letter in text:
        if unicodedata.category(letter).startswith("M"):  # belongs to the letter before it
            spaced = f"{spaced.rstrip()}{letter} "
        else:
            spaced += f" {letter} " if NO_SPACES.match(letter) else letter
    return spaced


def link_words(
    model: ExploreModel,
    words: Words,
    *,
    aligner: Aligner,
    layer: int | None = None,
    languages: tuple[str, str] | None = None,
) -> LinkedPair:
    """Link the words of two sentences with a model.

    Args:
        model: encodes the sentences.
        words: at least one on each side.
        aligner: the rule that links tokens.
        layer: 0 for the embeddings, at most the model's last; none: that of `isoglot align`.
        languages: of the two sentences, for the model's language embeddings.
    """
    for side, number in zip(words, ("first", "second"), strict=True):
        if not side:
            raise IsoglotError(f"The {number} sentence has no word. Type both sentences.")
    config = AlignConfig(aligner=aligner, layer=layer)
    own = WordAligner(model.encoder, model.tokenizer, config, languages=languages)
    block = own.prepare([words])
    return LinkedPair(
        words=words,
        links=own.links(block)[0],
        cosines=own.word_cosines(words).tolist(),
        layer=own.layer,
        is_cut=bool(block.num_cut),
    )


def is_right_to_left(text: str) -> bool:
    """Whether the first letter with a direction is Arabic, Hebrew or another such script's."""
    strong: Any = (unicodedata.bidirectional(letter) for letter in text)
    return next((kind in ("R", "AL") for kind in strong if kind in ("L", "R", "AL")), False)


def cosine_range(pair: LinkedPair) -> tuple[float, float]:
    """The least and the greatest cosine of two words that have tokens; equal ones are spread."""
    known = [value for row in pair.cosines for value in row if value > -1]
    least, greatest = (min(known), max(known)) if known else (0.0, 1.0)
    return (least, greatest) if greatest > least else (least - 1, greatest)


def strengths(pair: LinkedPair, values: Sequence[float]) -> list[float]:
    """Cosines as shares of the range of the pair, from 0 to 1: what width and opacity follow."""
    least, greatest = cosine_range(pair)
    return [min(1.0, max(0.0, (value - least) / (greatest - least))) for value in values]

"""The texts of token ids: those of a corpus's tokenizer, or of a teacher's in auxiliary rows."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus.tokenization.vocabulary import SPACE_MARK
from isoglot.models.seq2seq_export import language_token
from isoglot.models.transplant.tokens import TokenizerTokens, is_text
from isoglot.objectives.distill import PreparedDistill

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.objectives.base import Objective


class TokenTexts:
    """The texts of ids: the tokenizer's, and those of language tokens after them."""

    def __init__(self, folder: Path, languages: tuple[str, ...] = ()) -> None:
        self._tokens = TokenizerTokens.open(folder)
        self.vocabulary = self._tokens.vocabulary
        self._languages = languages
        self._known: dict[int, str] = {}

    def __call__(self, number: int) -> str:
        """The text of an id."""
        if number not in self._known:
            self._known[number] = self._text(number)
        return self._known[number]

    def _text(self, number: int) -> str:
        """The token as the tokenizer writes it, or its characters where that is in bytes."""
        beyond = number - self.vocabulary.size
        if beyond >= 0:
            known = beyond < len(self._languages)
            return language_token(self._languages[beyond]) if known else f"#{number}"
        written: str = self._tokens.tokenizer.convert_ids_to_tokens(number)
        if number in self._tokens.special or self._tokens.format.convention != "bytes":
            return written
        # byte-level BPE writes a space and é as Ġ and Ã©
        text, starts_word = self._tokens.surface(written)
        if not is_text(text):
            return written
        return f"{SPACE_MARK}{text}" if starts_word else text


@cache
def _texts_of(folder: str, languages: tuple[str, ...]) -> TokenTexts:
    return TokenTexts(Path(folder), languages)


def texts_of(corpus: Corpus, objective: Objective | None = None) -> TokenTexts:
    """The texts of a corpus's ids, or of those that an objective's auxiliary rows hold."""
    if isinstance(objective, PreparedDistill):
        return _texts_of(objective.tokenizers.other, ())
    return _texts_of(str(corpus.tokenizer_folder), corpus.languages)

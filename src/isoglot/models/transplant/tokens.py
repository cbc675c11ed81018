"""An open tokenizer as a transplant sees it: tokens, their surfaces, roles of special tokens."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from isoglot.corpus.tokenizer import derive_vocabulary, open_tokenizer
from isoglot.models.transplant.surface import (
    Surface,
    Written,
    how_written,
    is_text,
    surface,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.types import Vocabulary

# roles that stand in for each other: BERT has no <s>, some models no [CLS]
_ROLES = {
    "cls": ("cls", "bos"),
    "bos": ("bos", "cls"),
    "sep": ("sep", "eos"),
    "eos": ("eos", "sep"),
    "pad": ("pad",),
    "mask": ("mask",),
    "unk": ("unk",),
}


class Tokens:
    """The tokens of one tokenizer.

    Raises:
        CorpusError: there is no tokenizer, or one without a special token that training needs.
    """

    def __init__(self, tokenizer: Any, folder: Path) -> None:
        """`tokenizer` is an open fast tokenizer; `folder` is for messages."""
        self.tokenizer = tokenizer
        self.folder = folder
        self.vocabulary: Vocabulary = derive_vocabulary(tokenizer, folder)
        self.ids: dict[str, int] = tokenizer.get_vocab()
        self.content: Any = json.loads(tokenizer.backend_tokenizer.to_str())
        self.written: Written = how_written(self.content)
        self.special = set(self.vocabulary.special)

    @classmethod
    def open(cls, folder: Path) -> Tokens:
        """The tokens of a folder's tokenizer."""
        return cls(open_tokenizer(folder), folder)

    @cached_property
    def by_id(self) -> list[tuple[int, str]]:
        """Every id and its token, ascending."""
        return sorted((index, token) for token, index in self.ids.items())

    @cached_property
    def unknown(self) -> int | None:
        """The id of the unknown token, if there is one."""
        index: int | None = self.tokenizer.unk_token_id
        return index

    @cached_property
    def _added(self) -> set[str]:
        return {token["content"] for token in self.content["added_tokens"]}

    def surface(self, token: str) -> Surface:
        """What an ordinary token spells; one that was added by hand is a word, as it stands."""
        if token in self._added and not token.startswith(self.written.mark or "\0"):
            return Surface(token, starts=True)
        return surface(token, self.written)

    def with_role(self, role: str) -> int | None:
        """The id of the special token with a role, or with one that stands in for it."""
        for name in _ROLES[role]:
            index: int | None = getattr(self.tokenizer, f"{name}_token_id")
            if index is not None:
                return index
        return None

    def roles(self) -> dict[int, list[str]]:
        """The special tokens that have roles, and which."""
        found: dict[int, list[str]] = {}
        for role in _ROLES:
            index = getattr(self.tokenizer, f"{role}_token_id")
            if index is not None:
                found.setdefault(index, []).append(role)
        return found

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts, without special tokens around them or inside."""
        encoded = self._plain.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    def pieces(self, spelled: Sequence[Surface]) -> list[list[int]]:
        """The ids into which this tokenizer splits texts; empty where one is unknown to it."""
        texts = [self.as_text(one) if is_text(one.text) else "" for one in spelled]
        split = [[] if self.unknown in ids else ids for ids in self.encode(texts)]
        # SentencePiece marks every text as a word; alone, the mark is no part of what is inside one
        mark = self.ids.get(self.written.mark)
        return [
            ids[1:] if ids and ids[0] == mark and not one.starts else ids
            for ids, one in zip(split, spelled, strict=True)
        ]

    def as_text(self, spelled: Surface) -> str:
        """The text to encode for a word, or for a piece inside one."""
        # only byte-level BPE sees the space before a word; the others mark every text's beginning
        space = " " if spelled.starts and self.written.convention == "bytes" else ""
        return space + spelled.text

    @cached_property
    def _plain(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(self.tokenizer.backend_tokenizer.to_str())
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True
        return tokenizer

"""Large made-up vocabularies and dictionaries, for the time that matching them takes."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np

from isoglot.models.transplant.config import TransplantConfig
from isoglot.models.transplant.dictionary import read_dictionaries
from isoglot.models.transplant.matching import Matches, match_tokens
from isoglot.models.transplant.tokens import TokenizerTokens
from tests.models.transplant.tiny_tokenizers import bpe, unigram

_LATIN, _CYRILLIC = "abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщыэюя"


def made_words(letters: str, number: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < number:
        found["".join(rng.choice(list(letters), rng.integers(3, 11)))] = None
    return list(found)


def large_match(folder: Path, *, tokens: int, entries: int) -> tuple[Matches, float]:
    """Byte-level BPE into SentencePiece, a fifth of it in the same script; and the seconds."""
    own = made_words(_LATIN, tokens // 5, 0)
    foreign = made_words(_CYRILLIC, tokens - len(own), 1)
    source = TokenizerTokens.open(
        bpe(folder / "source", [f"Ġ{w}" for w in own[:10_000]], byte_level=True)
    )
    target = TokenizerTokens.open(
        unigram(folder / "target", [f"▁{word}" for word in [*own, *foreign]])
    )
    lines = (f"{own[n % len(own)]}\t{foreign[n % len(foreign)]}\n" for n in range(entries))
    file = folder / "dictionary.txt"
    file.write_text("".join(lines), encoding="utf-8")
    start = process_time()
    matches = match_tokens(
        source, target, read_dictionaries([file]), TransplantConfig(fallback="subwords")
    )
    return matches, process_time() - start

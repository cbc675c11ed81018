"""Hand-made tokenizers of every kind, and tiny models over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast

from isoglot.models.transplant.tokens import BYTE_OF_LETTER
from tests.models.tiny import CONFIGS

KINDS = ("unigram", "sentencepiece-bpe", "bytes", "wordpiece")
LETTER_OF_BYTE = {byte: letter for letter, byte in BYTE_OF_LETTER.items()}
ROLES = {
    "roberta": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    "bert": ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"],
}


def byte_letters(text: str) -> str:
    return "".join(LETTER_OF_BYTE[byte] for byte in text.encode())


def save(tokenizer: Tokenizer, folder: Path, *, style: str = "roberta") -> Path:
    """Write a tokenizer folder with all special tokens."""
    cls, pad, sep, unknown, mask = ROLES[style]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in ROLES[style]])
    tokenizer.post_processor = TemplateProcessing(
        single=f"{cls} $A {sep}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (cls, sep)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        cls_token=cls,
        pad_token=pad,
        sep_token=sep,
        unk_token=unknown,
        mask_token=mask,
    ).save_pretrained(folder)
    return folder


def unigram(folder: Path, pieces: list[str], *, byte_fallback: bool = False) -> Path:
    """Special tokens first but the mask, which comes last, as in XLM-R."""
    scored = [(token, -1000.0) for token in ROLES["roberta"][:4]]
    scored += [(piece, -1.0 - len(scored) / 1000) for piece in pieces]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=3, byte_fallback=byte_fallback))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace()
    return save(tokenizer, folder)


def wordpiece(folder: Path, pieces: list[str], *, style: str = "bert") -> Path:
    """Special tokens backwards, so that none has the id that the other kinds give it."""
    tokens = dict.fromkeys([*reversed(ROLES[style]), *pieces])
    words = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(words, unk_token=ROLES[style][3]))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return save(tokenizer, folder, style=style)


def bpe(folder: Path, words: list[str], *, byte_level: bool) -> Path:
    """All that it takes to merge these marked words from characters, left to right."""
    letters = [LETTER_OF_BYTE[byte] for byte in range(256)] if byte_level else []
    vocabulary = dict.fromkeys([*ROLES["roberta"], *letters])
    merges: dict[tuple[str, str], None] = {}
    for word in words:
        vocabulary.update(dict.fromkeys(word))
        for end in range(2, len(word) + 1):
            merges[word[: end - 1], word[end - 1]] = None
            vocabulary[word[:end]] = None
    ids = {token: index for index, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.BPE(ids, list(merges), unk_token="<unk>"))  # noqa: S106
    if byte_level:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    else:
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return save(tokenizer, folder)


def of_words(kind: str, folder: Path, words: list[str], letters: str = "") -> Path:
    """A tokenizer of some kind with a token for each of these words, and single letters."""
    if kind == "unigram":
        return unigram(folder, [*(f"▁{word}" for word in words), *letters, "▁"])
    if kind == "wordpiece":
        return wordpiece(folder, [*words, *letters, *(f"##{letter}" for letter in letters)])
    if kind == "bytes":
        marked = [f"Ġ{byte_letters(word)}" for word in words]
        return bpe(folder, marked, byte_level=True)
    return bpe(folder, [*(f"▁{word}" for word in words), *letters], byte_level=False)


def model_for(folder: Path, *, architecture: str = "xlm-r", seed: int = 0, extra: int = 0) -> Path:
    """Write a tiny model into a tokenizer's folder."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    config = CONFIGS[architecture]()
    config.vocab_size = len(tokenizer) + extra
    config.pad_token_id = tokenizer.pad_token_id
    torch.manual_seed(seed)
    model = AutoModelForMaskedLM.from_config(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:  # biases of a new model are zero, and would hide a fault
                weight.add_(torch.randn_like(weight) * 0.1)
    model.save_pretrained(folder)
    return folder


def opened(folder: Path) -> tuple[Any, Any]:
    """The model and tokenizer of a folder, as anyone opens them."""
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    return model, PreTrainedTokenizerFast.from_pretrained(folder)

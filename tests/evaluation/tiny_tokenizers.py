"""Tokenizers of four kinds, trained on a few lines, and random models for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

if TYPE_CHECKING:
    from pathlib import Path

LINES = (
    "Habari ya asubuhi, rafiki yangu mpendwa",
    "naïve café crème brûlée und Größe",
    "我们的朋友们今天来了 ok",
    "สวัสดีครับ เพื่อน ๆ",
    "the quick brown fox jumps over the lazy dog and the friend",
)
KINDS = ("unigram", "wordpiece", "bytes", "words")
_SPECIAL = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}


def make_tokenizer(kind: str, lines: tuple[str, ...] = LINES) -> Any:
    """A tokenizer with `[CLS]` and `[SEP]`, of SentencePiece's, BERT's or RoBERTa's kind."""
    special = list(_SPECIAL.values())
    trainer: Any
    match kind:
        case "unigram":
            backend = Tokenizer(models.Unigram())
            backend.normalizer = normalizers.NFKC()
            backend.pre_tokenizer = pre_tokenizers.Metaspace()
            backend.decoder = decoders.Metaspace()
            trainer = trainers.UnigramTrainer(
                vocab_size=90,
                unk_token=_SPECIAL["unk"],
                special_tokens=special,
                show_progress=False,
            )
        case "wordpiece":
            backend = Tokenizer(models.WordPiece(unk_token=_SPECIAL["unk"]))
            backend.normalizer = normalizers.BertNormalizer(lowercase=True)
            backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            backend.decoder = decoders.WordPiece()
            trainer = trainers.WordPieceTrainer(
                vocab_size=110, special_tokens=special, show_progress=False
            )
        case "bytes":
            backend = Tokenizer(models.BPE())
            backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            backend.decoder = decoders.ByteLevel()
            trainer = trainers.BpeTrainer(
                vocab_size=330,
                special_tokens=special,
                initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                show_progress=False,
            )
        case _:
            backend = Tokenizer(models.WordLevel(unk_token=_SPECIAL["unk"]))
            backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
            trainer = trainers.WordLevelTrainer(special_tokens=special, show_progress=False)
    backend.train_from_iterator(lines, trainer)
    _number_tokens(backend)
    ids = [(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    template = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ids
    )
    trim = [processors.ByteLevel(trim_offsets=True)] if kind == "bytes" else []
    backend.post_processor = processors.Sequence([*trim, template])
    names = {f"{name}_token": token for name, token in _SPECIAL.items()}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def _number_tokens(backend: Tokenizer) -> None:
    """Sort the tokens: two of the trainers number them differently in every process."""
    special = list(_SPECIAL.values())
    if isinstance(backend.model, models.WordPiece):
        learned = sorted(backend.get_vocab().keys() - set(special))
        numbers = {token: number for number, token in enumerate([*special, *learned])}
        backend.model = models.WordPiece(numbers, unk_token=_SPECIAL["unk"])
    if isinstance(backend.model, models.Unigram):
        scores = [(token, round(score, 3)) for token, score in _unigram_scores(backend)]
        by_score = sorted(scores[len(special) :], key=lambda one: (-one[1], one[0]))
        backend.model = models.Unigram([*scores[: len(special)], *by_score], unk_id=0)


def _unigram_scores(backend: Tokenizer) -> list[tuple[str, float]]:
    return [(token, score) for token, score in json.loads(backend.to_str())["model"]["vocab"]]


def save_model(tokenizer: Any, folder: Path, *, seed: int = 0, **shape: float) -> Path:
    """A folder with a random BERT for a tokenizer."""
    torch.manual_seed(seed)
    config: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
        **shape,
    }
    model = BertForMaskedLM(
        BertConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **config)
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder

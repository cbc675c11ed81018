"""What a user gives, in small: text and pairs of the testbed, and an encoder, not trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForMaskedLM, XLMRobertaConfig

from isoglot.corpus.tokenization.build import TokenizerConfig, train_tokenizer
from isoglot.corpus.tokenization.vocabulary import open_tokenizer
from isoglot.testbed import write_raw_files


@dataclass(frozen=True)
class Given:
    """Files and an encoder of English and German."""

    raw: Path
    encoder: Path

    def text(self, code: str) -> Path:
        return self.raw / f"text/{code}.txt"

    def pairs(self, code: str) -> Path:
        return self.raw / f"pairs/{code}.tsv"


def make_given(folder: Path, *, vocab_size: int = 500, max_positions: int = 130) -> Given:
    """Text in three languages; the tokenizer has seen two of them."""
    raw = folder / "raw"
    write_raw_files(
        raw,
        languages=("en", "de", "sw"),
        num_sentences=1500,
        num_pairs=800,
        num_test_pairs=50,
        num_concepts=20,
        max_entities=12,
    )
    encoder = folder / "encoder"
    files = (raw / f"text/{code}.txt" for code in ("en", "de"))
    seen = [line for file in files for line in file.read_text("utf-8").splitlines() if line]
    train_tokenizer(seen, TokenizerConfig(vocab_size=vocab_size), encoder)
    save_encoder(encoder, max_positions=max_positions)
    return Given(raw, encoder)


def save_encoder(folder: Path, *, max_positions: int = 130) -> None:
    """A random encoder for the tokenizer of a folder."""
    tokenizer = open_tokenizer(folder)
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=max_positions,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        type_vocab_size=1,
    )
    AutoModelForMaskedLM.from_config(config).save_pretrained(folder)

"""Tokenizer folders as strangers publish them, and the text that is encoded with them.

    xlm-r        XLM-R's 250,000 pieces, its normalization (nmt_nfkc), class and ids
    wordpiece    mBERT's vocabulary, cased
    bpe          byte-level BPE of 50,000 tokens, split as GPT-2, RoBERTa and ModernBERT do

The scores of XLM-R's pieces are not in the data folder: they are made up from the pieces' order,
which is that of their scores. The merges of BPE are trained on the text itself.
"""

from __future__ import annotations

import io
import json
import lzma
import math
from typing import TYPE_CHECKING

from isoglot.corpus.cleaning.sentences import normalize_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_BPE_SIZE = 50_000
_BPE_SAMPLE = 100
"""Every so many lines BPE is trained on one."""


def characters_map() -> bytes:
    """The table of nmt_nfkc, which SentencePiece stores in every model it trains."""
    from sentencepiece import SentencePieceTrainer, sentencepiece_model_pb2

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["some words to train a model on"] * 20),
        model_writer=model,
        vocab_size=30,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    spec = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue()).normalizer_spec
    return bytes(spec.precompiled_charsmap)


def save_xlm_r(data: Path, folder: Path) -> None:
    """The folder of XLM-R, with scores by rank."""
    from transformers import XLMRobertaTokenizer

    with lzma.open(data / "tokenizer/xlmr-fairseq-dict.txt.xz", "rt", encoding="utf-8") as file:
        pieces = dict.fromkeys(line.rsplit(" ", 1)[0] for line in file)
    scores = [(piece, -3.5 - math.log(1 + rank / 20)) for rank, piece in enumerate(pieces)]
    vocab = [*((token, 0.0) for token in _SPECIAL), *scores, ("<mask>", 0.0)]
    tokenizer = XLMRobertaTokenizer(vocab=vocab, _spm_precompiled_charsmap=characters_map())
    tokenizer.save_pretrained(folder)


def save_wordpiece(data: Path, folder: Path) -> None:
    """The folder of mBERT, cased."""
    from transformers import BertTokenizer

    with lzma.open(data / "tokenizer/mbert-tydiqa-vocab.txt.xz", "rt", encoding="utf-8") as file:
        vocab = {line.rstrip("\n"): number for number, line in enumerate(file)}
    BertTokenizer(vocab=vocab, do_lower_case=False).save_pretrained(folder)


def save_bpe(files: list[Path], folder: Path) -> None:
    """The folder of a byte-level BPE, trained on every hundredth line of some files."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = [*_SPECIAL, "<mask>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=_BPE_SIZE,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_sampled(files), trainer)
    names = ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **dict(zip(names, special, strict=True))
    ).save_pretrained(folder)


def _sampled(files: list[Path]) -> Iterator[str]:
    for path in files:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                if number % _BPE_SAMPLE == 0:
                    yield line.rstrip("\n")


def paragraphs(data: Path, language: str) -> Iterator[str]:
    """The paragraphs of a language's text, once, normalized as by cleaning."""
    for path in sorted((data / "mono").glob(f"*/{language}.*xz")):
        with lzma.open(path, "rt", encoding="utf-8") as stream:
            for line in stream:
                text = json.loads(line)["text"] if ".jsonl" in path.name else line
                yield from filter(None, map(normalize_text, text.splitlines()))


def write_paragraphs(data: Path, folder: Path, megabytes: float) -> dict[str, float]:
    """Text of all languages, none repeated, a file each: language -> megabytes written.

    Languages with much text have equal shares.
    """
    languages = sorted({path.name.split(".")[0] for path in (data / "mono").glob("*/*.xz")})
    texts = {name: "\n".join([*paragraphs(data, name), ""]).encode() for name in languages}
    left, sizes = megabytes * 1e6, dict.fromkeys(languages, 0)
    for number, name in enumerate(sorted(languages, key=lambda one: len(texts[one]))):
        share = left / (len(languages) - number)
        sizes[name] = texts[name].rfind(b"\n", 0, int(share)) + 1
        left -= sizes[name]
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in sizes.items():
        (folder / f"{name}.txt").write_bytes(texts[name][:size])
    return {name: size / 1e6 for name, size in sizes.items()}

"""Encoders for `--small`: folders of two narrow layers under the names of the papers' models.

A folder in the working directory stands before the Hugging Face hub, so that commands and recipes
name `xlm-roberta-base` in either case. Weights are random; each tokenizer is of the model's own
kind (SentencePiece, WordPiece, byte-level BPE), trained on a few generated sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reproduce.small_text import WORLD, said_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_LANGUAGES = ("en", "de", "fr", "es", "ru", "ar", "hi", "zh", "th", "el")
_SENTENCES = 60
_SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}


def write_model(name: str, folder: Path) -> None:
    """Write one of the models into the folder, unless it is there."""
    if not (folder / "config.json").is_file():
        MODELS[name](folder)


def _sentences(languages: tuple[str, ...] = _LANGUAGES) -> list[str]:
    pairs = list(WORLD.pairs("en", "en", _SENTENCES, stream="tokenizer"))
    return [said_in(language, text) for language in languages for text, _ in pairs]


def _xlmr(folder: Path) -> None:
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    from isoglot.corpus.tokenization.build import TokenizerConfig
    from isoglot.corpus.tokenization.hf_tokenizer import save_hf_tokenizer
    from isoglot.corpus.tokenization.sentencepiece import to_hf_model, train_sentencepiece
    from isoglot.corpus.tokenization.word_counts import count_words

    config = TokenizerConfig(vocab_size=700)
    model = train_sentencepiece(count_words(_sentences()), config)
    save_hf_tokenizer(to_hf_model(model, "unigram", byte_fallback=True), folder, "NFC")
    _save(folder, XLMRobertaConfig, XLMRobertaForMaskedLM, max_position_embeddings=514)


def _mbert(folder: Path) -> None:
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    tokenizer = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    tokenizer.train_from_iterator(_sentences(), vocab_size=700, show_progress=False)
    names = ("pad", "unk", "cls", "sep", "mask")
    special: dict[str, Any] = {f"{name}_token": f"[{name.upper()}]" for name in names}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer._tokenizer, **special)  # noqa: SLF001
    fast.save_pretrained(folder)
    _save(folder, BertConfig, BertForMaskedLM, max_position_embeddings=512)


def _roberta(folder: Path) -> None:
    from tokenizers import ByteLevelBPETokenizer
    from tokenizers.processors import RobertaProcessing
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM

    tokenizer = ByteLevelBPETokenizer(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(
        _sentences(("en",)), vocab_size=500, special_tokens=special, show_progress=False
    )
    backend = tokenizer._tokenizer  # noqa: SLF001
    backend.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",  # noqa: S106 (no password)
        cls_token="<s>",  # noqa: S106
        pad_token="<pad>",  # noqa: S106
        eos_token="</s>",  # noqa: S106
        sep_token="</s>",  # noqa: S106
        unk_token="<unk>",  # noqa: S106
        mask_token="<mask>",  # noqa: S106
    )
    fast.save_pretrained(folder)
    _save(folder, RobertaConfig, RobertaForMaskedLM, max_position_embeddings=514)


def _save(folder: Path, config: Any, model: Any, **settings: int) -> None:
    import torch
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    torch.manual_seed(0)
    shape = {**_SHAPE, **settings, "vocab_size": len(tokenizer)}
    shape["pad_token_id"] = tokenizer.pad_token_id
    model(config(**shape)).save_pretrained(folder)


MODELS: dict[str, Callable[[Path], None]] = {
    "xlm-roberta-base": _xlmr,
    "xlm-roberta-large": _xlmr,
    "bert-base-multilingual-cased": _mbert,
    "roberta-base": _roberta,
}

"""Writing a changed tokenizer as a folder of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def save_tokenizer(changed: Any, like: Any, folder: Path) -> None:
    """Write a `tokenizers.Tokenizer` with the special tokens and limits of a transformers one.

    The generic fast class takes tokenizer.json word for word; some classes of single models would
    rebuild it from its pieces.
    """
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(
        tokenizer_object=changed,
        model_max_length=like.model_max_length,
        padding_side=like.padding_side,
        model_input_names=like.model_input_names,
        **like.special_tokens_map,
    ).save_pretrained(str(folder))

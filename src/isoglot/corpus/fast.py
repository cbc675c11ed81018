"""A fast Hugging Face tokenizer around a model of pieces or words.

The ids follow XLM-R: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3, then the pieces, `<mask>` last; and
so do the templates, `<s> a </s>` and `<s> a </s> </s> b </s>`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from isoglot.corpus.clean import SPACE_MARK, UNSEEN
from isoglot.corpus.disk import writing

if TYPE_CHECKING:
    from pathlib import Path

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
MASK = "<mask>"
Form = Literal["NFC", "NFKC"]


def save_fast(model: Any, folder: Path, form: Form) -> None:
    """Writes the folder with the generic fast class, which takes tokenizer.json word for word.

    XLM-R's own class would rebuild the segmentation from the pieces and forget byte fallback.
    """
    from transformers import PreTrainedTokenizerFast

    first, pad, last, unknown = SPECIAL
    fast = PreTrainedTokenizerFast(
        tokenizer_object=fast_tokenizer(model, form),
        bos_token=first,
        cls_token=first,
        eos_token=last,
        sep_token=last,
        pad_token=pad,
        unk_token=unknown,
        mask_token=MASK,
    )
    with writing(folder):
        fast.save_pretrained(str(folder))


def fast_tokenizer(model: Any, form: Form) -> Any:
    """The model between what cleaning does to a text and what decoding undoes."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(UNSEEN), ""),
            normalizers.NFKC() if form == "NFKC" else normalizers.NFC(),
            normalizers.Replace(Regex(rf"[\s{SPACE_MARK}]+"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE_MARK, prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(SPACE_MARK, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    tokenizer.add_special_tokens([AddedToken(MASK, lstrip=True, normalized=False)])
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B:0 </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer

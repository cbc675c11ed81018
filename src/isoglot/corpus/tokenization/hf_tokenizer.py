"""Fast Hugging Face tokenizers: built around a trained model, and encoding many texts at once.

The ids follow XLM-R: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3, then the pieces, `<mask>` last; and
so do the templates, `<s> a </s>` and `<s> a </s> </s> b </s>`.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.atomic import write_errors
from isoglot.corpus.cleaning.sentences import INVISIBLE
from isoglot.corpus.tokenization.vocabulary import SPACE_MARK, TOKENIZER_FILE
from isoglot.corpus.tokenization.word_counts import most_frequent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from isoglot.corpus.cleaning.sentences import UnicodeForm
    from isoglot.types import IntArray

SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")
MASK_TOKEN = "<mask>"  # noqa: S105
_CONFIG_FILE = "tokenizer_config.json"
_GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Classes of transformers that use a tokenizer.json as it is."""


def save_hf_tokenizer(model: Any, folder: Path, form: UnicodeForm) -> None:
    """Writes a tokenizer folder around a model of the tokenizers library.

    The class is the generic `PreTrainedTokenizerFast`, which uses tokenizer.json as it is: XLM-R's
    own class would rebuild the segmentation from the pieces and lose byte fallback.
    """
    from transformers import PreTrainedTokenizerFast

    first, pad, last, unknown = SPECIAL_TOKENS
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=build_hf_tokenizer(model, form),
        bos_token=first,
        cls_token=first,
        eos_token=last,
        sep_token=last,
        pad_token=pad,
        unk_token=unknown,
        mask_token=MASK_TOKEN,
    )
    with write_errors(folder):
        tokenizer.save_pretrained(str(folder))


def build_hf_tokenizer(model: Any, form: UnicodeForm) -> Any:
    """The model with a normalizer that does what cleaning does, and a decoder that undoes it."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(INVISIBLE), ""),
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
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer.add_special_tokens([AddedToken(MASK_TOKEN, lstrip=True, normalized=False)])
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B:0 </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer


def train_word_level(words: Mapping[str, int], size: int) -> Any:
    """The most frequent of counted words, as a model of the tokenizers library.

    A word carries the mark of the space before it, as in SentencePiece; every other word is
    unknown. `size` counts the special tokens too.
    """
    from tokenizers.models import WordLevel

    frequent = most_frequent(words, size - len(SPECIAL_TOKENS) - 1)
    tokens = [*SPECIAL_TOKENS, *(f"{SPACE_MARK}{word}" for word, _ in frequent)]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    return WordLevel(vocabulary, unk_token=SPECIAL_TOKENS[3])


class HFEncoder:
    """Encodes texts with a tokenizer.json, without adding special tokens.

    A text that spells a special token (`<mask>`) is encoded as plain text.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` is the tokenizer folder of a corpus."""
        self._tokenizer = _open_backend(folder)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True

    def encode(self, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        """The ids of all texts, concatenated, and the number of ids of each text."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return flatten_ids([encoding.ids for encoding in encoded])

    def sections(self) -> dict[str, Any]:
        """The content of tokenizer.json."""
        found: dict[str, Any] = json.loads(self._tokenizer.to_str())
        return found

    def normalize(self, text: str) -> str:
        """The text as the model sees it."""
        normalizer = self._tokenizer.normalizer
        return text if normalizer is None else str(normalizer.normalize_str(text))

    def pre_tokenize(self, text: str) -> list[str]:
        """The pre-tokens of a normalized text."""
        pre_tokenizer = self._tokenizer.pre_tokenizer
        found = pre_tokenizer.pre_tokenize_str(text) if pre_tokenizer is not None else [(text,)]
        return [piece[0] for piece in found]

    def encode_with_offsets(
        self, texts: Sequence[str]
    ) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """For each text its ids, and the characters [start, end) that each of them covers."""
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [(encoding.ids, encoding.offsets) for encoding in encoded]


def _open_backend(folder: Path) -> Any:
    """The tokenizer of the tokenizers library, with the scores that it has in transformers.

    Reading a tokenizer.json, the library rounds about a quarter of the scores to a neighboring
    number. Classes of transformers for one model (`XLMRobertaTokenizer`) read them exactly, in
    Python, so that ties between segmentations may fall differently; the generic class does not.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    config = folder / _CONFIG_FILE
    if not isinstance(tokenizer.model, Unigram) or not config.is_file():
        return tokenizer
    name = json.loads(config.read_text("utf-8")).get("tokenizer_class", _GENERIC[0])
    if name not in _GENERIC:
        model = json.loads((folder / TOKENIZER_FILE).read_text("utf-8"))["model"]
        tokenizer.model = Unigram(
            [tuple(piece) for piece in model["vocab"]],
            unk_id=model["unk_id"],
            byte_fallback=model.get("byte_fallback", False),
        )
    return tokenizer


def flat_steps(step: Mapping[str, Any] | None, inside: str) -> list[Mapping[str, Any]]:
    """The steps of a normalizer or pre-tokenizer of tokenizer.json, sequences in them taken apart.

    `inside` is the name under which a `Sequence` holds its steps.
    """
    if step is None:
        return []
    if step["type"] == "Sequence":
        return [one for part in step[inside] for one in flat_steps(part, inside)]
    return [step]


def flatten_ids(rows: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """The ids of all rows, concatenated, and the length of each row."""
    lengths = np.fromiter(map(len, rows), dtype=np.int32, count=len(rows))
    ids = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(lengths.sum()))
    return ids, lengths

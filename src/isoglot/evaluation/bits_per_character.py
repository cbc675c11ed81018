"""Bits per character of a masked language model, comparable across vocabularies.

About 15 % of the words of each line, chosen from the text alone (`hidden_words`), are hidden with
all their tokens. The code length of a hidden word is the sum of

- minus log2 of the probability of each of its tokens, left to right: in pass k the first k tokens
  of every hidden word of the line are shown, the others are masks. A line is encoded as many times
  as its longest hidden word has tokens;
- minus log2 of the share of hidden words with as many tokens. The number of masks tells the model
  how many tokens a word has: this is what that costs. Without it a vocabulary of single characters
  would be told the length of every word for nothing;
- 18 bits, a uniform code over 2^18 characters (more than Unicode has), for each character that no
  token or only the unknown token covers.

Bits per character is the sum over all lines, divided by the characters of the hidden words.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from math import log, log2
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.tokenization.encode import count_statistics
from isoglot.corpus.tokenization.hf_tokenizer import flatten_ids
from isoglot.errors import ModelError
from isoglot.evaluation.embed import encode_in_batches, language_ids
from isoglot.evaluation.hidden_words import find_hidden, text_parts
from isoglot.evaluation.loading import MissingLMHead
from isoglot.evaluation.tokenize_texts import lossy_note, special_tokens, tokenize_with_offsets
from isoglot.intervals import SAMPLES
from isoglot.models.length_batches import cpu_batch_tokens
from isoglot.types import BoolArray, FloatArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from isoglot.corpus.storage.manifest import TokenizerStats
    from isoglot.corpus.tokenization.pretokenization import Pretokenizer
    from isoglot.evaluation.hidden_words import Window
    from isoglot.models.encoder import Encoder

_QUANTILES = (0.025, 0.975)
FALLBACK_BITS = 18
"""Bits of a character that no known token covers."""
_LINES_PER_BLOCK = 512
_GPU_BATCH_TOKENS = 32_768
_LOGITS_PER_CHUNK = 1 << 26
"""Logits in memory at one time: 256 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLengths:
    """The code length of the hidden words of each line; empty lines have zeros."""

    token_bits: FloatArray
    """Of their tokens."""
    count_bits: FloatArray
    """Of their numbers of tokens."""
    fallback_bits: FloatArray
    """Of characters that no known token covers."""
    characters: LongArray
    """Characters of the hidden words."""
    words: int
    """Hidden words of all lines; words that share a token count as one."""
    tokens: int
    """Their tokens."""

    @property
    def bits(self) -> FloatArray:
        """The code length of each line."""
        return self.token_bits + self.count_bits + self.fallback_bits

    @property
    def bits_per_character(self) -> float:
        """Over all lines; NaN if no line has a word."""
        return _ratio(float(self.bits.sum()), int(self.characters.sum()))

    def interval(self, *, seed: int = 0) -> tuple[float, float]:
        """The 95 % interval of bits per character: a bootstrap over lines."""
        drawn = _resampled([self.bits, self.characters], self.characters > 0, seed)
        low, high = np.quantile(drawn[:, 0] / drawn[:, 1], _QUANTILES)
        return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The bits per character of a second model divided by those of a first, less one."""

    value: float
    low: float
    """2.5 % quantile of samples of the lines."""
    high: float
    """97.5 % quantile."""


def change(before: CodeLengths, after: CodeLengths, *, seed: int = 0) -> Change:
    """The relative change between two models on the same lines, by a paired bootstrap over lines.

    A negative change is an improvement; 0.02 is two percent more bits.
    """
    assert len(before.characters) == len(after.characters), "the same lines"
    columns = [before.bits, before.characters, after.bits, after.characters]
    own = (before.characters > 0) & (after.characters > 0)
    drawn = _relative(_resampled(columns, own, seed))
    value = _relative(np.stack(columns, axis=1)[own].sum(0)[None])[0] if own.any() else np.nan
    low, high = np.quantile(drawn, _QUANTILES)
    return Change(value=float(value), low=float(low), high=float(high))


def _relative(sums: FloatArray) -> FloatArray:
    """(samples,) from sums of bits and characters before, bits and characters after."""
    changes: FloatArray = (sums[:, 2] / sums[:, 3]) / (sums[:, 0] / sums[:, 1]) - 1
    return changes


def _resampled(columns: Sequence[Any], own: BoolArray, seed: int) -> FloatArray:
    """(samples, columns) sums over as many lines, drawn with replacement; NaN without lines."""
    table = np.stack(columns, axis=1).astype(float)[own]
    if not len(table):
        return np.full((1, len(columns)), np.nan)
    rng, number = np.random.default_rng(seed), len(table)
    # one sample at a time: all at once would take lines x samples numbers
    counts = (
        np.bincount(rng.integers(number, size=number), minlength=number) for _ in range(SAMPLES)
    )
    return np.stack([own_counts @ table for own_counts in counts])


def _ratio(numerator: float, denominator: int) -> float:
    return numerator / denominator if denominator else float("nan")


@torch.no_grad()
def code_lengths(
    encoder: Encoder,
    tokenizer: Any,
    lines: Iterable[str],
    *,
    language: str | None = None,
    pretokenizer: Pretokenizer | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> CodeLengths:
    """The code length of the hidden words of each line.

        encoder, tokenizer = load_for_scoring(folder)
        print(code_lengths(encoder, tokenizer, lines, language="sw").bits_per_character)

    Args:
        encoder: the model, with its LM head.
        tokenizer: its tokenizer.
        lines: texts, in any number; they are normalized as `prepare` normalizes them.
        language: their code, for the model's language embeddings and pretokenization.
        pretokenizer: that of the model's training text (`Pretokenizer.load(folder)`).
        seed: another one chooses other words. Compare models with the same.
        progress: called with the number of lines that are done.
        note: called with a sentence if the tokenizer changes text before it codes it.
    """
    _check(encoder, tokenizer)
    if note is not None and (said := lossy_note(tokenizer)):
        note(said)
    coder = _Coder(encoder, tokenizer, language, note)
    rest, done = iter(lines), 0
    while block := list(islice(rest, _LINES_PER_BLOCK)):
        coder.add([normalize_text(line) for line in block], pretokenizer, seed)
        done += len(block)
        if progress is not None:
            progress(done)
    return coder.code_lengths()


class _Coder:
    """Codes blocks of lines."""

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Any,
        language: str | None,
        note: Callable[[str], None] | None,
    ) -> None:
        self._encoder, self._tokenizer, self._language = encoder, tokenizer, language
        self._start, self._end = special_tokens(tokenizer)
        self._limit = encoder.max_positions - len(self._start) - len(self._end)
        self._languages = language_ids(encoder, language, 1, note)
        self._bits: list[FloatArray] = []
        self._characters: list[LongArray] = []
        self._uncoded: list[LongArray] = []
        self._counts: list[Counter[int]] = []
        """For each line, how many of its hidden words have a number of tokens."""

    def add(self, lines: Sequence[str], pretokenizer: Pretokenizer | None, seed: int) -> None:
        """Code the hidden words of some normalized lines."""
        parts = [(n, part) for n, line in enumerate(lines) for part in text_parts(line, seed)]
        texts = [part.text for _, part in parts]
        if pretokenizer is not None and self._language is not None:
            texts = [pretokenizer.apply(text, self._language) for text in texts]
        characters, uncoded = np.zeros((2, len(lines)), np.int64)
        counts = [Counter[int]() for _ in lines]
        windows: list[Window] = []
        owners: list[int] = []
        encoded = tokenize_with_offsets(self._tokenizer, texts)
        unknown = self._tokenizer.unk_token_id
        for (number, part), text, tokens in zip(parts, texts, encoded, strict=True):
            hidden = find_hidden(part, text, tokens, unknown, self._limit)
            characters[number] += hidden.characters
            uncoded[number] += hidden.uncoded
            for window in hidden.windows:
                windows.append(window)
                owners.append(number)
                counts[number].update(unit.end - unit.start for unit in window.units)
        bits = np.zeros(len(lines))
        np.add.at(bits, owners, self._window_bits(windows))
        self._bits.append(bits)
        self._characters.append(characters)
        self._uncoded.append(uncoded)
        self._counts += counts

    def _window_bits(self, windows: Sequence[Window]) -> FloatArray:
        """The bits of the hidden tokens of each window."""
        sequences: list[list[int]] = []
        targets: list[tuple[list[int], list[int]]] = []
        owners: list[int] = []
        for owner, window in enumerate(windows):
            for shown, places in passes(window, self._tokenizer.mask_token_id):
                sequences.append([*self._start, *shown, *self._end])
                positions = [len(self._start) + place for place in places]
                targets.append((positions, [window.ids[place] for place in places]))
                owners.append(owner)
        bits = np.zeros(len(windows))
        languages = None if self._languages is None else self._languages * len(sequences)
        on_gpu = next(self._encoder.parameters()).is_cuda
        for indices, rows, states in encode_in_batches(
            self._encoder,
            sequences,
            self._tokenizer.pad_token_id,
            layers=False,
            languages=languages,
            max_tokens=_GPU_BATCH_TOKENS if on_gpu else cpu_batch_tokens(),
        ):
            length = rows.ids.shape[1]
            flat = [
                (row * length + position, token, owners[index])
                for row, index in enumerate(indices.tolist())
                for position, token in zip(*targets[index], strict=True)
            ]
            places, tokens, of_window = torch.tensor(flat).T
            lost = self._losses(states, places, tokens)
            np.add.at(bits, of_window.numpy(), lost / log(2))
        return bits

    def _losses(self, states: Any, places: torch.Tensor, tokens: torch.Tensor) -> FloatArray:
        """Minus the log-probability of tokens at flat places, in nats."""
        device, found = states.hidden.device, []
        size = max(1, _LOGITS_PER_CHUNK // self._encoder.vocabulary_size)
        for at, token in zip(places.split(size), tokens.split(size), strict=True):
            logits = self._encoder.logits_at(states, at.to(device))
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            right = logits.gather(1, token.to(device)[:, None])[:, 0]
            found.append((logits.logsumexp(dim=1) - right).double().cpu().numpy())
        return np.concatenate(found)

    def code_lengths(self) -> CodeLengths:
        """Of all lines that were added."""
        total: Counter[int] = sum(self._counts, Counter())
        words = total.total()
        of_count = {tokens: -log2(number / words) for tokens, number in total.items()}
        count_bits = [sum(n * of_count[k] for k, n in own.items()) for own in self._counts]
        empty = np.zeros(0, np.int64)
        return CodeLengths(
            token_bits=np.concatenate([empty.astype(float), *self._bits]),
            count_bits=np.array(count_bits, float),
            fallback_bits=FALLBACK_BITS * np.concatenate([empty, *self._uncoded]).astype(float),
            characters=np.concatenate([empty, *self._characters]),
            words=words,
            tokens=sum(tokens * number for tokens, number in total.items()),
        )


def passes(window: Window, mask: int) -> Iterator[tuple[list[int], list[int]]]:
    """For each pass the ids with masks, and the places of the tokens that are predicted."""
    longest = max(unit.end - unit.start for unit in window.units)
    for number in range(longest):
        shown = list(window.ids)
        places = []
        for unit in window.units:
            begin = unit.start + number
            if begin < unit.end:
                places.append(begin)
                shown[begin : unit.end] = [mask] * (unit.end - begin)
        yield shown, places


def token_statistics(
    tokenizer: Any, lines: Sequence[str], byte_tokens: Iterable[int] = ()
) -> TokenizerStats:
    """Words, tokens and unknown tokens of lines: `tokens_per_word` and `unknown_rate`."""
    texts = [text for line in lines if (text := normalize_text(line))]
    if not texts:
        return count_statistics([], flatten_ids([])[0], None, ())
    encoded = tokenizer(texts, add_special_tokens=False, split_special_tokens=True, verbose=False)
    ids, _ = flatten_ids(encoded["input_ids"])
    return count_statistics(texts, ids, tokenizer.unk_token_id, byte_tokens)


def _check(encoder: Encoder, tokenizer: Any) -> None:
    name = tokenizer.name_or_path
    if isinstance(encoder.lm_head, MissingLMHead):
        raise ModelError(
            f"{name} is loaded without an LM head, and bits per character need a masked language "
            "model that can run packed rows. Give the folder that was pre-trained."
        )
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"{name} has no mask token, and bits per character need a masked language model. Set "
            "its mask_token and save the tokenizer again."
        )
    if not tokenizer.is_fast:
        raise ModelError(
            f"{name} has only a slow tokenizer, which does not say which characters a token "
            "covers. Save a fast version of it (tokenizer.json) in the folder."
        )

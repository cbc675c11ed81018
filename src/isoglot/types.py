"""The values that cross folders: vocabulary, examples, sequences, rows and batches.

One sequence type serves every encoder objective (see `Sequence`); one mask rule says who may look
at whom inside it (`Rule`, `ALLOW`); packed into `Rows`, the sequences of all objectives go through
the encoder in one pass.

    Text, Pair, ...  --objective.build-->  Sequence  --pack-->  Rows  --encode-->  losses
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from typing_extensions import override

if TYPE_CHECKING:  # preparing data needs no torch
    from collections.abc import Callable, Mapping

    import torch
    from torch import Tensor

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

IGNORE = -100
"""The target of a position where nothing is predicted (cross-entropy's own ignore index)."""


class Rule(IntEnum):
    """Who may look at whom inside a sequence, as a table over the tokens' parts (`ALLOW`)."""

    FULL = 0
    """Every token sees every token: MLM, TLM, sentences, descriptions."""
    TRANSLATE = 1
    """Part 0 is a sentence and sees itself; part 1, slots of its translation, sees both parts."""
    GENERATE = 2
    """Part 0 is a sentence and sees itself; a slot (part 1) sees the sentence and itself only."""


ALLOW: npt.NDArray[np.bool_] = np.array(
    [
        [[True, True], [True, True]],
        [[True, False], [True, True]],
        [[True, False], [True, False]],
    ]
)
"""`ALLOW[rule][part of the query][part of the key]`. A token always sees itself besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What batching needs to know of a tokenizer: sizes, special ids, where words start."""

    size: int
    """Number of ids the tokenizer can produce, special tokens included."""
    cls: int
    """First token of a sequence: `<s>` or `[CLS]`."""
    sep: int
    """Last token of a sequence, and the separator: `</s>` or `[SEP]`."""
    pad: int
    mask: int
    special: tuple[int, ...]
    """All special ids, ascending: never masked, never drawn as a random replacement."""
    word_starts: BoolArray
    """For each id: does this piece begin a new word? Drives whole-word masking."""
    is_special: BoolArray = field(init=False, repr=False, compare=False)
    """For each id: is it special?"""
    ordinary: LongArray = field(init=False, repr=False, compare=False)
    """The ids that are not special."""

    def __post_init__(self) -> None:
        is_special = np.zeros(self.size, np.bool_)
        is_special[list(self.special)] = True
        object.__setattr__(self, "is_special", is_special)
        object.__setattr__(self, "ordinary", np.flatnonzero(~is_special))

    def language_token(self, language: int) -> int:
        """The id of a language's own token, which an encoder-decoder has after all of these."""
        return self.size + language


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One draw from a text stream: consecutive sentences of one language.

    No special tokens at the edges; separators between sentences if the stream was asked for them.
    """

    ids: IntArray
    sentences: IntArray
    """Index of the sentence of each token, from 0."""
    language: int
    other_language: int = -1
    """Another language of the corpus, drawn with the text; -1 where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One draw from a stream of translations: two sentences, in the order the stream drew."""

    first: IntArray
    second: IntArray
    first_language: int
    second_language: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One draw of mentions: an entity's name in its context, and the entity's description."""

    context: IntArray
    sentences: IntArray
    """Index of the sentence of each token of the context, from 0."""
    start: int
    """Where the name begins in the context."""
    end: int
    """Where it has ended."""
    language: int
    entity: int
    description: IntArray
    description_language: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One draw of triples: descriptions of a subject and an object, and how they are related."""

    subject: IntArray
    subject_language: int
    relation: int
    object: IntArray
    object_language: int
    object_entity: int
    known: LongArray
    """All entities that the relation is known to lead to from the subject, this object too."""


Example = Text | Pair | Mention | Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """What every objective builds: tokens that are encoded together and see no other sequence.

    All arrays have one entry a token. The original ids are always
    `where(targets != IGNORE, targets, ids)`.
    """

    ids: IntArray
    positions: IntArray
    """From 0; the model adds its own offset (XLM-R starts at 2)."""
    languages: IntArray
    sentences: IntArray
    parts: IntArray
    """The token's role, read by the rule: 0 a sentence, 1 a slot."""
    targets: IntArray
    """The original id where it must be predicted, else IGNORE."""
    rule: Rule = Rule.FULL
    sites: Mapping[str, LongArray] = field(default_factory=dict)
    """Named positions an objective wants back: the [CLS], the first token of a mention, ..."""
    labels: Mapping[str, LongArray] = field(default_factory=dict)
    """Named numbers an objective wants back: what a sentence is, an entity, a relation, ..."""

    def __len__(self) -> int:
        return len(self.ids)

    def original(self) -> IntArray:
        """The ids before masking."""
        return np.where(self.targets != IGNORE, self.targets, self.ids)


@dataclass(slots=True, kw_only=True)
class Rows:
    """Packed sequences: B rows of L tokens, every tensor (B, L) int64. Padding has sequence -1."""

    ids: Tensor
    positions: Tensor
    languages: Tensor
    sentences: Tensor
    parts: Tensor
    rules: Tensor
    sequences: Tensor
    """Index of the token's sequence inside its row, -1 for padding."""
    whole: bool = field(default=False, init=False)
    """Is every row one sequence, without padding, of which every token sees every token? False is
    never wrong, only slower."""

    def map(self, change: Callable[[Tensor], Tensor]) -> Rows:
        """The same rows with every tensor changed."""
        changed = Rows(**{name: change(tensor) for name, tensor in self.tensors().items()})
        changed.whole = self.whole
        return changed

    def tensors(self) -> dict[str, Tensor]:
        """All of them, by name."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "whole"}

    def to(self, device: torch.device | str) -> Rows:
        """The same rows on a device."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


@dataclass(slots=True, kw_only=True)
class Batch:
    """One micro-batch: the main rows, what is predicted where, and what each objective wants back.

    `positions`, `targets` and `weights` list the prediction sites of all objectives, objective by
    objective; `spans[name]` is the slice of one. A site is a flat index into rows (b * L + l).
    `weights` is 1 at a real site and 0 where the buffer is padded to a fixed capacity.
    """

    rows: Rows
    positions: Tensor
    targets: Tensor
    weights: Tensor
    spans: dict[str, tuple[int, int]]
    sites: dict[str, dict[str, Tensor]]
    """objective -> site name -> flat indices into the main rows."""
    side: dict[str, Rows]
    """objective -> rows that only its `before_pass` encodes."""
    side_sites: dict[str, dict[str, Tensor]]
    """objective -> site name -> flat indices into its side rows."""
    labels: dict[str, dict[str, Tensor]]
    """objective -> label name -> numbers, in the order of its sequences, side rows included."""
    counts: dict[str, int]
    """objective -> number of things it predicts here, known before the pass."""
    num_tokens: int
    """Tokens that are not padding, main rows only."""
    cursor: Cursor | None = None
    """Where the data goes on after the step that this micro-batch belongs to."""

    def to(self, device: torch.device | str) -> Batch:
        """The same batch with every tensor on a device, without waiting where memory is pinned."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Batch:
        """The same batch in page-locked memory (called by the loader)."""
        return self.map(lambda tensor: tensor.pin_memory())

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The same batch with every tensor changed, always in the same order."""

        def named(sites: dict[str, dict[str, Tensor]]) -> dict[str, dict[str, Tensor]]:
            return {o: {n: change(v) for n, v in of.items()} for o, of in sites.items()}

        return replace(
            self,
            rows=self.rows.map(change),
            positions=change(self.positions),
            targets=change(self.targets),
            weights=change(self.weights),
            sites=named(self.sites),
            side={name: rows.map(change) for name, rows in self.side.items()},
            side_sites=named(self.side_sites),
            labels=named(self.labels),
        )


@dataclass(slots=True, kw_only=True)
class Decoding:
    """The decoder's side of a micro-batch: padded, one row for each sequence to write."""

    rows: Rows
    sources: Tensor
    """(B') the main row that each row reads."""
    positions: Tensor
    """Flat indices into `rows` of all prediction sites, objective by objective."""
    targets: Tensor
    spans: dict[str, tuple[int, int]]
    """objective -> its slice of `positions` and `targets`."""

    def map(self, change: Callable[[Tensor], Tensor]) -> Decoding:
        """The same with every tensor changed."""
        return replace(
            self,
            rows=self.rows.map(change),
            sources=change(self.sources),
            positions=change(self.positions),
            targets=change(self.targets),
        )


@dataclass(slots=True, kw_only=True)
class Seq2SeqBatch(Batch):
    """A micro-batch of an encoder-decoder: the main rows are padded, one sequence each.

    Their prediction sites are the hidden tokens; an objective that decodes predicts them, or
    others, in `decoding` instead.
    """

    decoding: Decoding
    pad: int
    """The id of padding."""

    def widen(self, width: int) -> None:
        """Make the main rows at least so wide, with padding; what points into them follows."""
        old = self.rows.ids.shape[1]
        if width <= old:
            return
        fills = {"ids": self.pad, "sequences": -1}
        rows = {}
        for name, tensor in self.rows.tensors().items():
            rows[name] = tensor.new_full((len(tensor), width), fills.get(name, 0))
            rows[name][:, :old] = tensor
        self.rows = Rows(**rows)

        def moved(flat: Tensor) -> Tensor:
            return flat // old * width + flat % old

        self.positions = moved(self.positions)
        self.sites = {o: {n: moved(v) for n, v in of.items()} for o, of in self.sites.items()}

    @override
    def map(self, change: Callable[[Tensor], Tensor]) -> Seq2SeqBatch:
        changed = Batch.map(self, change)  # a dataclass with slots has no super
        assert isinstance(changed, Seq2SeqBatch)
        return replace(changed, decoding=self.decoding.map(change))


class Draw(NamedTuple):
    """One draw: which cell of the mixture, and the how-manieth draw from that cell it is."""

    cell: int
    counter: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """All the state of the data: what follows is a function of it and of the recipe."""

    step: int = 0
    """Steps taken in this stage."""
    counters: tuple[int, ...] = ()
    """Draws taken from each cell (source, language)."""
    pending: tuple[Draw, ...] = ()
    """Draws taken but not yet packed, oldest first."""

    @property
    def draws(self) -> int:
        """Draws taken so far; the n-th draw's cell is a function of the seed and n."""
        return sum(self.counters)

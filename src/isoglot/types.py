"""The data types that folders exchange: vocabulary, examples, sequences, rows and batches.

Every objective builds the same `Sequence`; a `MaskRule` gives its attention pattern. Packed into
`Rows`, the sequences of all objectives go through the encoder in one forward pass.

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
    from collections import abc
    from collections.abc import Callable, Mapping

    import torch
    from torch import Tensor

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Rng = np.random.Generator

IGNORE = -100
"""The target of a position without a prediction: the `ignore_index` of cross-entropy."""


class MaskRule(IntEnum):
    """The attention pattern of a sequence, a table over the roles of its tokens (`ALLOW`)."""

    FULL = 0
    """Every token attends to every token: MLM, TLM, sentences, descriptions."""
    TRANSLATE = 1
    """The sentence (role 0) attends to itself; a slot (role 1) to the sentence and all slots."""
    GENERATE = 2
    """The sentence (role 0) attends to itself; a slot (role 1) to the sentence and itself."""


ALLOW: npt.NDArray[np.bool_] = np.array(
    [
        [[True, True], [True, True]],
        [[True, False], [True, True]],
        [[True, False], [True, False]],
    ]
)
"""`ALLOW[rule][role of the query][role of the key]`. A token always attends to itself, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The tokenizer as batching sees it: size, special ids, which ids begin a word."""

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
    """For each id: does it begin a word? Read by whole-word masking."""
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
        """The id of a language's token, which an encoder-decoder adds after the tokenizer's."""
        return self.size + language


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One draw from a text stream: consecutive sentences of one language.

    No special tokens at the edges; separators between sentences with `separators: true`.
    """

    ids: IntArray
    sentences: IntArray
    """Index of the sentence of each token, from 0."""
    language: int
    target_language: int = -1
    """Another language of the corpus, drawn with the text, that `btmlm` and `backtranslate`
    generate; -1 if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One draw from a parallel stream: a sentence and its translation, in the drawn order."""

    first: IntArray
    second: IntArray
    first_language: int
    second_language: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One draw of mentions: an entity's name in its context, and a description of the entity."""

    context: IntArray
    sentences: IntArray
    """Index of the sentence of each token of the context, from 0."""
    start: int
    """The first token of the name in the context."""
    end: int
    """The token after the name's last."""
    language: int
    entity: int
    description: IntArray
    description_language: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TripleExample:
    """One draw of triples: descriptions of subject and object, and the relation's number."""

    subject: IntArray
    subject_language: int
    relation: int
    object: IntArray
    object_language: int
    object_entity: int
    known_objects: LongArray
    """All entities that are objects of this subject and relation, this one included."""


Example = Text | Pair | Mention | TripleExample


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """The input that an objective builds; its tokens attend to no other sequence.

    Every array has one entry per token. The ids before masking are always
    `where(targets != IGNORE, targets, ids)`.
    """

    ids: IntArray
    positions: IntArray
    """From 0; the model adds its own offset (XLM-R starts at 2)."""
    languages: IntArray
    sentences: IntArray
    roles: IntArray
    """The token's role, which the mask rule reads: 0 sentence, 1 slot."""
    targets: IntArray
    """The original id where it is predicted, else IGNORE."""
    rule: MaskRule = MaskRule.FULL
    markers: Mapping[str, LongArray] = field(default_factory=dict)
    """Named positions that the objective's loss reads: [CLS], a mention's first token, ..."""
    labels: Mapping[str, LongArray] = field(default_factory=dict)
    """Named numbers that the objective's loss reads: a sentence's hash, an entity, ..."""

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
    roles: Tensor
    rules: Tensor
    sequences: Tensor
    """Index of the token's sequence inside its row, -1 for padding."""
    unmasked: bool = field(default=False, init=False)
    """Is every row one unpadded sequence with full attention? False is always correct, and
    slower."""

    def map(self, change: Callable[[Tensor], Tensor]) -> Rows:
        """The same rows with every tensor changed."""
        changed = Rows(**{name: change(tensor) for name, tensor in self.tensors().items()})
        changed.unmasked = self.unmasked
        return changed

    def tensors(self) -> dict[str, Tensor]:
        """All tensors, by name."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "unmasked"}

    def to(self, device: torch.device | str) -> Rows:
        """The same rows on a device."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


@dataclass(slots=True, kw_only=True)
class Batch:
    """One micro-batch: the main rows, the targets, and the markers and labels of each objective.

    `target_positions`, `targets` and `target_weights` list the target positions of all objectives,
    objective by objective; `target_slices[name]` is the slice of one. A target position is a flat
    index into the main rows (b * L + l). A weight is 1 for a target, 0 for padding of the list.
    """

    rows: Rows
    target_positions: Tensor
    targets: Tensor
    target_weights: Tensor
    target_slices: dict[str, tuple[int, int]]
    markers: dict[str, dict[str, Tensor]]
    """objective -> marker -> flat indices into the main rows."""
    aux_rows: dict[str, Rows]
    """objective -> auxiliary rows, which only its `before_forward` encodes."""
    aux_markers: dict[str, dict[str, Tensor]]
    """objective -> marker -> flat indices into its auxiliary rows."""
    labels: dict[str, dict[str, Tensor]]
    """objective -> label -> numbers, in the order of its sequences, auxiliary ones included."""
    num_targets: dict[str, int]
    """objective -> number of its predictions, known before the forward pass."""
    num_tokens: int
    """Tokens of the main rows without padding."""
    cursor: Cursor | None = None
    """The state of the data after the step that this micro-batch belongs to."""

    def to(self, device: torch.device | str) -> Batch:
        """The batch on a device; the copy is asynchronous where memory is pinned."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Batch:
        """The batch in page-locked memory; called by torch's DataLoader."""
        return self.map(lambda tensor: tensor.pin_memory())

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with every tensor changed, always in the same order."""

        def named(tensors: dict[str, dict[str, Tensor]]) -> dict[str, dict[str, Tensor]]:
            return {o: {n: change(v) for n, v in of.items()} for o, of in tensors.items()}

        return replace(
            self,
            rows=self.rows.map(change),
            target_positions=change(self.target_positions),
            targets=change(self.targets),
            target_weights=change(self.target_weights),
            markers=named(self.markers),
            aux_rows={name: rows.map(change) for name, rows in self.aux_rows.items()},
            aux_markers=named(self.aux_markers),
            labels=named(self.labels),
        )


@dataclass(slots=True, kw_only=True)
class Decoding:
    """The decoder's input and targets: padded rows, one for each sequence to generate."""

    rows: Rows
    source_rows: Tensor
    """(B') the main row that each decoder row cross-attends to."""
    target_positions: Tensor
    """Flat indices into `rows` of all target positions, objective by objective."""
    targets: Tensor
    target_slices: dict[str, tuple[int, int]]
    """objective -> its slice of `target_positions` and `targets`."""

    def map(self, change: Callable[[Tensor], Tensor]) -> Decoding:
        """The same with every tensor changed."""
        return replace(
            self,
            rows=self.rows.map(change),
            source_rows=change(self.source_rows),
            target_positions=change(self.target_positions),
            targets=change(self.targets),
        )


@dataclass(slots=True, kw_only=True)
class Seq2SeqBatch(Batch):
    """A micro-batch of an encoder-decoder: padded main rows, one source sequence each.

    The targets of the main rows are masked tokens; an objective with a decoder predicts the
    targets of `decoding` instead.
    """

    decoding: Decoding
    pad: int
    """The id of padding."""

    def widen(self, width: int) -> None:
        """Pad the main rows to at least a width; flat indices into them are moved."""
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

        self.target_positions = moved(self.target_positions)
        self.markers = {o: {n: moved(v) for n, v in of.items()} for o, of in self.markers.items()}

    @override
    def map(self, change: Callable[[Tensor], Tensor]) -> Seq2SeqBatch:
        changed = Batch.map(self, change)  # a dataclass with slots has no super
        assert isinstance(changed, Seq2SeqBatch)
        return replace(changed, decoding=self.decoding.map(change))


class Draw(NamedTuple):
    """One draw: a component of the mixture, and how many draws it had before this one."""

    component: int
    counter: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The whole state of the data: all later batches are a function of it and of the recipe."""

    step: int = 0
    """Steps taken in this stage."""
    counters: tuple[int, ...] = ()
    """Draws taken from each component of the mixture."""
    pending: abc.Sequence[Draw] = ()
    """Draws taken but not yet packed, oldest first."""

    @property
    def draws(self) -> int:
        """Draws taken so far; the n-th draw's component is a function of the seed and n."""
        return sum(self.counters)

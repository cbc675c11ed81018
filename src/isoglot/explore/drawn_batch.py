"""A micro-batch in words: what each token of its rows is, and which tokens it attends to.

Reads a `BuiltBatch`; every token gets the tokenizer's text, its kind (masked, slot, padding, ...),
the text of its target and its markers. `attention` evaluates the mask function of training
(`models/attention.py`) for some tokens of a row. `batch_html.py` and `batch_svg.py` draw both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from isoglot.explore.token_texts import texts_of
from isoglot.models.attention import mask_function
from isoglot.objectives.mass import UNSEEN
from isoglot.types import Batch, BoolArray, MaskRule, Rows, Seq2SeqBatch

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.batching.builder import PlacedSequence
    from isoglot.explore.stage_batches import BuiltBatch, StageBatches
    from isoglot.types import Vocabulary

_NOT_SHOWN = ("slots", "first", "first tokens", "second tokens")
"""Markers of slots, which are a kind of token, of rows that `backtranslate` fills, and of all
ordinary tokens (`token_contrast`)."""
Kind = Literal["token", "special", "masked", "replaced", "kept", "slot"]
Part = Literal["main", "auxiliary", "decoder"]

KINDS: dict[Kind, str] = {
    "token": "a token of the text",
    "special": "a special token",
    "masked": "the mask token; below it the target, if the LM head predicts one here",
    "replaced": "a random token in place of the target",
    "kept": "the target itself, shown and predicted",
    "slot": "a slot: an extra mask token after a sentence",
}
"""What each kind of token is, for legends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnToken:
    """One token of a row."""

    text: str
    """The tokenizer's text of the id."""
    kind: Kind
    position: int
    language: str
    target: str | None = None
    """Text of the token that the LM head predicts here."""
    markers: tuple[str, ...] = ()
    """Names of positions that an objective's loss reads: query, mention, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSequence:
    """One sequence of a row."""

    objective: str
    """The name of the objective that built it, in the recipe."""
    origin: str
    """The `source/language` of its draw."""
    draw: int
    """The number of its draw in the micro-batch; sequences of one draw belong together."""
    number: int
    """Its place in the order in which the sequences were built."""
    rule: MaskRule
    start: int
    """The place of its first token in the row."""
    tokens: tuple[DrawnToken, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRow:
    """One row: its sequences, from left to right."""

    part: Part
    objective: str
    """The objective that encodes an auxiliary row; empty for others."""
    number: int
    """From 0, among the rows of its part."""
    length: int
    """Tokens of the row, padding included."""
    sequences: tuple[DrawnSequence, ...]
    rows: Rows
    """The rows it is one of."""

    @property
    def padding(self) -> int:
        """Tokens of padding."""
        return self.length - sum(len(one.tokens) for one in self.sequences)

    @property
    def title(self) -> str:
        """What it is called in lists: `row 3`, `auxiliary row 0 of moco`, `decoder row 2`."""
        kind = {"main": "row", "auxiliary": "auxiliary row", "decoder": "decoder row"}[self.part]
        return f"{kind} {self.number}" + (f" of {self.objective}" if self.objective else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBatch:
    """All rows of a micro-batch: main rows, then auxiliary rows, then those of the decoder."""

    rows: tuple[DrawnRow, ...]
    batch: Batch

    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives, in the order of the recipe."""
        return tuple(self.batch.num_targets)

    def languages(self) -> tuple[str, ...]:
        """Languages of its tokens, sorted."""
        tokens = (t for row in self.rows for one in row.sequences for t in one.tokens)
        return tuple(sorted({token.language for token in tokens}))


def decode_batch(built: BuiltBatch, stage: StageBatches) -> DrawnBatch:
    """Every row of a micro-batch, decoded."""
    batch = built.batch
    decoder = _Decoder(built, stage)
    rows = decoder.rows("main", batch.rows, _targets(batch), batch.markers)
    for name, of in batch.aux_rows.items():
        markers = {name: batch.aux_markers.get(name, {})}
        rows += decoder.rows("auxiliary", of, {}, markers, objective=name)
    if isinstance(batch, Seq2SeqBatch):
        decoding = batch.decoding
        targets = dict(
            zip(decoding.target_positions.tolist(), decoding.targets.tolist(), strict=True)
        )
        rows += decoder.rows("decoder", decoding.rows, targets, {})
    return DrawnBatch(rows=tuple(rows), batch=batch)


def attention(row: DrawnRow, start: int = 0, stop: int | None = None) -> BoolArray:
    """(n, n) which of the tokens start .. stop of a row (queries) attends to which (keys).

    The decoder's attention is causal, besides.
    """
    places = torch.arange(start, row.length if stop is None else stop)
    number = torch.tensor(row.number)
    seen: Tensor = mask_function(row.rows)(number, number, places[:, None], places[None, :])
    if row.part == "decoder":
        seen = seen & (places[:, None] >= places[None, :])
    return seen.numpy()


def cross_attention(drawn: DrawnBatch, row: DrawnRow) -> tuple[BoolArray, DrawnRow]:
    """(n, m) which tokens of its source row a decoder's row attends to, and the source row."""
    from isoglot.pretraining.train_module import visible_to_decoder

    batch = drawn.batch
    assert isinstance(batch, Seq2SeqBatch)
    number = int(batch.decoding.source_rows[row.number])
    visible = visible_to_decoder(batch)[number].numpy()
    (source,) = [one for one in drawn.rows if one.part == "main" and one.number == number]
    tokens = sum(len(one.tokens) for one in row.sequences)
    return visible[None, :].repeat(tokens, axis=0), source


def _targets(batch: Batch) -> dict[int, int]:
    """Flat index of the main rows -> the target's id; padding of the list is left out."""
    used = batch.target_weights > 0
    places, ids = batch.target_positions[used].tolist(), batch.targets[used].tolist()
    return dict(zip(places, ids, strict=True))


class _Decoder:
    """Rows of tensors to `DrawnRow`s."""

    def __init__(self, built: BuiltBatch, stage: StageBatches) -> None:
        self._stage, self._origins = stage, built.origins
        self._placed: dict[tuple[Part, str], list[tuple[int, PlacedSequence]]] = {}
        for number, one in sorted(enumerate(built.placed), key=lambda pair: pair[1].start):
            key = (_part(one.is_aux, one.is_decoder), one.name if one.is_aux else "")
            self._placed.setdefault(key, []).append((number, one))

    def rows(
        self,
        part: Part,
        rows: Rows,
        targets: dict[int, int],
        markers: dict[str, dict[str, Tensor]],
        *,
        objective: str = "",
    ) -> list[DrawnRow]:
        """All rows of one part of a batch."""
        own = self._stage.objectives.get(objective) if part == "auxiliary" else None
        texts, named = texts_of(self._stage.corpus, own), _named_places(markers)
        fields = {name: tensor.flatten().tolist() for name, tensor in rows.tensors().items()}
        languages, width = self._stage.corpus.languages, rows.ids.shape[1]
        sequences: list[list[DrawnSequence]] = [[] for _ in rows.ids]
        for order, one in self._placed.get((part, objective), []):
            tokens = []
            for place in range(one.start, one.start + len(one.sequence)):
                number, target = fields["ids"][place], targets.get(place)
                wanted = None if part == "decoder" else target
                token = DrawnToken(
                    text=texts(number),
                    kind=_kind(number, fields["roles"][place], wanted, texts.vocabulary),
                    position=fields["positions"][place],
                    language=languages[fields["languages"][place]],
                    target=None if target is None else texts(target),
                    markers=named.get(place, ()),
                )
                tokens.append(token)
            drawn = DrawnSequence(
                objective=one.name,
                origin=self._origins[one.draw],
                draw=one.draw,
                number=order,
                rule=MaskRule(fields["rules"][one.start]),
                start=one.start % width,
                tokens=tuple(tokens),
            )
            sequences[one.start // width].append(drawn)
        return [
            DrawnRow(
                part=part,
                objective=objective,
                number=number,
                length=width,
                sequences=tuple(some),
                rows=rows,
            )
            for number, some in enumerate(sequences)
        ]


def _part(is_aux: bool, is_decoder: bool) -> Part:  # noqa: FBT001 (two flags of a sequence)
    return "auxiliary" if is_aux else "decoder" if is_decoder else "main"


def _kind(number: int, role: int, target: int | None, vocabulary: Vocabulary) -> Kind:
    if role == 1:
        return "slot"
    if number == vocabulary.mask:
        return "masked"
    if target is not None:
        return "kept" if number == target else "replaced"
    beyond = number >= vocabulary.size
    return "special" if beyond or vocabulary.is_special[number] else "token"


def _named_places(markers: dict[str, dict[str, Tensor]]) -> dict[int, tuple[str, ...]]:
    """Flat index -> names of markers there.

    They are numbered from 1 in the order of the batch: `query 3` belongs to `key 3`.
    """
    found: dict[int, tuple[str, ...]] = {}
    for of in markers.values():
        for name, places in of.items():
            if name in _NOT_SHOWN:
                continue
            for number, place in enumerate(places.tolist(), 1):
                label = name if name == UNSEEN else f"{name} {number}"
                found[place] = (*found.get(place, ()), label)
    return found

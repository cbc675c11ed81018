"""Rows of a batch as text: what the model reads and what it predicts, for trackers.

    mlm, row 0
      input:   <s> The old <mask> stands by the river .</s>
      targets: house

Only the first batch of a stage is decoded, before its first step; the batch itself is not changed.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from isoglot.corpus.tokenization.vocabulary import TOKENIZER_FILE
from isoglot.types import Batch, Seq2SeqBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isoglot.corpus import Corpus

    Decode = Callable[[Sequence[int]], str]

_PER_OBJECTIVE = 3
"""Sequences that are shown of each objective."""
_MAX_CHARACTERS = 2000
"""Characters that are shown of a sequence."""


def with_first_sampled(
    batches: Iterator[list[Batch]], corpus: Corpus, show: Callable[[str], None]
) -> Iterator[list[Batch]]:
    """The batches of all steps; the first one is drawn now, and shown as text."""
    first = next(batches, None)
    if first is None:
        return batches
    show(sample_text(first[0], tokenizer_decode(corpus)))
    return chain([first], batches)


def tokenizer_decode(corpus: Corpus) -> Decode:
    """Token ids to text, special tokens included."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(corpus.tokenizer_folder / TOKENIZER_FILE))

    def decode(ids: Sequence[int]) -> str:
        text: str = tokenizer.decode(list(ids), skip_special_tokens=False)
        return text

    return decode


def sample_text(batch: Batch, decode: Decode) -> str:
    """The first sequences of each objective: their input, and the targets in their order."""
    shown: dict[str, list[str]] = {name: [] for name in batch.num_targets}
    targets, owners = _targets(batch), _owners(batch)
    width = batch.rows.ids.shape[1]
    for row, (ids, sequences) in enumerate(
        zip(batch.rows.ids.tolist(), batch.rows.sequences.tolist(), strict=True)
    ):
        for number in range(max(sequences) + 1):
            places = [place for place, owner in enumerate(sequences) if owner == number]
            flat = [row * width + place for place in places]
            name = next((owners[place] for place in flat if place in owners), None)
            if name is None or len(shown[name]) == _PER_OBJECTIVE:
                continue
            lines = [f"{name}, row {row}", f"  input:   {decode([ids[place] for place in places])}"]
            words = [decode([targets[place]]) for place in flat if place in targets]
            if words:
                lines.append(f"  targets: {' | '.join(words)}")
            shown[name].append("\n".join(line[:_MAX_CHARACTERS] for line in lines))
    parts = [text for texts in shown.values() for text in texts]
    return "\n".join([*parts, *_decoder_samples(batch, decode)])


def _targets(batch: Batch) -> dict[int, int]:
    """Flat index of the main rows -> the target's id; padding of the list is left out."""
    used = batch.target_weights > 0
    places, ids = batch.target_positions[used].tolist(), batch.targets[used].tolist()
    return dict(zip(places, ids, strict=True))


def _owners(batch: Batch) -> dict[int, str]:
    """Flat index of the main rows -> the objective that predicts or reads something there."""
    found = {
        place: name
        for name, markers in batch.markers.items()
        for places in markers.values()
        for place in places.tolist()
    }
    weights = batch.target_weights > 0
    for name, (start, end) in batch.target_slices.items():
        used = batch.target_positions[start:end][weights[start:end]]
        found |= dict.fromkeys(used.tolist(), name)
    return found


def _decoder_samples(batch: Batch, decode: Decode) -> list[str]:
    """What a decoder is to write: its targets, row by row."""
    if not isinstance(batch, Seq2SeqBatch):
        return []
    decoding, width = batch.decoding, batch.decoding.rows.ids.shape[1]
    rows: dict[int, list[int]] = {}
    pairs = zip(decoding.target_positions.tolist(), decoding.targets.tolist(), strict=True)
    for place, target in pairs:
        rows.setdefault(place // width, []).append(target)
    return [
        f"decoder, row {row}\n  targets: {decode(ids)[:_MAX_CHARACTERS]}"
        for row, ids in list(rows.items())[:_PER_OBJECTIVE]
    ]

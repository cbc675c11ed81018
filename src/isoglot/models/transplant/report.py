"""What became of a model: how its tokens were matched, its size before and after.

Kept beside the new model as transplant.json; the command line prints it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from isoglot.models.transplant.dictionary import FileCounts
from isoglot.models.transplant.matching import KINDS
from isoglot.whole_file import write_json

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.models.encoder import Encoder
    from isoglot.models.transplant.dictionary import Dictionary
    from isoglot.models.transplant.matching import Matches
    from isoglot.models.transplant.tokens import Tokens

FILE = "transplant.json"
_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a model is."""

    tokens: int
    parameters: int
    bytes: int

    @classmethod
    def of(cls, encoder: Encoder) -> Size:
        """The size of a model; tied weights count once."""
        weights = list(encoder.model.parameters())
        return cls(
            tokens=encoder.vocabulary_size,
            parameters=sum(weight.numel() for weight in weights),
            bytes=sum(weight.numel() * weight.element_size() for weight in weights),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a model."""

    kinds: dict[str, int]
    """Tokens of the new model, by how they came by their vectors."""
    examples: dict[str, list[str]]
    """Some tokens of each kind, with what they were made from."""
    before: Size
    after: Size
    notes: list[str]
    """Sentences on positions, and on all that a user may not expect."""
    dictionaries: list[FileCounts]

    def write(self, folder: Path) -> None:
        """Keep it in a model's folder."""
        write_json(folder / FILE, asdict(self), indent=1)


def report_on(
    before: Encoder,
    after: Encoder,
    matches: Matches,
    *,
    source: Tokens,
    target: Tokens,
    notes: list[str],
    dictionary: Dictionary | None = None,
) -> Report:
    """The report on a new model."""
    counts = Counter(matches.kinds)
    spare = before.vocabulary_size - source.vocabulary.size
    if spare:
        notes = [*notes, f"{spare} vectors of the source that no token used were left out."]
    return Report(
        kinds={kind: counts[kind] for kind in KINDS if counts[kind]},
        examples=_examples(matches, source, target),
        before=Size.of(before),
        after=Size.of(after),
        notes=notes,
        dictionaries=[] if dictionary is None else dictionary.counts,
    )


def _examples(matches: Matches, source: Tokens, target: Tokens) -> dict[str, list[str]]:
    """Tokens spread evenly over those of each kind: the first ones are often alike."""
    source_names, target_names = dict(source.by_id), dict(target.by_id)
    of_kind: dict[str, list[int]] = {}
    for index, kind in enumerate(matches.kinds):
        if index in target_names:
            of_kind.setdefault(kind, []).append(index)
    examples = {}
    for kind, ids in of_kind.items():
        step = max(1, len(ids) // _EXAMPLES)
        examples[kind] = [
            " ".join(
                [
                    target_names[index],
                    *(["←"] if matches.sources_of(index) else []),
                    *(source_names.get(other, "?") for other in matches.sources_of(index)),
                ]
            )
            for index in ids[::step][:_EXAMPLES]
        ]
    return {kind: examples[kind] for kind in KINDS if kind in examples}

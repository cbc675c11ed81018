"""The report of a transplant: how tokens were matched, and the model's size before and after.

It is in the new model's folder as transplant.json; the command line prints it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from isoglot.atomic import write_json
from isoglot.models.transplant.dictionary import FileCounts
from isoglot.models.transplant.matching import MATCH_KINDS
from isoglot.models.transplant.used_tokens import WordSplits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.models.encoder import Encoder
    from isoglot.models.transplant.dictionary import Dictionary
    from isoglot.models.transplant.matching import Matches
    from isoglot.models.transplant.tokens import TokenizerTokens

FILE = "transplant.json"
_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """The size of a model."""

    tokens: int
    parameters: int
    bytes: int

    @classmethod
    def of(cls, encoder: Encoder) -> ParameterCount:
        """Count a model's parameters; tied weights count once."""
        weights = list(encoder.model.parameters())
        return cls(
            tokens=encoder.vocabulary_size,
            parameters=sum(weight.numel() for weight in weights),
            bytes=sum(weight.numel() * weight.element_size() for weight in weights),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransplantReport:
    """How a model got its new vocabulary."""

    kinds: dict[str, int]
    """Tokens of the new model by the kind of their match."""
    examples: dict[str, list[str]]
    """Some tokens of each kind, with their source tokens."""
    before: ParameterCount
    after: ParameterCount
    notes: list[str]
    """Sentences on positions, and on everything that a user may not expect."""
    dictionaries: list[FileCounts]
    splits: list[WordSplits]
    """Tokens per word of the texts that words were chosen from, before and after."""

    def write(self, folder: Path) -> None:
        """Write it into a model's folder."""
        write_json(folder / FILE, asdict(self), indent=1)


def build_report(
    before: Encoder,
    after: Encoder,
    matches: Matches,
    *,
    source: TokenizerTokens,
    target: TokenizerTokens,
    notes: list[str],
    dictionary: Dictionary | None = None,
    splits: Sequence[WordSplits] = (),
) -> TransplantReport:
    """Build the report of a new model."""
    counts = Counter(matches.kinds)
    spare = before.vocabulary_size - source.vocabulary.size
    if spare:
        notes = [*notes, f"{spare} embeddings of the source that belong to no token were dropped."]
    return TransplantReport(
        kinds={kind: counts[kind] for kind in MATCH_KINDS if counts[kind]},
        examples=_examples(matches, source, target),
        before=ParameterCount.of(before),
        after=ParameterCount.of(after),
        notes=notes,
        dictionaries=[] if dictionary is None else dictionary.counts,
        splits=list(splits),
    )


def _examples(
    matches: Matches, source: TokenizerTokens, target: TokenizerTokens
) -> dict[str, list[str]]:
    """Tokens spread evenly over each kind, since the first ones are often similar."""
    source_names, target_names = dict(source.by_id), dict(target.by_id)
    examples = {}
    for kind in MATCH_KINDS:
        ids = [i for i, own in enumerate(matches.kinds) if own == kind and i in target_names]
        if not ids:
            continue
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
    return examples

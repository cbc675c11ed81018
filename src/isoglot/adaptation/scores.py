"""The scores of one model on held-out lines and pairs, by example, so that two models compare.

    OUT/heldout --score_model--> ModelScores (before), ModelScores (after) --comparison.py--> table

- bits per character: of hidden words of each line (`evaluation/bits_per_character.py`)
- tokens per word: of the same lines
- retrieval: accuracy@1 both ways on held-out pairs, of the mean state of every layer; which of them
  counts is chosen on other pairs (`comparison.py`)
- sentence vectors: the same with the vectors of a sentence-transformers folder
- word alignment: links of every layer against gold links, if there are any
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.corpus.tokenization.encode import count_words
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import CorpusError
from isoglot.evaluation.bits_per_character import code_lengths
from isoglot.evaluation.data import read_split, splits_to_score
from isoglot.evaluation.embed import embed, layer_groups
from isoglot.evaluation.exported import exported_vectors
from isoglot.evaluation.loading import MissingLMHead, load_for_scoring
from isoglot.evaluation.pairs import read_pairs
from isoglot.evaluation.retrieval import nearest_neighbors
from isoglot.evaluation.settings import FeatureConfig
from isoglot.evaluation.word_alignment import align_words
from isoglot.intervals import ExampleValues, measure, pack_outcomes, unpack_outcomes
from isoglot.languages import language_sides
from isoglot.tasks import TASKS, find_task
from isoglot.tasks.base import Task, TaskSplit
from isoglot.tasks.pretokenized import pretokenize_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    import torch

    from isoglot.models.encoder import Encoder

    Pairs = Mapping[str, tuple[list[str], list[str]]]
    Report = Callable[[str, float], None]
    """Called with a sentence on what was just scored, and the share of all work that is done."""

_ALIGNER = FeatureConfig(aligner="argmax")
"""SimAlign's: each sentence is encoded alone, so that no training on joined pairs is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScores:
    """What one model scores, by example."""

    bits: dict[str, ExampleValues] = field(default_factory=dict)
    """Language -> bits and characters of each line; empty for an encoder without an LM head."""
    tokens: dict[str, ExampleValues] = field(default_factory=dict)
    """Language -> tokens and words of each line."""
    retrieval: dict[str, list[str]] = field(default_factory=dict)
    """Pair of languages -> for each layer the packed outcomes, one row for each direction."""
    vectors: dict[str, str] = field(default_factory=dict)
    """Pair of languages -> outcomes of the vectors that sentence-transformers gives."""
    alignment: dict[str, list[ExampleValues]] = field(default_factory=dict)
    """Pair of languages -> for each layer the wrong and all links of each sentence pair."""

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "bits": {code: _plain(values) for code, values in self.bits.items()},
            "tokens": {code: _plain(values) for code, values in self.tokens.items()},
            "retrieval": self.retrieval,
            "vectors": self.vectors,
            "alignment": {name: [*map(_plain, found)] for name, found in self.alignment.items()},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ModelScores:
        """From `to_json`."""
        return cls(
            bits={code: _values(one) for code, one in found["bits"].items()},
            tokens={code: _values(one) for code, one in found["tokens"].items()},
            retrieval=dict(found["retrieval"]),
            vectors=dict(found["vectors"]),
            alignment={name: [*map(_values, one)] for name, one in found["alignment"].items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldoutData:
    """What models are scored on."""

    lines: Mapping[str, Sequence[str]]
    """Language -> lines; of a language without text, its side of the pairs."""
    pairs: Pairs
    gold: Sequence[tuple[Task[Any, Any], TaskSplit]] = ()
    """Gold word alignments."""

    @classmethod
    def read(
        cls, folder: Path, gold: Sequence[tuple[Task[Any, Any], TaskSplit]] = ()
    ) -> HeldoutData:
        """Read `text/LANGUAGE.txt` and `pairs/A-B.tsv`."""
        texts = sorted((folder / "text").glob("*.txt"))
        lines = {file.stem: read_text_lines(file) for file in texts}
        files = sorted((folder / "pairs").glob("*.tsv"))
        pairs = read_pairs(files, limit=10**6) if files else {}
        sides: dict[str, list[str]] = {}
        for name, texts_of_pair in pairs.items():
            for code, side in zip(language_sides(name), texts_of_pair, strict=True):
                if code not in lines:
                    sides.setdefault(code, []).extend(side)
        lines |= {code: list(dict.fromkeys(side)) for code, side in sides.items()}
        return cls(lines=lines, pairs=pairs, gold=gold)


def read_text_lines(file: Path) -> list[str]:
    """The lines of a text file that are not empty."""
    lines = file.read_text(encoding="utf-8").split("\n")
    return [line.strip() for line in lines if line.strip()]


def gold_alignments(
    folders: Sequence[Path], languages: Collection[str]
) -> list[tuple[Task[Any, Any], TaskSplit]]:
    """The gold word alignments in folders: of these languages if there are any, else all.

    Raises:
        CorpusError: a folder has none.
    """
    found: list[tuple[Task[Any, Any], TaskSplit]] = []
    for folder in folders:
        tasks = [find_task(name) for name in TASKS if TASKS[name].startswith("gold_alignments:")]
        here = [
            (task, split)
            for task in tasks
            if task.splits_in(folder)
            for split in splits_to_score(task, folder, None)
        ]
        if not here:
            raise CorpusError(
                f"alignments: {folder} has no gold word alignments. docs/tasks.md shows the two "
                "layouts that are read (alignment, alignment-awesome)."
            )
        found += here
    own = [one for one in found if set(language_sides(one[1].language)) <= set(languages)]
    return own or found


def score_model(
    folder: Path,
    data: HeldoutData,
    *,
    sentences: Path | None = None,
    report: Report,
    note: Callable[[str], None] | None = None,
) -> ModelScores:
    """Score a model folder; the quickest numbers come first.

    `sentences` is the model's sentence-transformers folder; without one, sentence-transformers
    takes the mean of the last layer.
    """
    encoder, tokenizer = load_for_scoring(folder, note=note)
    split = Pretokenizer.load(folder)
    lines = {code: _pretokenized(own, code, split) for code, own in data.lines.items()}
    done, total = 0, 2 * len(lines) + len(data.pairs) + len(data.gold)

    def advance(sentence: str) -> None:
        nonlocal done
        done += 1
        report(sentence, done / total)

    tokens = {}
    for code, own in lines.items():
        tokens[code] = _tokens_per_word(tokenizer, own)
        advance(f"{code}: {tokens[code].value:.2f} tokens per word")
    retrieval = {}
    for name, sides in data.pairs.items():
        retrieval[name] = score_pairs(encoder, tokenizer, name, sides, note=note)
        last = unpack_outcomes(retrieval[name][-1]).mean()
        advance(f"{name}: retrieval {100 * last:.1f} % with the last layer")
    vectors = {name: by_layer[-1] for name, by_layer in retrieval.items()}
    if sentences is not None:
        vectors = score_vectors(sentences, data.pairs)
    bits: dict[str, ExampleValues] = {}
    for code, raw in data.lines.items():
        values = _bits(encoder, tokenizer, raw, code, split, note)
        if values is None:
            advance(f"{code}: no bits per character, the encoder has no LM head")
        else:
            bits[code] = values
            advance(f"{code}: {values.value:.3f} bits per character")
    alignment: dict[str, list[ExampleValues]] = {}
    for task, part in data.gold:
        # two data sets may have the same languages
        name = f"{part.language}, {task.name}" if part.language in alignment else part.language
        alignment[name] = _alignment_errors(encoder, tokenizer, task, part, note)
        advance(f"{name}: word alignments scored")
    return ModelScores(
        bits=bits,
        tokens=tokens,
        retrieval=retrieval,
        vectors=vectors,
        alignment=alignment,
    )


def score_pairs(
    encoder: Encoder,
    tokenizer: Any,
    name: str,
    sides: tuple[list[str], list[str]],
    *,
    note: Callable[[str], None] | None = None,
) -> list[str]:
    """Packed outcomes of retrieval with the mean state, for each layer."""
    found: list[str] = []
    for layers in layer_groups(encoder, 2 * len(sides[0])):
        one, other = (
            embed(encoder, tokenizer, side, layers=layers, language=code, note=note)
            for side, code in zip(sides, language_sides(name), strict=True)
        )
        found += [_outcomes(*both, sides=sides) for both in zip(one, other, strict=True)]
    return found


def score_vectors(folder: Path, pairs: Pairs) -> dict[str, str]:
    """Packed outcomes of retrieval with the vectors of a sentence-transformers folder."""
    encoder, tokenizer = load_for_scoring(folder)
    module = exported_vectors(folder)
    last = layer_groups(encoder, 1)[-1][-1]
    found = {}
    for name, sides in pairs.items():
        one, other = (
            module(
                embed(encoder, tokenizer, side, layers=[last], first_token=module.pooling == "cls")[
                    0
                ]
            )
            for side in sides
        )
        found[name] = _outcomes(one, other, sides=sides)
    return found


def _outcomes(
    first: torch.Tensor, second: torch.Tensor, *, sides: tuple[list[str], list[str]]
) -> str:
    """Whose nearest sentence of the other side is its translation, or has the same text."""
    forward, backward = nearest_neighbors(first, second)
    rows = [
        [texts[best] == text for text, best in zip(texts, near.indices[:, 0].tolist(), strict=True)]
        for texts, near in ((sides[1], forward), (sides[0], backward))
    ]
    return pack_outcomes(np.array(rows))


def _pretokenized(lines: Sequence[str], code: str, split: Pretokenizer) -> list[str]:
    return [pretokenize_text(line, code, split) for line in lines] if split.methods else list(lines)


def _bits(
    encoder: Encoder,
    tokenizer: Any,
    lines: Sequence[str],
    language: str,
    split: Pretokenizer,
    note: Callable[[str], None] | None,
) -> ExampleValues | None:
    """Bits and characters of the hidden words of each line; none without an LM head."""
    if isinstance(encoder.lm_head, MissingLMHead):
        return None
    found = code_lengths(
        encoder, tokenizer, lines, language=language, pretokenizer=split, note=note
    )
    return ExampleValues(found.bits, found.characters.astype(float))


def _tokens_per_word(tokenizer: Any, lines: Sequence[str]) -> ExampleValues:
    # verbose: transformers warns of lines that are longer than a model's positions
    ids = tokenizer(list(lines), add_special_tokens=False, verbose=False)["input_ids"]
    return ExampleValues(
        np.array([*map(len, ids)], float), np.array([count_words([line]) for line in lines], float)
    )


def _alignment_errors(
    encoder: Encoder,
    tokenizer: Any,
    task: Task[Any, Any],
    split: TaskSplit,
    note: Callable[[str], None] | None,
) -> list[ExampleValues]:
    """For each layer, the wrong links and all links of each sentence pair."""
    examples = read_split(task, split, Pretokenizer({}))
    languages = language_sides(split.language)
    by_layer = align_words(encoder, tokenizer, examples, _ALIGNER, languages=languages, note=note)
    found = [measure(task, examples, links, split.language)["aer"].examples for links in by_layer]
    return [values for values in found if values is not None]


def _plain(values: ExampleValues) -> list[list[float]]:
    return [values.numerators.tolist(), values.denominators.tolist()]


def _values(found: Iterable[Iterable[float]]) -> ExampleValues:
    first, second = (np.array(list(part), float) for part in found)
    return ExampleValues(first, second)

"""Probing: the object of a fact as a masked language model predicts it (LAMA; X-FACTR).

The object is replaced by 1, 2, ... mask tokens. An open answer has the most likely token at each
mask; among answers of different length that with the best mean log-probability wins. A typed answer
is the candidate with the best mean log-probability at as many masks as it has tokens (mLAMA). With
one mask, as in LAMA, only facts count whose object is one token.

Predictions can be written to a JSON lines file, and those of two models compared (XLM-K, Table 6).
A line has `task`, `language`, `id`, `prompt`, `answers`, `predicted`, `typed` (empty without
candidates) and `is_correct`; those of entity linking have `margin`, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isoglot.corpus.tokenization.vocabulary import max_characters
from isoglot.errors import IsoglotError, ModelError
from isoglot.evaluation.embed import encode_in_batches, language_ids
from isoglot.evaluation.tokenize_texts import tokenize_words
from isoglot.tasks.data_files import Row, json_lines
from isoglot.tasks.examples import OBJECT, Fact
from isoglot.tasks.lama import normalize_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import TextIOBase
    from pathlib import Path

    from isoglot.evaluation.data import ScoringJob
    from isoglot.models.encoder import Encoder, States
    from isoglot.results import Score
    from isoglot.types import Rows

_TYPED = "typed"
"""Prefix of metrics of answers that are chosen from candidates."""
_MASKS_PER_CHUNK = 256
"""Masks whose (V,) logits are computed at one time."""


@dataclass(slots=True)
class ClozePrediction:
    """The predicted object of one fact, and the mean log-probability of its tokens."""

    text: str = ""
    """The open answer: any tokens of the vocabulary."""
    log_probability: float = float("-inf")
    typed: str = ""
    """The best of the fact's candidates."""
    typed_log_probability: float = float("-inf")
    margin: float | None = None
    """By how much the best wrong candidate is preferred to the right one (entity linking)."""


def score_probe(
    job: ScoringJob, *, on_prediction: Callable[[str, Fact, ClozePrediction], None] | None = None
) -> list[Score]:
    """Precision at one of open answers and, for facts with candidates, of typed answers.

    `on_prediction` is called with the language, the fact and the prediction of each fact.
    """
    language, facts = job.split.language, job.examples()
    assert hasattr(job.task, "max_masks"), "a task of facts"
    max_masks = job.settings.max_masks or job.task.max_masks
    if max_masks == 1:
        facts = _with_one_token(job.tokenizer, facts)
        if not facts:
            raise IsoglotError(
                f"No object of {job.task.name} in {language} is one token of this model. "
                f"Leave {language} out, or allow more tokens with --set max_masks=5."
            )
    predictions = predict_objects(
        job.encoder,
        job.tokenizer,
        facts,
        max_masks=max_masks,
        language=job.languages[0],
        note=job.tell,
    )
    if on_prediction is not None:
        for fact, prediction in zip(facts, predictions, strict=True):
            on_prediction(language, fact, prediction)
    values = job.values(facts, [prediction.text for prediction in predictions])
    found = job.scores(values)
    pairs = [(f, p.typed) for f, p in zip(facts, predictions, strict=True) if f.candidates]
    if pairs:
        typed = job.values([f for f, _ in pairs], [text for _, text in pairs])
        values = {f"{_TYPED} {name}": value for name, value in typed.items()}
        found += job.scores(values)
    return found


def _with_one_token(tokenizer: Any, facts: Sequence[Fact]) -> list[Fact]:
    """The facts with an answer of one token."""
    answers = list(dict.fromkeys(answer for fact in facts for answer in fact.answers))
    tokens = tokenize_words(tokenizer, answers)
    short = {answer for answer, ids in zip(answers, tokens, strict=True) if len(ids) == 1}
    return [fact for fact in facts if not short.isdisjoint(fact.answers)]


@torch.no_grad()
def predict_objects(
    encoder: Encoder,
    tokenizer: Any,
    facts: Sequence[Fact],
    *,
    max_masks: int,
    language: str | None = None,
    note: Callable[[str], None] | None = None,
) -> list[ClozePrediction]:
    """The predicted object of each fact; empty for a prompt that is too long for the model.

    `language` is that of the prompts, for the model's language embeddings; `note` is called with
    the number of prompts that are too long.
    """
    if tokenizer.mask_token is None:
        raise ModelError(
            f"{tokenizer.name_or_path} has no mask token, and probing needs a masked language "
            "model. Leave probes out."
        )
    predictions = [ClozePrediction() for _ in facts]
    candidates = _Candidates(tokenizer, facts)
    special = torch.tensor(sorted(set(tokenizer.all_special_ids)))
    limit = max_characters(tokenizer, encoder.max_positions)
    too_long: set[int] = set()
    for num_masks in range(1, max_masks + 1):
        prompts = [
            fact.prompt.replace(OBJECT, tokenizer.mask_token * num_masks)[:limit] for fact in facts
        ]
        encoded = tokenizer(prompts, verbose=False)["input_ids"]
        too_long |= {n for n, ids in enumerate(encoded) if len(ids) > encoder.max_positions}
        usable = [
            index
            for index, ids in enumerate(encoded)
            if len(ids) <= encoder.max_positions and ids.count(tokenizer.mask_token_id) == num_masks
        ]
        sequences = [encoded[index] for index in usable]
        languages = language_ids(encoder, language, len(sequences), note)
        for batch, rows, states in encode_in_batches(
            encoder, sequences, tokenizer.pad_token_id, layers=False, languages=languages
        ):
            chunks = _log_probabilities(encoder, rows, states, tokenizer.mask_token_id, special)
            for place, logs in zip(batch, _by_prompt(chunks, num_masks), strict=True):
                index = usable[place]
                _choose_open(predictions[index], logs, tokenizer)
                candidates.choose(predictions[index], facts[index], logs)
    if too_long and note is not None:
        note(
            f"{len(too_long):,} of {len(facts):,} prompts are longer than the model's "
            f"{encoder.max_positions} positions: they have no answer."
        )
    return predictions


def _log_probabilities(
    encoder: Encoder, rows: Rows, states: States, mask: int, special: Tensor
) -> Iterator[Tensor]:
    """(N, V) at the masks, in chunks; special tokens have probability 0."""
    positions = (rows.ids == mask).flatten().nonzero()[:, 0]
    for chunk in positions.split(_MASKS_PER_CHUNK):
        logits = encoder.logits_at(states, chunk.to(states.hidden.device)).float()
        logits[:, special.to(logits.device)] = float("-inf")
        yield logits.log_softmax(dim=-1).cpu()


def _by_prompt(chunks: Iterator[Tensor], num_masks: int) -> Iterator[Tensor]:
    """(num_masks, V) for each prompt, from chunks that may end inside a prompt."""
    left: Tensor | None = None
    for chunk in chunks:
        rows = chunk if left is None else torch.cat([left, chunk])
        complete = len(rows) // num_masks * num_masks
        yield from rows[:complete].split(num_masks)
        left = rows[complete:]


def _choose_open(prediction: ClozePrediction, logs: Tensor, tokenizer: Any) -> None:
    best, tokens = logs.max(dim=1)
    mean = float(best.mean())
    if mean > prediction.log_probability:
        prediction.text = tokenizer.decode(tokens.tolist()).strip()
        prediction.log_probability = mean


class _Candidates:
    """The candidates of facts by their number of tokens; each set is tokenized once."""

    def __init__(self, tokenizer: Any, facts: Sequence[Fact]) -> None:
        self._sets: dict[tuple[str, ...], dict[int, tuple[list[str], Tensor]]] = {}
        for fact in facts:
            if fact.candidates and fact.candidates not in self._sets:
                self._sets[fact.candidates] = _by_length(tokenizer, fact.candidates)

    def choose(self, prediction: ClozePrediction, fact: Fact, logs: Tensor) -> None:
        """Take the best candidate with as many tokens as masks, if better than the one so far."""
        if not fact.candidates or len(logs) not in self._sets[fact.candidates]:
            return
        names, ids = self._sets[fact.candidates][len(logs)]
        means = logs.gather(1, ids.T).mean(dim=0)
        best = int(means.argmax())
        if float(means[best]) > prediction.typed_log_probability:
            prediction.typed = names[best]
            prediction.typed_log_probability = float(means[best])


def _by_length(tokenizer: Any, names: Sequence[str]) -> dict[int, tuple[list[str], Tensor]]:
    groups: dict[int, tuple[list[str], list[list[int]]]] = {}
    for name, ids in zip(names, tokenize_words(tokenizer, names), strict=True):
        group = groups.setdefault(len(ids), ([], []))
        group[0].append(name)
        group[1].append(ids)
    return {length: (group, torch.tensor(ids)) for length, (group, ids) in groups.items() if length}


def write_prediction(
    stream: TextIOBase, task: str, language: str, fact: Fact, prediction: ClozePrediction
) -> None:
    """Write the prediction for one fact as a JSON line."""
    answers = {normalize_answer(answer) for answer in fact.answers}
    row = {
        "task": task,
        "language": language,
        "id": fact.id,
        "prompt": fact.prompt,
        "answers": fact.answers,
        "predicted": prediction.text,
        "typed": prediction.typed,
        "is_correct": normalize_answer(prediction.text) in answers,
    }
    if prediction.margin is not None:
        row["margin"] = prediction.margin
    stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def differing_predictions(
    first: Path, second: Path
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The facts of both prediction files for which the two models predict different objects."""
    others = {_fact_key(row): row for row in json_lines(second)}
    for row in json_lines(first):
        other = others.get(_fact_key(row), row)
        if normalize_answer(row["predicted"]) != normalize_answer(other["predicted"]):
            yield row, other


def _fact_key(row: Row) -> tuple[str, ...]:
    if "predicted" not in row:
        raise row.error("is not a prediction of a probe.")
    return tuple(row[name] for name in ("task", "language", "id", "prompt"))

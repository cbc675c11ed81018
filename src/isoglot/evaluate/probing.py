"""Probing: what a masked language model puts in the place of a fact's object (LAMA; X-FACTR).

The object's place is filled with 1, 2, ... masks. Open answers take the likeliest token at each
mask, and of the different lengths the one with the best mean log-probability; typed answers are the
candidate with the best mean, each read at as many masks as it has tokens (mLAMA). With one mask, as
LAMA asks, only facts count whose object is one token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from isoglot.errors import IsoglotError, ModelError
from isoglot.evaluate.cells import scores, taken
from isoglot.evaluate.embed import in_batches
from isoglot.evaluate.pieces import word_pieces
from isoglot.tasks.facts import OBJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from isoglot.evaluate.settings import FeatureSettings
    from isoglot.models import Encoder, States
    from isoglot.results import Score
    from isoglot.tasks import Part, Task
    from isoglot.tasks.examples import Fact
    from isoglot.types import Rows

TYPED = "typed"
"""Begins the names of metrics where the answer was chosen from candidates."""
_SITES_AT_A_TIME = 256


@dataclass(slots=True)
class Guess:
    """What a model says of one fact, and how sure it is (mean log-probability of the tokens)."""

    said: str = ""
    sure: float = float("-inf")
    typed: str = ""
    typed_sure: float = float("-inf")


def score_probe(
    encoder: Encoder,
    tokenizer: Any,
    task: Task[Fact, str],
    parts: Sequence[Part],
    settings: FeatureSettings,
    *,
    listen: Callable[[str, Fact, Guess], None] | None = None,
) -> list[Score]:
    """Precision at one of open answers and, where there are candidates, of typed ones.

    `listen` hears the language, the fact and what was said of each.
    """
    found: list[Score] = []
    for part in parts:
        facts = taken(task.read(part), settings.most)
        assert hasattr(task, "masks"), "a task of facts"
        masks = settings.masks or task.masks
        if masks == 1:
            facts = _of_one_token(tokenizer, facts)
            if not facts:
                raise IsoglotError(
                    f"No object of {task.name} in {part.language} is one token of this model. "
                    f"Leave {part.language} out, or allow more tokens with --set masks=5."
                )
        guesses = probe(encoder, tokenizer, facts, masks=masks)
        if listen is not None:
            for fact, guess in zip(facts, guesses, strict=True):
                listen(part.language, fact, guess)
        values = task.score(facts, [guess.said for guess in guesses], part.language)
        found += scores(task, part.language, values, count=len(facts), settings=settings)
        pairs = [(f, g.typed) for f, g in zip(facts, guesses, strict=True) if f.candidates]
        if pairs:
            chosen = task.score([f for f, _ in pairs], [said for _, said in pairs], part.language)
            values = {f"{TYPED} {name}": value for name, value in chosen.items()}
            found += scores(task, part.language, values, count=len(pairs), settings=settings)
    return found


def _of_one_token(tokenizer: Any, facts: Sequence[Fact]) -> list[Fact]:
    """The facts that one mask can answer."""
    answers = list(dict.fromkeys(answer for fact in facts for answer in fact.answers))
    pieces = word_pieces(tokenizer, answers)
    short = {answer for answer, ids in zip(answers, pieces, strict=True) if len(ids) == 1}
    return [fact for fact in facts if not short.isdisjoint(fact.answers)]


@torch.no_grad()
def probe(encoder: Encoder, tokenizer: Any, facts: Sequence[Fact], *, masks: int) -> list[Guess]:
    """What the model says of each fact; a prompt that does not fit the model is left unanswered."""
    if tokenizer.mask_token is None:
        raise ModelError(
            f"{tokenizer.name_or_path} has no mask token, and probing needs a masked language "
            "model. Leave probes out."
        )
    guesses = [Guess() for _ in facts]
    choices = _Choices(tokenizer, facts)
    unwanted = torch.tensor(sorted(set(tokenizer.all_special_ids)))
    for number in range(1, masks + 1):
        prompts = [fact.prompt.replace(OBJECT, tokenizer.mask_token * number) for fact in facts]
        encoded = tokenizer(prompts)["input_ids"]
        usable = [
            index
            for index, ids in enumerate(encoded)
            if len(ids) <= encoder.max_positions and ids.count(tokenizer.mask_token_id) == number
        ]
        sequences = [encoded[index] for index in usable]
        for batch, rows, states in in_batches(
            encoder, sequences, tokenizer.pad_token_id, layers=False
        ):
            known = _log_probabilities(encoder, rows, states, tokenizer.mask_token_id, unwanted)
            for place, logs in zip(batch, _by_fact(known, number), strict=True):
                index = usable[place]
                _open(guesses[index], logs, tokenizer)
                choices.choose(guesses[index], facts[index], logs)
    return guesses


def _log_probabilities(
    encoder: Encoder, rows: Rows, states: States, mask: int, unwanted: Tensor
) -> Iterator[Tensor]:
    """(N, V) at the masks, some at a time; special tokens cannot be said."""
    sites = (rows.ids == mask).flatten().nonzero()[:, 0]
    for chunk in sites.split(_SITES_AT_A_TIME):
        logits = encoder.logits_at(states, chunk.to(states.hidden.device)).float()
        logits[:, unwanted.to(logits.device)] = float("-inf")
        yield logits.log_softmax(dim=-1).cpu()


def _by_fact(chunks: Iterator[Tensor], number: int) -> Iterator[Tensor]:
    """(number, V) for each prompt, from chunks that may end inside one."""
    left: Tensor | None = None
    for chunk in chunks:
        rows = chunk if left is None else torch.cat([left, chunk])
        whole = len(rows) // number * number
        yield from rows[:whole].split(number)
        left = rows[whole:]


def _open(guess: Guess, logs: Tensor, tokenizer: Any) -> None:
    best, tokens = logs.max(dim=1)
    sure = float(best.mean())
    if sure > guess.sure:
        guess.said, guess.sure = tokenizer.decode(tokens.tolist()).strip(), sure


class _Choices:
    """Candidates of the facts, grouped by their number of tokens, each set made once."""

    def __init__(self, tokenizer: Any, facts: Sequence[Fact]) -> None:
        self._sets: dict[tuple[str, ...], dict[int, tuple[list[str], Tensor]]] = {}
        for fact in facts:
            if fact.candidates and fact.candidates not in self._sets:
                self._sets[fact.candidates] = _grouped(tokenizer, fact.candidates)

    def choose(self, guess: Guess, fact: Fact, logs: Tensor) -> None:
        """Take the best candidate with as many tokens as there are masks, if it beats the best."""
        if not fact.candidates or len(logs) not in self._sets[fact.candidates]:
            return
        names, ids = self._sets[fact.candidates][len(logs)]
        means = logs.gather(1, ids.T).mean(dim=0)
        best = int(means.argmax())
        if float(means[best]) > guess.typed_sure:
            guess.typed, guess.typed_sure = names[best], float(means[best])


def _grouped(tokenizer: Any, names: Sequence[str]) -> dict[int, tuple[list[str], Tensor]]:
    groups: dict[int, tuple[list[str], list[list[int]]]] = {}
    for name, ids in zip(names, word_pieces(tokenizer, names), strict=True):
        same = groups.setdefault(len(ids), ([], []))
        same[0].append(name)
        same[1].append(ids)
    return {length: (group, torch.tensor(ids)) for length, (group, ids) in groups.items() if length}

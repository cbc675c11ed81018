"""The mistakes in results files and predictions files, and the texts that they do not have.

A results file says which examples are wrong (`Score.outcomes`). Their texts are those of the
session's pairs or of the tasks' files (`--data`), if these have as many examples. A predictions
file (`isoglot evaluate --save-predictions`) has texts, right answers and the model's own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.errors import CorpusError, IsoglotError
from isoglot.explore.mistakes import Mistake, Source, TestName, TestSet, retrieval_mistakes
from isoglot.intervals import unpack_outcomes
from isoglot.languages import find
from isoglot.results import Results, ResultsError
from isoglot.tasks import examples as kinds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.explore.mistakes import Sides
    from isoglot.explore.session import ExploreModel, ExploreSession
    from isoglot.results import Score
    from isoglot.tasks.data_files import Row

RETRIEVAL = "retrieval"
"""The task of pairs of one's own, as results files name it."""
_NO_TEXTS = (
    "A results file has the numbers of wrong examples, not their texts. Give the pairs with "
    "--pairs, the folder of the tasks' files with --data, or a file of isoglot evaluate "
    "--save-predictions with --results."
)


def sources_of(session: ExploreSession) -> list[Source]:
    """The sources of a session: its models with its pairs, then results and predictions files."""
    read = [(file, _read_file(file)) for file in session.results_files]
    scored = [content for _, content in read if isinstance(content, Results)]
    names = [(RETRIEVAL, name) for name in session.pairs]
    names += [name for results in scored for name in _retrieval_names(session, results)]
    unique = tuple(dict.fromkeys(names))
    found = [_model_source(session, model, unique) for model in session.models] if unique else []
    return [*found, *(_file_source(session, file.name, content) for file, content in read)]


def _retrieval_names(session: ExploreSession, results: Results) -> list[TestName]:
    """The test sets of retrieval in a results file whose texts are at hand."""
    names = dict.fromkeys((score.task, score.language) for score in results.scores)
    kinds_of = {task: _kind(task) for task, _ in names}
    return [
        name
        for name in names
        if kinds_of[name[0]] == "retrieval" and name[0] != RETRIEVAL and _examples(session, name)
    ]


def _kind(task: str) -> str:
    from isoglot.tasks import find_task

    try:
        # a class of one's own would be imported: its name in a file is not reason enough
        return "" if ":" in task else find_task(task).kind
    except IsoglotError:
        return ""


def _model_source(
    session: ExploreSession, model: ExploreModel, names: tuple[TestName, ...]
) -> Source:
    def read(name: TestName) -> TestSet:
        return retrieval_mistakes(model, name[1], _sides(session, name))

    return Source(model.name, names, read)


def _sides(session: ExploreSession, name: TestName) -> Sides:
    if name[0] == RETRIEVAL:
        from isoglot.evaluation.evaluate import MAX_PAIRS

        # as many as isoglot evaluate reads: its scores and numbers of examples are then the same
        first, second = session.pairs[name[1]]
        return first[:MAX_PAIRS], second[:MAX_PAIRS]
    pairs = _examples(session, name)
    return [pair.first for pair in pairs], [pair.second for pair in pairs]


def _read_file(file: Path) -> Results | dict[TestName, TestSet]:
    """A results file, or the test sets of a predictions file."""
    try:
        return Results.read(file)
    except ResultsError as error:
        try:
            return read_predictions(file)
        except CorpusError as other:
            if ".jsonl" in file.name:
                raise
            raise error from other


def _file_source(
    session: ExploreSession, name: str, content: Results | dict[TestName, TestSet]
) -> Source:
    if not isinstance(content, Results):
        return Source(name, tuple(content), content.__getitem__)
    scores = {(s.task, s.language): s for s in content.scores if s.outcomes is not None}
    return Source(name, tuple(scores), lambda one: outcome_mistakes(session, scores[one]))


def outcome_mistakes(session: ExploreSession, score: Score) -> TestSet:
    """The examples that a score's outcomes call wrong, with their texts if they are at hand."""
    assert score.outcomes is not None
    values = unpack_outcomes(score.outcomes)
    found = _examples(session, (score.task, score.language))
    # of a file of pairs the first ones were scored; with --limit, others of a task's file
    is_same = len(found) == len(values) or (score.task == RETRIEVAL and len(found) > len(values))
    # half right: one of the two directions of retrieval
    wrong = np.flatnonzero(values < 1).tolist()
    described = [_describe(found[item]) if is_same else ("", ()) for item in wrong]
    return TestSet(
        count=len(values),
        mistakes=tuple(
            Mistake(item=item, language=score.language, text=text, right=right)
            for item, (text, right) in zip(wrong, described, strict=True)
        ),
        note="A results file does not say what was chosen." if is_same else _NO_TEXTS,
    )


def _examples(session: ExploreSession, name: TestName) -> Sequence[Any]:
    """The examples of a test set, from the pairs or the tasks' files; none: not at hand."""
    task, language = name
    if task == RETRIEVAL:
        pairs = find(language, session.pairs)
        sides = zip(*session.pairs[pairs], strict=True) if pairs else ()
        return [kinds.SentencePair(first=one, second=two) for one, two in sides]
    if not session.data or not _kind(task):
        return []
    from isoglot.evaluation.data import splits_to_score
    from isoglot.tasks import find_task

    try:
        own = find_task(task)
        return [
            e for split in splits_to_score(own, session.data, [language]) for e in own.read(split)
        ]
    except IsoglotError:  # the folder has no such file
        return []


def _describe(example: Any) -> tuple[str, tuple[str, ...]]:
    """The text of an example, and its right answers."""
    match example:
        case kinds.SentencePair(first=first, second=second):
            return first, (second,)
        case kinds.LabeledText(first=first, second=other, label=label):
            return first if other is None else f"{first} ⟡ {other}", (label,)
        case kinds.TaggedSentence(words=words, tags=tags):
            return " ".join(words), (" ".join(tags),)
        case kinds.Question(question=question, answers=answers):
            return question, tuple(dict.fromkeys(answer.text for answer in answers))
        case kinds.MultipleChoice(premise=premise, choices=choices, right=right):
            return premise, (choices[right],)
        case kinds.Fact(prompt=prompt, answers=answers):
            return prompt, tuple(answers)
        case kinds.EntityQuery(text=text, description=description):
            return text, (description,)
        case _:
            return str(example), ()


def read_predictions(file: Path) -> dict[TestName, TestSet]:
    """Task and language -> the mistakes of a predictions file."""
    from isoglot.tasks.data_files import json_lines

    counts: dict[TestName, int] = {}
    found: dict[TestName, list[Mistake]] = {}
    for row in json_lines(file):
        name, make, is_correct = _prediction(row)
        item = counts.get(name, 0)
        counts[name] = item + 1
        own = found.setdefault(name, [])
        if not is_correct:
            own.append(make(item=item))
    if not counts:
        raise CorpusError(f"{file}: has no predictions.")
    return {
        name: TestSet(count=counts[name], mistakes=tuple(mistakes))
        for name, mistakes in found.items()
    }


def _prediction(row: Row) -> tuple[TestName, partial[Mistake], bool]:
    """Test set, mistake without its number, and whether it is none."""
    texts = [row.get(name) for name in ("task", "language", "prompt", "predicted")]
    answers, is_correct, margin = (row.get(name) for name in ("answers", "is_correct", "margin"))
    if not (
        all(isinstance(text, str) for text in texts)
        and isinstance(answers, list)
        and all(isinstance(answer, str) for answer in answers)
        and isinstance(is_correct, bool)
        and (margin is None or isinstance(margin, int | float))
    ):
        raise row.error("is not a prediction of isoglot evaluate --save-predictions.")
    task, language, prompt, predicted = map(str, texts)
    made = partial(
        Mistake,
        language=language,
        text=prompt,
        right=tuple(answers),
        chosen=predicted,
        margin=margin,
    )
    return (task, language), made, is_correct

"""An evaluation of one model folder: open it, score it, say what was scored.

folder, tasks, data --cells--> cells not done --by kind--> scores, kept at once
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from isoglot.corpus.pretokenize import FILE, Pretokenization
from isoglot.corpus.readers import Record
from isoglot.corpus.readers.pairs import PairsReader
from isoglot.errors import CorpusError, IsoglotError, ModelError
from isoglot.evaluate.averages import averages
from isoglot.evaluate.cells import is_done, parts_to_score
from isoglot.evaluate.commit import commit
from isoglot.evaluate.kinds import SCORERS
from isoglot.evaluate.opening import open_encoder
from isoglot.evaluate.reading import InWords
from isoglot.evaluate.retrieval import retrieval
from isoglot.evaluate.settings import FeatureSettings
from isoglot.finetune.in_words import in_words
from isoglot.models import language_embeddings
from isoglot.models.opening import open_tokenizer
from isoglot.results import Results, ResultsError
from isoglot.tasks import FINE_TUNED, find_task
from isoglot.tasks.examples import Translated
from isoglot.tasks.tatoeba import OwnPairs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from isoglot.evaluate.probing import Guess
    from isoglot.models import Encoder
    from isoglot.results import Score
    from isoglot.tasks import Part, Task
    from isoglot.tasks.examples import Fact


class FineTuner(Protocol):
    """What scores the kinds that are fine-tuned: it trains, and gives a list for each training."""

    def __call__(
        self, folder: Path, task: Task[Any, Any], data: Path, *, finished: Iterable[Score]
    ) -> Iterator[list[Score]]:
        """Train on and score a task, but for what is finished."""


def model_folder(path: Path) -> Path:
    """The Hugging Face folder meant by a path: itself, or the model of a run."""
    for folder in (path, path / "model"):
        if (folder / "config.json").is_file():
            return folder
    raise ModelError(
        f"{path} holds no model (no config.json there or in {path / 'model'}). "
        f"Give a Hugging Face folder, or a run that has finished (docs/resume.md says how to get a "
        f"model out of one that was stopped)."
    )


def evaluate_retrieval(
    folder: Path,
    files: Sequence[Path],
    *,
    most: int,
    center: bool = False,
    margin: bool = False,
    progress: Callable[[str], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> Results:
    """Retrieval scores of a model folder on files of translations named like en-de.tsv."""
    pairs = read_pairs(files, most, note)
    opened = open_for_scoring(folder)
    words = Pretokenization.load(folder)
    settings = FeatureSettings(center=center, margin=margin)
    found: list[Score] = []
    for name, sides in pairs.items():
        if progress is not None:
            progress(name)
        examples = [Translated(first=a, second=b) for a, b in zip(*sides, strict=True)]
        examples = in_words(examples, name, words)
        found += retrieval(*opened, OwnPairs(), name, examples, settings)
    return Results(
        model=str(folder), fingerprint=fingerprint(folder), scores=tuple(_at_commit(found))
    )


def evaluate_tasks(
    folder: Path,
    names: Sequence[str],
    data: Path,
    settings: FeatureSettings,
    *,
    out: Path,
    languages: Collection[str] | None = None,
    fine_tuner: FineTuner | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
    listen: Callable[[str, str, Fact, Guess], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> Results:
    """Score a model folder on tasks by name; what `out` already holds is not scored again.

    Args:
        folder: a Hugging Face folder.
        names: tasks, see `isoglot.tasks.TASKS`.
        data: where their files lie.
        settings: how features are read.
        out: results file, read where it exists and written after every cell.
        languages: codes, or names of sets (`isoglot.tasks.subsets`); none: all there are.
        fine_tuner: who trains for the kinds that need it; none: they are refused.
        progress: told (task, cells done, all cells).
        listen: told (task, language, fact, guess) of each probed fact.
        note: told of tasks that `out` has scores of.

    Raises:
        IsoglotError: an unknown task, one that is fine-tuned without `fine_tuner`, a file that is
            missing or damaged, or results of another model in `out`.
    """
    tasks = [find_task(name) for name in names]
    if fine_tuner is None:
        _check_features(tasks)
    cells = [
        [] if task.kind in FINE_TUNED else parts_to_score(task, data, languages) for task in tasks
    ]
    if not any(cells) and fine_tuner is None:
        have = sorted({part.language for task in tasks for part in task.parts(data)})
        raise CorpusError(f"{data} has {', '.join(names)} only in {', '.join(have)}.")
    results = so_far(folder, out)
    _tell_known(results, names, out, note)
    reader = _Reader(folder, data, settings, listen)
    for task, parts in zip(tasks, cells, strict=True):
        if fine_tuner is not None and task.kind in FINE_TUNED:
            for found in fine_tuner(folder, task, data, finished=results.scores):
                results = add_scores(results, _at_commit(found), out)
        for number, part in enumerate(parts):
            if progress is not None:
                progress(task.name, number, len(parts))
            heard = listen is not None and task.kind == "probe"
            scenario = settings.scenario(task.kind)
            if heard or not is_done(results.scores, task, part.language, scenario):
                results = add_scores(results, _at_commit(reader.scores(task, part)), out)
        if progress is not None and parts:
            progress(task.name, len(parts), len(parts))
    return results


def _check_features(tasks: Sequence[Task[Any, Any]]) -> None:
    for task in tasks:
        if task.kind in FINE_TUNED:
            raise IsoglotError(
                f"{task.name} has to be fine-tuned. Use isoglot finetune; evaluate scores tasks "
                "that read a model as it is."
            )


class _Reader:
    """Scores cells by reading features; the model is opened for the first of them."""

    def __init__(
        self,
        folder: Path,
        data: Path,
        settings: FeatureSettings,
        listen: Callable[[str, str, Fact, Guess], None] | None,
    ) -> None:
        self._folder, self._data, self._settings, self._listen = folder, data, settings, listen
        self._opened: tuple[Encoder, Any] | None = None
        self._words = Pretokenization.load(folder)

    def scores(self, task: Task[Any, Any], part: Part) -> list[Score]:
        """All layers' scores of one cell."""
        self._opened = self._opened or open_for_scoring(self._folder)
        score = SCORERS[task.kind]
        if self._listen is not None and task.kind == "probe":
            score = partial(score, listen=partial(self._listen, task.name))
        if task.kind == "mining" and part.split != "dev":
            wanted = part.language, "dev"
            devs = (p for p in task.parts(self._data) if (p.language, p.split) == wanted)
            score = partial(score, dev=next(devs, None))
        read = InWords(task, self._words)
        found: list[Score] = score(*self._opened, read, [part], self._settings)
        return found


def so_far(folder: Path, out: Path) -> Results:
    """The results so far: those in the file, if it is of this model."""
    mark = fingerprint(folder)
    if not out.is_file():
        return Results(model=str(folder), fingerprint=mark, scores=())
    results = Results.read(out)
    if results.fingerprint != mark:
        raise ResultsError(
            f"{out} has scores of another model, {results.model}, or of weights that it no longer "
            "has. Name another file with --out."
        )
    return results


def _what(score: Score) -> Score:
    """What a score is of, without what it is."""
    return replace(score, value=0.0, count=0, commit=None, selection=None, epoch=None)


def _at_commit(scores: Iterable[Score]) -> list[Score]:
    """Scores that say which code gave them."""
    now = commit()
    return [replace(score, commit=now) for score in scores]


def _tell_known(
    results: Results, names: Sequence[str], out: Path, note: Callable[[str], None] | None
) -> None:
    known = {score.task for score in results.scores} & set(names)
    if known and note is not None:
        note(
            f"{out} has scores of {', '.join(sorted(known))}. What it has is not scored again, "
            "though the data may be other: name another file with --out for that."
        )


def add_scores(results: Results, scores: Sequence[Score], out: Path) -> Results:
    """Write scores beside those that there are so far, in the place of those of the same thing."""
    again = {_what(score) for score in scores}
    kept = (score for score in results.scores if _what(score) not in again)
    results = replace(results, scores=(*kept, *scores))
    results.write(out, averages=averages(results.scores))
    return results


def read_pairs(
    files: Sequence[Path], most: int, note: Callable[[str], None] | None = None
) -> dict[str, tuple[list[str], list[str]]]:
    """The two sides of files of translations, by the languages they are named after.

    `note` is told of lines that could not be read.
    """
    pairs = {}
    for file in files:
        name = file.name.split(".")[0]
        if name.count("-") != 1:
            raise CorpusError(f"{file}: name the file after its two languages, like en-de.tsv.")
        if name in pairs:
            raise CorpusError(
                f"{file}: another file is of {name} too. Score one of them alone, with another "
                "file for --out."
            )
        first, second, unread = _read_pairs(file, most)
        if not first:
            raise CorpusError(f"{file} has no pair of sentences (two columns, a tab between).")
        if unread and note is not None:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in unread.most_common())
            note(f"{file}: {unread.total():,} lines are left out ({reasons}), {len(first):,} read.")
        pairs[name] = first, second
    return pairs


def _read_pairs(file: Path, most: int) -> tuple[list[str], list[str], Counter[str]]:
    first, second, unread = [], [], Counter[str]()
    for found in PairsReader().read([file]):
        if not isinstance(found, Record):
            unread[found.reason] += 1
            continue
        first.append(found.texts[0])
        second.append(found.texts[1])
        if len(first) == most:
            break
    return first, second, unread


def open_for_scoring(folder: Path) -> tuple[Encoder, Any]:
    """An encoder and its tokenizer, on the device at hand."""
    import torch

    tokenizer = open_tokenizer(str(folder))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return open_encoder(folder).to(device).eval(), tokenizer


def scored_without(folder: Path) -> str | None:
    """What a model was trained with and is scored without, in sentences, if there is anything."""
    notes = []
    if language_embeddings.used_on(folder) == "all":
        notes.append(
            f"{folder} was trained with language embeddings on all tokens. The plain model is "
            "scored, without them: the scores are those of the model as transformers opens it."
        )
    if Pretokenization.load(folder).names:
        notes.append(
            f"{folder} was trained on text that was divided into words first, and reads sentences "
            "so, by their language. Words that a task gives (tags, alignments), and languages that "
            f"its {FILE} has no way for, are read as they are."
        )
    return " ".join(notes) or None


def fingerprint(folder: Path) -> str:
    """SHA-256 over the weights of a model folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()

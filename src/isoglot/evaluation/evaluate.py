"""Evaluate a model folder: score tasks that read its features, and files of translations.

    model folder, tasks, data --splits_to_score--> splits --SplitScorer--> scores

Scores are written to the results file after every split, and scores of the same data are not
computed again, so an interrupted evaluation can be repeated.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.argument_names import public
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import CorpusError, IsoglotError
from isoglot.evaluation.data import ScoringJob, splits_to_score
from isoglot.evaluation.exported import exported_vectors
from isoglot.evaluation.settings import FeatureConfig
from isoglot.evaluation.split_scores import (
    SplitScorer,
    load_model,
    pass_on_once,
    with_compared_outcomes,
)
from isoglot.folders import model_folder
from isoglot.model_results import (
    add_scores,
    existing_results,
    hash_examples,
)
from isoglot.tasks import FINE_TUNED_KINDS, find_task
from isoglot.tasks.base import data_folders, name_folders
from isoglot.tasks.language_sets import absent_note, languages_with_data
from isoglot.tasks.unread import unread_note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from isoglot.evaluation.split_scores import Note, OnPrediction
    from isoglot.finetuning.settings import FinetuneRequest
    from isoglot.models.encoder import Encoder
    from isoglot.results import Results, Score
    from isoglot.tasks.base import DataFolders
    from isoglot.tasks.examples import SentencePair

    Progress = Callable[[str, int, int | None], None]

MAX_PAIRS = 1000
"""Pairs of each file of translations, unless `FeatureConfig.limit` is set."""


@public
def evaluate(
    model: str | Path,
    tasks: str | Sequence[str] = (),
    data: str | Path | Sequence[str | Path] = "eval",
    *,
    pairs: str | Path | Sequence[str | Path] = (),
    languages: str | Sequence[str] | None = None,
    features: FeatureConfig | None = None,
    finetuning: FinetuneRequest | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    note: Note | None = None,
) -> Results:
    """Score a model on tasks and on translations of your own, in many languages.

        results = isoglot.evaluate("runs/mine", ["tatoeba", "xling"], "eval", languages=["sw"])

    Args:
        model: a Hugging Face folder of an encoder, a run (`runs/NAME`) or a name on the hub.
        tasks: names of tasks (`isoglot show tasks`), or `package.module:Class` for your own.
        data: folder of the tasks' files (docs/tasks.md), or several: a split is taken from the
            first that has it.
        pairs: TSV files of translations, two columns, named after their languages: `en-de.tsv`,
            or with them before the name: `en-de=dev.tsv`.
        languages: languages to score, or a paper's set such as `xnli`; none: all. They select
            files of `pairs` too.
        features: settings of tasks that read the model as it is.
        finetuning: settings of tasks that need fine-tuning (XNLI, MLQA, ...); none: zero-shot from
            English with one seed and the hyperparameters of XTREME (see `isoglot.finetune`).
        out: results file; scores of the same data are not computed again. None: no file.
        progress: called with (task, splits done, all splits).
        note: called with sentences about skipped lines and existing scores.

    Returns:
        A score for each task, language, metric, layer and seed, and the scores `out` had already.
    """
    folder = model_folder(model)
    names = [tasks] if isinstance(tasks, str) else list(tasks)
    pairs = [pairs] if isinstance(pairs, str | Path) else pairs
    languages = [languages] if isinstance(languages, str) else languages
    if not names and not pairs:
        raise IsoglotError("There is nothing to score: give tasks, or files of pairs.")
    trained = [name for name in names if find_task(name).kind in FINE_TUNED_KINDS]
    read = [name for name in names if name not in trained]
    features, file = features or FeatureConfig(), None if out is None else Path(out)
    folders = data_folders(data)
    if languages is not None:
        tell_absent(languages, names, folders, [Path(pair) for pair in pairs], note)
    results = existing_results(folder, file)
    if pairs:
        scores = pair_scores(
            folder, [Path(pair) for pair in pairs], features, languages=languages, note=note
        )
        results = add_scores(results, scores, file)
    called: dict[str, Any] = {"out": file, "progress": progress, "note": note}
    if read:
        found = evaluate_tasks(folder, read, folders, features, languages=languages, **called)
        results = results.merged(found.scores)
    if trained:
        from isoglot.finetuning.finetune import finetune_tasks

        request = finetuning or _zero_shot_request(languages)
        found = finetune_tasks(folder, trained, folders, request, **called)
        results = results.merged(found.scores)
    return results


def tell_absent(
    languages: Sequence[str],
    tasks: Sequence[str],
    data: DataFolders,
    pairs: Sequence[Path] = (),
    note: Note | None = None,
) -> None:
    """Call `note` once with the languages that are asked for and that no task and no file has.

    Raises:
        IsoglotError: one of them is no language.
    """
    available = languages_with_data([find_task(name) for name in tasks], data)
    from isoglot.evaluation.pairs import pair_and_file

    named = (pair_and_file(file)[0] for file in pairs)
    absent = absent_note(languages, available.union(name for name in named if name))
    if absent is not None and note is not None:
        note(absent)


def _zero_shot_request(languages: Sequence[str] | None) -> FinetuneRequest:
    from isoglot.finetuning.settings import FinetuneRequest, ScenarioConfig
    from isoglot.tasks.language_sets import expand_languages

    targets = None if languages is None else expand_languages(languages)
    return FinetuneRequest(scenario=ScenarioConfig(targets=targets))


def evaluate_tasks(
    folder: Path,
    names: Sequence[str],
    data: DataFolders,
    settings: FeatureConfig,
    *,
    out: Path | None,
    languages: Collection[str] | None = None,
    progress: Progress | None = None,
    on_prediction: OnPrediction | None = None,
    note: Note | None = None,
) -> Results:
    """Score a model folder on tasks that read its features.

    The arguments are those of `evaluate`; `on_prediction` is called with (task, language, fact,
    prediction) for each fact of a probe. All errors in names and files are reported before the
    first split is scored.
    """
    tasks = [find_task(name) for name in names]
    for task in tasks:
        if task.kind in FINE_TUNED_KINDS:
            raise IsoglotError(
                f"{task.name} has to be fine-tuned. Use isoglot finetune; evaluate scores tasks "
                "that read a model as it is."
            )
    splits = [splits_to_score(task, data, languages) for task in tasks]
    if not any(splits):
        have = sorted({split.language for task in tasks for split in task.splits_in(data)})
        raise CorpusError(f"{name_folders(data)} has {', '.join(names)} only in {', '.join(have)}.")
    scoring = SplitScorer(folder, data, settings, out, on_prediction, pass_on_once(note))
    for task, of_task in zip(tasks, splits, strict=True):
        for number, split in enumerate(of_task):
            if progress is not None:
                progress(task.name, number, len(of_task))
            scoring.score(task, split)
        if progress is not None and of_task:
            progress(task.name, len(of_task), len(of_task))
        if note is not None and (unread := unread_note(task, data)):
            note(unread)
        scoring.tell(task)
    return scoring.results


def pair_scores(
    folder: Path,
    files: Sequence[Path],
    settings: FeatureConfig,
    *,
    languages: Collection[str] | None = None,
    progress: Callable[[str], None] | None = None,
    note: Note | None = None,
) -> list[Score]:
    """Retrieval scores on files of translations named like `en-de.tsv`; nothing is written."""
    from isoglot.evaluation.pairs import read_pairs
    from isoglot.evaluation.retrieval import score_retrieval

    pairs = read_pairs(files, settings.limit or MAX_PAIRS, languages, note)
    # the first pairs of a file are read: the limit is not part of the scores' scenario
    settings = replace(settings, limit=None)
    note = pass_on_once(note)
    model = load_model(folder, settings, note)
    found: list[Score] = []
    for name, sides in pairs.items():
        if progress is not None:
            progress(name)
        job, examples = pairs_job(folder, model, name, sides, settings, note)
        scores = with_compared_outcomes(score_retrieval(job, examples))
        found += [replace(score, data=hash_examples(examples)) for score in scores]
    return found


def pairs_job(
    folder: Path,
    model: tuple[Encoder, Any],
    name: str,
    sides: tuple[Sequence[str], Sequence[str]],
    settings: FeatureConfig | None = None,
    note: Note | None = None,
) -> tuple[ScoringJob, list[SentencePair]]:
    """The job of scoring retrieval on pairs of one's own, and the pairs as the model reads them."""
    from isoglot.corpus.tokenization.vocabulary import max_characters
    from isoglot.tasks.base import TaskSplit
    from isoglot.tasks.bitext import UserPairs
    from isoglot.tasks.examples import SentencePair
    from isoglot.tasks.pretokenized import pretokenize_examples

    encoder, tokenizer = model
    # one more than is read, so that a cut text is seen to be too long
    limit = max_characters(tokenizer, encoder.max_positions) + 1
    examples = [
        SentencePair(first=a[:limit], second=b[:limit]) for a, b in zip(*sides, strict=True)
    ]
    examples = pretokenize_examples(examples, name, Pretokenizer.load(folder))
    job = ScoringJob(
        *model,
        UserPairs(),
        TaskSplit(name, "test", ()),
        settings or FeatureConfig(),
        exported=exported_vectors(folder),
        note=note,
    )
    return job, examples

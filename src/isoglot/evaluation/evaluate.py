"""Evaluate a model folder: score tasks that read its features, and files of translations.

    model folder, tasks, data --splits_to_score--> splits without scores --SCORERS--> scores

Scores are written to the results file after every split, and existing scores are not computed
again, so an interrupted evaluation can be repeated.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import CorpusError, IsoglotError
from isoglot.evaluation.data import ScoringJob, read_pairs, splits_to_score
from isoglot.evaluation.settings import FeatureConfig
from isoglot.model_results import add_scores, existing_results, is_scored, model_folder
from isoglot.tasks import FINE_TUNED_KINDS, find_task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from isoglot.evaluation.probing import ClozePrediction
    from isoglot.finetuning.settings import FinetuneRequest
    from isoglot.models.encoder import Encoder
    from isoglot.results import Results, Score
    from isoglot.tasks.base import TaskKind
    from isoglot.tasks.examples import Fact

    Progress = Callable[[str, int, int | None], None]
    Note = Callable[[str], None]
    OnPrediction = Callable[[str, str, Fact, ClozePrediction], None]

SCORERS: Mapping[TaskKind, str] = {
    "retrieval": "retrieval:score_retrieval",
    "mining": "retrieval:score_mining",
    "alignment": "word_alignment:score_alignment",
    "lexicon": "word_vectors:score_lexicon",
    "analogy": "word_vectors:score_analogy",
    "similarity": "word_vectors:score_similarity",
    "probe": "probing:score_probe",
}
"""Kind of task -> module of this package and function, imported when a task of the kind is scored.

The function takes a `ScoringJob` and gives the scores of all layers.
"""
MAX_PAIRS = 1000
"""Pairs of each file of translations, unless `FeatureConfig.limit` is set."""


def evaluate(
    model: str | Path,
    tasks: str | Sequence[str] = (),
    data: str | Path = "eval",
    *,
    pairs: Sequence[str | Path] = (),
    languages: Sequence[str] | None = None,
    features: FeatureConfig | None = None,
    finetuning: FinetuneRequest | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    note: Note | None = None,
) -> Results:
    """Score a model on tasks and on translations of your own, in many languages.

        results = isoglot.evaluate("runs/mine", ["tatoeba", "xling"], "eval", languages=["sw"])

    Args:
        model: a Hugging Face folder of an encoder, or a run folder (`runs/NAME`).
        tasks: names of tasks (`isoglot show tasks`), or `package.module:Class` for your own.
        data: folder of the tasks' files (docs/tasks.md).
        pairs: TSV files of translations, two columns, named after their languages: `en-de.tsv`.
        languages: languages to score, or a paper's set such as `xnli`; none: all.
        features: settings of tasks that read the model as it is.
        finetuning: settings of tasks that need fine-tuning (XNLI, MLQA, ...); none: zero-shot from
            English with one seed and the hyperparameters of XTREME (see `isoglot.finetune`).
        out: results file; existing scores are kept and not computed again. None: no file.
        progress: called with (task, splits done, all splits).
        note: called with sentences about skipped lines and existing scores.

    Returns:
        A score for each task, language, metric, layer and seed, and the scores `out` had already.
    """
    folder = model_folder(Path(model))
    names = [tasks] if isinstance(tasks, str) else list(tasks)
    if not names and not pairs:
        raise IsoglotError("There is nothing to score: give tasks, or files of pairs.")
    trained = [name for name in names if find_task(name).kind in FINE_TUNED_KINDS]
    read = [name for name in names if name not in trained]
    features, file = features or FeatureConfig(), None if out is None else Path(out)
    results = existing_results(folder, file)
    if pairs:
        scores = pair_scores(folder, [Path(pair) for pair in pairs], features, note=note)
        results = add_scores(results, scores, file)
    called: dict[str, Any] = {"out": file, "progress": progress, "note": note}
    if read:
        found = evaluate_tasks(folder, read, Path(data), features, languages=languages, **called)
        results = results.merged(found.scores)
    if trained:
        from isoglot.finetuning.finetune import finetune_tasks

        request = finetuning or _zero_shot_request(languages)
        found = finetune_tasks(folder, trained, Path(data), request, **called)
        results = results.merged(found.scores)
    return results


def _zero_shot_request(languages: Sequence[str] | None) -> FinetuneRequest:
    from isoglot.finetuning.settings import FinetuneRequest, ScenarioConfig
    from isoglot.tasks.language_sets import expand_languages

    targets = None if languages is None else expand_languages(languages)
    return FinetuneRequest(scenario=ScenarioConfig(targets=targets))


def evaluate_tasks(
    folder: Path,
    names: Sequence[str],
    data: Path,
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
        have = sorted({split.language for task in tasks for split in task.splits(data)})
        raise CorpusError(f"{data} has {', '.join(names)} only in {', '.join(have)}.")
    results = existing_results(folder, out, tasks=names, note=note)
    pretokenization, model = Pretokenizer.load(folder), None
    for task, of_task in zip(tasks, splits, strict=True):
        for number, split in enumerate(of_task):
            if progress is not None:
                progress(task.name, number, len(of_task))
            is_wanted = on_prediction is not None and task.kind == "probe"
            scenario = settings.scenario(task.kind)
            if is_wanted or not is_scored(results.scores, task, split.language, scenario):
                model = model or _load(folder)
                job = ScoringJob(*model, task, split, settings, pretokenization)
                results = add_scores(results, _split_scores(job, data, on_prediction), out)
        if progress is not None and of_task:
            progress(task.name, len(of_task), len(of_task))
    return results


def _load(folder: Path) -> tuple[Encoder, Any]:
    from isoglot.evaluation.loading import load_for_scoring

    return load_for_scoring(folder)


def _split_scores(job: ScoringJob, data: Path, on_prediction: OnPrediction | None) -> list[Score]:
    """The scores of one split at all layers."""
    task, options = job.task, dict[str, Any]()
    if on_prediction is not None and task.kind == "probe":
        options["on_prediction"] = partial(on_prediction, task.name)
    if task.kind == "mining" and job.split.name != "dev":
        wanted = job.split.language, "dev"
        devs = (split for split in task.splits(data) if (split.language, split.name) == wanted)
        options["dev"] = next(devs, None)
    module, _, function = SCORERS[task.kind].partition(":")
    score = getattr(importlib.import_module(f"isoglot.evaluation.{module}"), function)
    found: list[Score] = score(job, **options)
    return found


def pair_scores(
    folder: Path,
    files: Sequence[Path],
    settings: FeatureConfig,
    *,
    progress: Callable[[str], None] | None = None,
    note: Note | None = None,
) -> list[Score]:
    """Retrieval scores on files of translations named like `en-de.tsv`; nothing is written."""
    from isoglot.evaluation.retrieval import score_retrieval
    from isoglot.tasks.base import TaskSplit
    from isoglot.tasks.bitext import UserPairs
    from isoglot.tasks.examples import SentencePair
    from isoglot.tasks.pretokenized import pretokenize_examples

    pairs = read_pairs(files, settings.limit or MAX_PAIRS, note)
    # the first pairs of a file are read: the limit is not part of the scores' scenario
    settings = replace(settings, limit=None)
    model = _load(folder)
    pretokenization = Pretokenizer.load(folder)
    found: list[Score] = []
    for name, sides in pairs.items():
        if progress is not None:
            progress(name)
        examples = [SentencePair(first=a, second=b) for a, b in zip(*sides, strict=True)]
        examples = pretokenize_examples(examples, name, pretokenization)
        job = ScoringJob(*model, UserPairs(), TaskSplit(name, "test", ()), settings)
        found += score_retrieval(job, examples)
    return found

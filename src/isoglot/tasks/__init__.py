"""Evaluation tasks: data sets and their official scores. Nothing here trains or imports torch.

To add a task, write one class in a file of this folder, derived from `Task` or from the base class
of its kind (`ClassificationTask`, `TaggingTask`, ...), and add one entry to `TASKS`. A task of your
own can live in another package: name it `package.module:Class` wherever a task is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError, import_class, nearest

if TYPE_CHECKING:
    from isoglot.tasks.base import Task, TaskKind

TASKS: dict[str, str] = {
    "xnli": "nli:Xnli",
    "esxnli": "nli:EsXnli",
    "sick": "nli:Sick",
    "paws-x": "classification:PawsX",
    "cls": "classification:AmazonReviews",
    "cls-books": "classification:AmazonBooks",
    "cls-dvd": "classification:AmazonDvds",
    "cls-music": "classification:AmazonMusic",
    "conll": "ner:Conll",
    "wikiann": "ner:WikiAnn",
    "masakhaner": "ner:MasakhaNer",
    "masakhaner2": "ner:MasakhaNer2",
    "germeval2014": "ner:GermEval",
    "uner": "ner:UniversalNer",
    "ud-pos": "tagging:UdPos",
    "squad": "squad:Squad",
    "squad-v2": "squad:SquadV2",
    "mlqa": "multilingual_qa:Mlqa",
    "xquad": "multilingual_qa:Xquad",
    "tydiqa": "multilingual_qa:TydiQa",
    "tydiqa-primary": "tydiqa_primary:TydiQaPrimary",
    "copa": "multiple_choice:Copa",
    "xcopa": "multiple_choice:Xcopa",
    "retrieval": "bitext:UserPairs",
    "tatoeba": "bitext:Tatoeba",
    "bucc": "bitext:Bucc",
    "alignment": "gold_alignments:XlmAlignGold",
    "alignment-awesome": "gold_alignments:AwesomeAlignGold",
    "xling": "lexical:XlingEval",
    "muse": "lexical:Muse",
    "analogy": "lexical:GoogleAnalogies",
    "analogy-royal": "lexical:RoyalAnalogies",
    "word-similarity": "lexical:WordSimilarity",
    "lama": "lama:Lama",
    "mlama": "multilingual_facts:Mlama",
    "xfactr": "multilingual_facts:Xfactr",
    "entity-linking": "linking:EntityLinking",
    "object-entailment": "linking:ObjectEntailment",
    "testbed-nli": "testbed:WorldNli",
    "testbed-paraphrases": "testbed:WorldParaphrases",
    "testbed-sentiment": "testbed:WorldSentiment",
    "testbed-ner": "testbed:WorldNer",
    "testbed-pos": "testbed:WorldPos",
    "testbed-questions": "testbed:WorldQuestions",
}
"""Name of a task -> file of this folder and class. A file is imported when its task is named."""

FINE_TUNED_KINDS: frozenset[TaskKind] = frozenset(
    {"text-classification", "token-classification", "question-answering", "multiple-choice"}
)
"""Kinds of tasks that a model is trained for; the others read features of the model as it is."""


def find_task(name: str) -> Task[Any, Any]:
    """The task of a name in `TASKS`, or of `package.module:Class`."""
    return _task_class(name)()


def all_tasks() -> list[type[Task[Any, Any]]]:
    """The classes of all tasks in `TASKS`."""
    return [_task_class(name) for name in TASKS]


def _task_class(name: str) -> type[Task[Any, Any]]:
    from isoglot.tasks.base import Task

    if name not in TASKS and ":" not in name:
        raise IsoglotError(f"There is no task {name!r}: {nearest(name, TASKS)}")
    path = f"{__name__}.{TASKS[name]}" if name in TASKS else name
    found: type[Task[Any, Any]] = import_class(path, Task, f"The task {name!r}", IsoglotError)
    return found


__all__ = ["FINE_TUNED_KINDS", "TASKS", "all_tasks", "find_task"]

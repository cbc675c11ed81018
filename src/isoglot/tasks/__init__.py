"""Evaluation tasks: data and scoring, one file each. Nothing here trains or needs torch.

`TASKS` is the list of them, `find_task` finds one by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.averaging import BOTH
from isoglot.errors import IsoglotError, nearest
from isoglot.tasks.alignment import AwesomeAlignGold, XlmAlignGold
from isoglot.tasks.analogy import GoogleAnalogies, RoyalAnalogies
from isoglot.tasks.base import Kind, Metric, Part, Split, Task
from isoglot.tasks.bucc import Bucc
from isoglot.tasks.cls import AmazonBooks, AmazonDvds, AmazonMusic, AmazonReviews
from isoglot.tasks.conll import Conll
from isoglot.tasks.germeval import GermEval
from isoglot.tasks.lama import Lama
from isoglot.tasks.lexicon import Muse, XlingEval
from isoglot.tasks.masakhaner import MasakhaNer
from isoglot.tasks.mlama import Mlama
from isoglot.tasks.mlqa import Mlqa
from isoglot.tasks.paws_x import PawsX
from isoglot.tasks.sick import Sick
from isoglot.tasks.squad import Squad
from isoglot.tasks.squad_v2 import SquadV2
from isoglot.tasks.tatoeba import OwnPairs, Tatoeba
from isoglot.tasks.testbed import TESTBED
from isoglot.tasks.tydiqa import TydiQa
from isoglot.tasks.ud_pos import UdPos
from isoglot.tasks.uner import UniversalNer
from isoglot.tasks.wikiann import WikiAnn
from isoglot.tasks.word_similarity import WordSimilarity
from isoglot.tasks.xcopa import Copa, Xcopa
from isoglot.tasks.xfactr import Xfactr
from isoglot.tasks.xnli import EsXnli, Xnli
from isoglot.tasks.xquad import Xquad

if TYPE_CHECKING:
    from collections.abc import Collection

TASKS: tuple[type[Task[Any, Any]], ...] = (
    Xnli,
    EsXnli,
    Sick,
    PawsX,
    AmazonReviews,
    AmazonBooks,
    AmazonDvds,
    AmazonMusic,
    Conll,
    WikiAnn,
    MasakhaNer,
    GermEval,
    UniversalNer,
    UdPos,
    Squad,
    SquadV2,
    Mlqa,
    Xquad,
    TydiQa,
    Copa,
    Xcopa,
    OwnPairs,
    Tatoeba,
    Bucc,
    XlmAlignGold,
    AwesomeAlignGold,
    XlingEval,
    Muse,
    GoogleAnalogies,
    RoyalAnalogies,
    WordSimilarity,
    Lama,
    Mlama,
    Xfactr,
    *TESTBED,
)

FINE_TUNED: frozenset[Kind] = frozenset({"classify", "tag", "span", "choice"})
"""Kinds that a model is trained for; the others read features of the model as it is."""


def find_task(name: str) -> Task[Any, Any]:
    """The task of a name.

    Raises:
        IsoglotError: there is none; the message has the nearest name.
    """
    for kind in TASKS:
        if kind.name == name:
            return kind()
    names = [kind.name for kind in TASKS]
    raise IsoglotError(f"There is no task {name!r}: {nearest(name, names)}")


def shown_metric(name: str, there: Collection[str]) -> str:
    """The metric that tables show of a task: its first one, or F1 with exact match.

    `there` are the metrics that were scored, at least one; the first of them counts where the task
    is unknown or its metric is missing.
    """
    known = [kind.metrics[0].name for kind in TASKS if kind.name == name]
    return next((metric for metric in (BOTH, *known) if metric in there), next(iter(there)))


__all__ = ["FINE_TUNED", "TASKS", "Metric", "Part", "Split", "Task", "find_task", "shown_metric"]

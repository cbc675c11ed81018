"""Evaluation tasks: data and scoring, one file each. Nothing here trains or needs torch.

`TASKS` is the list of them, `find_task` finds one by its name.
"""

from __future__ import annotations

from typing import Any

from isoglot.errors import IsoglotError, nearest
from isoglot.tasks.alignment import AwesomeAlignGold, XlmAlignGold
from isoglot.tasks.analogy import GoogleAnalogies, RoyalAnalogies
from isoglot.tasks.base import Kind, Metric, Part, Split, Task
from isoglot.tasks.bucc import Bucc
from isoglot.tasks.cls import AmazonReviews
from isoglot.tasks.conll import Conll2002, Conll2003
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
from isoglot.tasks.tatoeba import Tatoeba
from isoglot.tasks.testbed import TESTBED
from isoglot.tasks.tydiqa import TydiQa
from isoglot.tasks.ud_pos import UdPos
from isoglot.tasks.uner import UniversalNer
from isoglot.tasks.wikiann import WikiAnn
from isoglot.tasks.word_similarity import WordSimilarity
from isoglot.tasks.xcopa import Xcopa
from isoglot.tasks.xfactr import Xfactr
from isoglot.tasks.xnli import EsXnli, Xnli
from isoglot.tasks.xquad import Xquad

TASKS: tuple[type[Task[Any, Any]], ...] = (
    Xnli,
    EsXnli,
    Sick,
    PawsX,
    AmazonReviews,
    Conll2002,
    Conll2003,
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
    Xcopa,
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


__all__ = ["FINE_TUNED", "TASKS", "Metric", "Part", "Split", "Task", "find_task"]

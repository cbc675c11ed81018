"""The papers' fine-tuning settings by name: `--protocol xlm-k`.

A protocol has settings for the tasks its paper ran, some of them other ones where the training data
of all languages are joined, and for a task that it did not run those of the nearest kind. Every
value is named with its place in the paper. What a paper leaves open is the default of `settings`,
with these exceptions, marked *open* below: lengths, which follow XTREME (128; questions 384, stride
128).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from isoglot.errors import RecipeError, nearest
from isoglot.finetune.scenarios import JOINED
from isoglot.finetune.settings import FinetuneConfig

if TYPE_CHECKING:
    from isoglot.finetune.scenarios import Scenario
    from isoglot.tasks.base import Task

_CLS = ("cls", "cls-books", "cls-dvd", "cls-music")
_WITHOUT_DEV = (*_CLS, "tydiqa", "xquad")
"""Tasks with no dev data beside what is scored: CLS has none, TyDiQA's are scored, and XQuAD is a
translation of the dev data of SQuAD, which it is trained on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """A paper's settings."""

    line: str
    """Where they are from."""
    seeds: int
    """Trainings that the paper averages over."""
    kinds: dict[str, FinetuneConfig]
    """For the tasks of a kind that have no settings of their own; `classify` is always there."""
    tasks: dict[str, FinetuneConfig] = field(default_factory=dict)
    """For single tasks."""
    joined: dict[str, FinetuneConfig] = field(default_factory=dict)
    """For single tasks, where the training data of all languages are joined."""


def _span(**values: Any) -> FinetuneConfig:
    return FinetuneConfig(**{"max_length": 384, "stride": 128, **values})


# XLM-K, "Details of Fine-Tuning": Adam with warm-up (how much: open); the best mean over dev of all
# languages; four seeds.
_XLM_K = Protocol(
    line="XLM-K, section Details of Fine-Tuning",
    seeds=4,
    kinds={
        # XNLI: 10 epochs, the rest as for NER
        "classify": FinetuneConfig(
            epochs=10, learning_rate=5e-6, batch_size=32, selection="all-dev"
        ),
        # NER: 20 epochs, 5e-6, batches of 32
        "tag": FinetuneConfig(epochs=20, learning_rate=5e-6, batch_size=32, selection="all-dev"),
        # MLQA: 2 epochs, 3e-5, batches of 12
        "span": _span(epochs=2, learning_rate=3e-5, batch_size=12, selection="all-dev"),
    },
)

# ERNIE-M, Appendix C: linear schedule, warm-up 10 %, best on the validation set, five runs. Lengths
# are those of the released scripts (XNLI 256; MLQA 384, stride 128).
_ERNIE_M_BASE = Protocol(
    line="ERNIE-M base, Table 11",
    seeds=5,
    kinds={
        # column XNLI
        "classify": FinetuneConfig(
            epochs=5, batch_size=32, learning_rate=5e-5, layer_decay=0.8, max_length=256
        ),
        # column CoNLL
        "tag": FinetuneConfig(
            epochs=10, batch_size=8, learning_rate=4e-4, layer_decay=0.8, weight_decay=0.01
        ),
        # column MLQA
        "span": _span(epochs=2, batch_size=32, learning_rate=3e-4, layer_decay=0.8),
    },
    joined={
        # column XNLI*
        "classify": FinetuneConfig(
            epochs=2, batch_size=128, learning_rate=5e-5, layer_decay=0.8, max_length=256
        ),
        # column CoNLL*
        "tag": FinetuneConfig(
            epochs=10, batch_size=8, learning_rate=3e-4, layer_decay=0.8, weight_decay=0.01
        ),
    },
)
_ERNIE_M_LARGE = Protocol(
    line="ERNIE-M large, Table 12",
    seeds=5,
    kinds={
        # column XNLI
        "classify": FinetuneConfig(
            epochs=5, batch_size=32, learning_rate=5e-5, layer_decay=0.8, max_length=256
        ),
        # column CoNLL
        "tag": FinetuneConfig(
            epochs=10, batch_size=8, learning_rate=4e-4, layer_decay=0.8, weight_decay=0.01
        ),
        # column MLQA
        "span": _span(epochs=2, batch_size=32, learning_rate=8e-5, layer_decay=0.9),
    },
    tasks={
        # column PAWS-X
        "paws-x": FinetuneConfig(
            epochs=10,
            batch_size=64,
            learning_rate=5e-5,
            layer_decay=0.9,
            weight_decay=0.01,
            max_length=256,
        ),
    },
    joined={
        # column XNLI*
        "classify": FinetuneConfig(
            epochs=1, batch_size=128, learning_rate=5e-5, layer_decay=0.8, max_length=256
        ),
        # column CoNLL*
        "tag": FinetuneConfig(
            epochs=10, batch_size=8, learning_rate=3e-4, layer_decay=0.8, weight_decay=0.01
        ),
        # column PAWS-X*
        "paws-x": FinetuneConfig(
            epochs=2,
            batch_size=64,
            learning_rate=7e-5,
            layer_decay=0.9,
            weight_decay=0.01,
            max_length=256,
        ),
    },
)

# MLM-GC, sections 5.3 and 5.4, Appendix A.2.3 and A.2.4: Adam, linear decay, no warm-up named. For
# questions it follows BERT's instructions for SQuAD (BERT, section 4.2: 3 epochs, batches of 32).
# Epochs of XNLI: open. Its rate of 5e-4 is as printed, in the text and in the appendix.
_MLM_GC = Protocol(
    line="MLM-GC, sections 5.3 and 5.4",
    seeds=1,
    kinds={
        "classify": FinetuneConfig(epochs=3, batch_size=16, learning_rate=5e-4, warmup=0.0),
        "span": _span(epochs=3, batch_size=32, learning_rate=5e-5, warmup=0.0),
    },
)

# MetaXLM, Table 8: linear schedule and warm-up 10 % throughout; five seeds (Table 1). How a model
# is chosen: open.
_METAXLM = Protocol(
    line="MetaXLM, Table 8",
    seeds=5,
    kinds={
        # column XNLI
        "classify": FinetuneConfig(epochs=6, batch_size=32, learning_rate=1e-5, weight_decay=0.01),
        # column NER
        "tag": FinetuneConfig(epochs=10, batch_size=8, learning_rate=7e-6),
        # columns XQuAD and MLQA
        "span": _span(epochs=4, batch_size=32, learning_rate=3e-5),
    },
    tasks={
        # column POS
        "ud-pos": FinetuneConfig(epochs=10, batch_size=32, learning_rate=1e-5),
        # column PAWS-X
        "paws-x": FinetuneConfig(epochs=10, batch_size=32, learning_rate=2e-5, weight_decay=0.01),
        # column Amazon
        **dict.fromkeys(
            _CLS, FinetuneConfig(epochs=5, batch_size=32, learning_rate=2e-5, weight_decay=0.01)
        ),
        # column TyDiQA
        "tydiqa": _span(epochs=40, batch_size=32, learning_rate=4e-5),
    },
)

# PPA, section 3.3: AdamW with weight decay 0.01, linear schedule, warm-up of 1,000 steps, 2 epochs,
# batches of 32. Translated pairs are code-switched (section 2.3).
_PPA = Protocol(
    line="PPA, sections 2.3 and 3.3",
    seeds=1,
    kinds={
        # XNLI: 5e-5, length 128
        "classify": FinetuneConfig(
            epochs=2,
            batch_size=32,
            learning_rate=5e-5,
            warmup=1000,
            weight_decay=0.01,
            code_switch=True,
        ),
        # MLQA: 3e-5, length 386 (sic)
        "span": _span(
            epochs=2,
            batch_size=32,
            learning_rate=3e-5,
            warmup=1000,
            weight_decay=0.01,
            max_length=386,
            code_switch=True,
        ),
    },
)

# XTREME's scripts (scripts/train_*.sh at 838c13b): batches of 32 in all of them; the best on
# English dev. They choose among checkpoints of every few hundred steps, we among epochs.
_XTREME = Protocol(
    line="XTREME's scripts (train_xnli.sh, train_panx.sh, train_qa.sh, ...)",
    seeds=1,
    kinds={
        # train_xnli.sh, train_pawsx.sh: 5 epochs, 2e-5 (XNLI with large models: 3e-5), length 128
        "classify": FinetuneConfig(epochs=5, learning_rate=2e-5, warmup=0.0),
        # train_panx.sh, train_udpos.sh: 10 epochs, 2e-5, length 128
        "tag": FinetuneConfig(epochs=10, learning_rate=2e-5, warmup=0.0),
        # train_qa.sh: 3 epochs, 3e-5, length 384, stride 128, warm-up 500, weight decay 1e-4
        "span": _span(epochs=3, learning_rate=3e-5, warmup=500, weight_decay=1e-4),
    },
)

# Not a paper's: large steps for models of a million weights on generated text.
_TESTBED = Protocol(
    line="this project's, for tiny models on the testbed",
    seeds=2,
    kinds={
        "classify": FinetuneConfig(epochs=4, learning_rate=5e-4, max_length=64, dropout=0.0),
        "tag": FinetuneConfig(epochs=3, learning_rate=1e-3, max_length=64, dropout=0.0),
        "span": FinetuneConfig(
            epochs=4, learning_rate=1e-3, max_length=128, stride=32, dropout=0.0
        ),
    },
)

PROTOCOLS: dict[str, Protocol] = {
    "xlm-k": _XLM_K,
    "ernie-m-base": _ERNIE_M_BASE,
    "ernie-m-large": _ERNIE_M_LARGE,
    "mlm-gc": _MLM_GC,
    "metaxlm": _METAXLM,
    "ppa": _PPA,
    "xtreme": _XTREME,
    "testbed": _TESTBED,
}


def find_protocol(name: str) -> Protocol:
    """A protocol by its name."""
    if name not in PROTOCOLS:
        raise RecipeError(f"there is no protocol {name!r}: {nearest(name, PROTOCOLS)}")
    return PROTOCOLS[name]


def settings_for(protocol: str, task: Task[Any, Any], scenario: Scenario) -> FinetuneConfig:
    """A protocol's settings for a task: its own, or those of its kind, or else of `classify`.

    A task without dev data to choose by has the last epoch scored, whatever the protocol says.
    """
    found = _settings_of(find_protocol(protocol), task, scenario)
    return replace(found, selection="last") if task.name in _WITHOUT_DEV else found


def _settings_of(found: Protocol, task: Task[Any, Any], scenario: Scenario) -> FinetuneConfig:
    joined = found.joined if scenario in JOINED else {}
    for settings, key in (
        (joined, task.name),
        (found.tasks, task.name),
        (joined, task.kind),
        (found.kinds, task.kind),
    ):
        if key in settings:
            return settings[key]
    return found.kinds["classify"]

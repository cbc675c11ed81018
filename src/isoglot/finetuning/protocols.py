"""Fine-tuning hyperparameters of the papers, by name: `--protocol xlm-k`.

A protocol has settings for the tasks of its paper, separate ones where the training data of all
languages are pooled, and for other tasks the settings of the same kind. Comments cite the place in
the paper. A value that the paper does not give is the default of `FinetuneConfig`; lengths follow
XTREME (128 tokens; questions 384 with a stride of 128).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from isoglot.errors import RecipeError, nearest
from isoglot.finetuning.settings import (
    MULTILINGUAL,
    FinetuneConfig,
    FinetuneRequest,
    ScenarioConfig,
)
from isoglot.languages import canonical
from isoglot.tasks.language_sets import expand_languages, language_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.finetuning.settings import Scenario
    from isoglot.tasks.base import Task

_CLS = ("cls", "cls-books", "cls-dvd", "cls-music")
_WITHOUT_DEV = (*_CLS, "tydiqa", "tydiqa-primary", "xquad")
"""Tasks without dev data for model selection: CLS has none, TyDiQA's dev data is scored, and XQuAD
translates the dev data of SQuAD, its training task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """A paper's settings."""

    line: str
    """The place in the paper."""
    seeds: int
    """Random seeds that the paper averages over."""
    kinds: dict[str, FinetuneConfig]
    """Kind of task -> settings of tasks without their own; text-classification is always there."""
    tasks: dict[str, FinetuneConfig] = field(default_factory=dict)
    """Task -> its settings."""
    pooled: dict[str, FinetuneConfig] = field(default_factory=dict)
    """Task or kind -> its settings where the training data of all languages are pooled."""

    def columns(self) -> dict[str, FinetuneConfig]:
        """What settings are for -> settings, for tables; tasks with the same settings together."""
        pooled = {f"{name}, all languages": config for name, config in self.pooled.items()}
        names: dict[FinetuneConfig, list[str]] = {}
        for name, config in {**self.kinds, **self.tasks, **pooled}.items():
            names.setdefault(config, []).append(name)
        return {"; ".join(same): config for config, same in names.items()}


_span = partial(FinetuneConfig, max_length=384, stride=128)

# XLM-K, "Details of Fine-Tuning": Adam with warm-up (its length is not given); best mean over dev
# of all languages; four seeds. The paper follows XGLUE (Liang et al. 2020) and gives no lengths:
# those of XGLUE's script are 256 (XNLI, NER) and 384 with a stride of 128 (MLQA).
_XLM_K_NER = FinetuneConfig(epochs=20, learning_rate=5e-6, max_length=256, selection="all-dev")
_XLM_K = Protocol(
    line="XLM-K, section Details of Fine-Tuning; lengths of XGLUE's script",
    seeds=4,
    kinds={
        "text-classification": replace(_XLM_K_NER, epochs=10),  # XNLI: the rest as for NER
        "token-classification": _XLM_K_NER,  # NER: 20 epochs, 5e-6, batches of 32
        # MLQA: 2 epochs, 3e-5, batches of 12
        "question-answering": _span(
            epochs=2, learning_rate=3e-5, batch_size=12, selection="all-dev"
        ),
    },
)

# ERNIE-M, Appendix C: linear schedule, warm-up 10 %, best on the validation set, five runs. Lengths
# are those of the released scripts (XNLI 256; MLQA 384, stride 128). Tables 11 (base) and 12
# (large) agree on XNLI but for the epochs of XNLI*, and on CoNLL.
_ERNIE_M_XNLI = FinetuneConfig(
    epochs=5, batch_size=32, learning_rate=5e-5, layerwise_lr_decay=0.8, max_length=256
)
_ERNIE_M_CONLL = FinetuneConfig(
    epochs=10, batch_size=8, learning_rate=4e-4, layerwise_lr_decay=0.8, weight_decay=0.01
)
_ERNIE_M_PAWSX = FinetuneConfig(
    epochs=10,
    batch_size=64,
    learning_rate=5e-5,
    layerwise_lr_decay=0.9,
    weight_decay=0.01,
    max_length=256,
)
_ERNIE_M_BASE = Protocol(
    line="ERNIE-M base, Table 11",
    seeds=5,
    kinds={
        "text-classification": _ERNIE_M_XNLI,  # column XNLI
        "token-classification": _ERNIE_M_CONLL,  # column CoNLL
        # column MLQA
        "question-answering": _span(
            epochs=2, batch_size=32, learning_rate=3e-4, layerwise_lr_decay=0.8
        ),
    },
    pooled={
        "text-classification": replace(_ERNIE_M_XNLI, epochs=2, batch_size=128),  # column XNLI*
        "token-classification": replace(_ERNIE_M_CONLL, learning_rate=3e-4),  # column CoNLL*
    },
)
_ERNIE_M_LARGE = Protocol(
    line="ERNIE-M large, Table 12",
    seeds=5,
    kinds={
        **_ERNIE_M_BASE.kinds,
        # column MLQA
        "question-answering": _span(
            epochs=2, batch_size=32, learning_rate=8e-5, layerwise_lr_decay=0.9
        ),
    },
    tasks={"paws-x": _ERNIE_M_PAWSX},  # column PAWS-X
    pooled={
        **_ERNIE_M_BASE.pooled,
        "text-classification": replace(_ERNIE_M_XNLI, epochs=1, batch_size=128),  # column XNLI*
        "paws-x": replace(_ERNIE_M_PAWSX, epochs=2, learning_rate=7e-5),  # column PAWS-X*
    },
)

# MLM-GC, sections 5.3 and 5.4, Appendix A.2.3 and A.2.4: Adam, linear decay, no warm-up, a linear
# classifier on the encoder. For questions it follows BERT's instructions for SQuAD (BERT, section
# 4.2: 3 epochs, batches of 32). Epochs of XNLI: not given. Its learning rate of 5e-4 is printed in
# the text and the appendix.
_MLM_GC = Protocol(
    line="MLM-GC, sections 5.3 and 5.4",
    seeds=1,
    kinds={
        "text-classification": FinetuneConfig(
            epochs=3, batch_size=16, learning_rate=5e-4, warmup_ratio=0.0, pooler="none"
        ),
        "question-answering": _span(epochs=3, batch_size=32, learning_rate=5e-5, warmup_ratio=0.0),
    },
)

# MetaXLM, Table 8: linear schedule and warm-up 10 % throughout; five seeds (Table 1). Model
# selection: not given.
_METAXLM = Protocol(
    line="MetaXLM, Table 8",
    seeds=5,
    kinds={
        # column XNLI
        "text-classification": FinetuneConfig(
            epochs=6, batch_size=32, learning_rate=1e-5, weight_decay=0.01
        ),
        # column NER
        "token-classification": FinetuneConfig(epochs=10, batch_size=8, learning_rate=7e-6),
        # columns XQuAD and MLQA
        "question-answering": _span(epochs=4, batch_size=32, learning_rate=3e-5),
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
# batches of 32. The classifier is on the [CLS] state itself, and translated pairs are code-switched
# (section 2.3).
_PPA_XNLI = FinetuneConfig(
    epochs=2,
    batch_size=32,
    learning_rate=5e-5,
    warmup_steps=1000,
    weight_decay=0.01,
    pooler="none",
    code_switch=True,
)
_PPA = Protocol(
    line="PPA, sections 2.3 and 3.3",
    seeds=1,
    kinds={
        "text-classification": _PPA_XNLI,  # XNLI: 5e-5, length 128
        # MLQA: 3e-5, length 386 (sic)
        "question-answering": replace(_PPA_XNLI, learning_rate=3e-5, max_length=386, stride=128),
    },
)

# XTREME's scripts (scripts/train_*.sh at 838c13b): batches of 32 in all of them; the best on
# English dev. They select among checkpoints every few hundred steps, we among epochs.
_XTREME = Protocol(
    line="XTREME's scripts (train_xnli.sh, train_panx.sh, train_qa.sh, ...)",
    seeds=1,
    kinds={
        # train_xnli.sh, train_pawsx.sh: 5 epochs, 2e-5 (XNLI with large models: 3e-5), length 128
        "text-classification": FinetuneConfig(epochs=5, learning_rate=2e-5, warmup_ratio=0.0),
        # train_panx.sh, train_udpos.sh: 10 epochs, 2e-5, length 128
        "token-classification": FinetuneConfig(epochs=10, learning_rate=2e-5, warmup_ratio=0.0),
        # train_qa.sh: 3 epochs, 3e-5, length 384, stride 128, warm-up 500, weight decay 1e-4
        "question-answering": _span(
            epochs=3, learning_rate=3e-5, warmup_steps=500, weight_decay=1e-4
        ),
    },
)

# Not a paper's: large steps for models of a million weights on generated text.
_TESTBED = Protocol(
    line="this project's, for tiny models on the testbed",
    seeds=2,
    kinds={
        "text-classification": FinetuneConfig(
            epochs=4, learning_rate=5e-4, max_length=64, dropout=0.0
        ),
        "token-classification": FinetuneConfig(
            epochs=3, learning_rate=1e-3, max_length=64, dropout=0.0
        ),
        "question-answering": FinetuneConfig(
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


def build_request(
    scenario: Scenario,
    sources: Sequence[str],
    languages: Sequence[str] | None,
    train_languages: Sequence[str] | None,
    protocol: str,
    settings: Mapping[str, Any],
    seeds: int | Sequence[int] | None,
) -> FinetuneRequest:
    """A request from the arguments of `isoglot.finetune`."""
    number = find_protocol(protocol).seeds if seeds is None else seeds
    known = [one.name for one in fields(FinetuneConfig)]
    for name in settings:
        if name not in known:
            raise RecipeError(f"settings: there is no setting {name!r}; {nearest(name, known)}")
    return FinetuneRequest(
        scenario=ScenarioConfig(
            name=scenario,
            sources=tuple(dict.fromkeys(language_code(one) or canonical(one) for one in sources)),
            targets=None if languages is None else expand_languages(languages),
            train_languages=None if train_languages is None else expand_languages(train_languages),
        ),
        protocol=protocol,
        changes=dict(settings),
        seeds=tuple(range(number) if isinstance(number, int) else number),
    )


def settings_for(request: FinetuneRequest, task: Task[Any, Any]) -> FinetuneConfig:
    """The protocol's settings for a task, with the request's changes.

    A task without settings has those of its kind, or of text classification. A task without dev
    data has its last epoch scored, whatever the protocol says.
    """
    protocol = find_protocol(request.protocol)
    pooled = protocol.pooled if request.scenario.name in MULTILINGUAL else {}
    known = {**protocol.kinds, **protocol.tasks, **pooled}
    settings = known.get(task.name) or known.get(task.kind) or protocol.kinds["text-classification"]
    if task.name in _WITHOUT_DEV:
        settings = replace(settings, selection="last")
    return replace(settings, **request.changes)

"""What an objective is: a file with two classes.

`Objective`, a frozen dataclass of settings, builds sequences from examples. All its randomness
comes from the generator it is given, and it computes the lengths of sequences from the sizes of
examples. It uses no model and runs in loader workers. Its `ObjectiveModule` computes, from encoded
rows, a sum of losses; the training loop alone divides, by the count of the whole step over all
micro-batches and processes.
"""

# ruff: noqa: ARG002 (methods that objectives override do not read their arguments)

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree
from typing_extensions import override

from isoglot.models.sharding import gathered, runs_together
from isoglot.ranges import Range, check_ranges
from isoglot.types import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isoglot.corpus import Corpus
    from isoglot.corpus.engine.runner import Progress
    from isoglot.models.config import GenerationConfig
    from isoglot.models.encoder import Encoder, States
    from isoglot.models.objective_heads import ObjectiveHead
    from isoglot.models.seq2seq import Generated, Seq2Seq
    from isoglot.types import Example, IntArray, Rng, Rows, Sequence, Vocabulary


@dataclass(slots=True, kw_only=True)
class LossSum:
    """The loss of one objective over one micro-batch: a sum, never a mean."""

    total: Tensor
    """The loop divides it by the count of the whole step (`Batch.num_targets`)."""
    metrics: dict[str, Tensor] = field(default_factory=dict)
    """Sums that are divided by the same count (accuracy, ...)."""
    ratios: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Means with a count of their own: (sum, count)."""


# FSDP looks for the losses in what a module gives, to know when its backward pass begins
_pytree.register_dataclass(LossSum, field_names=["total", "metrics", "ratios"])


@dataclass(slots=True, kw_only=True)
class ForwardResult:
    """The output of the forward pass that one objective reads."""

    batch: Batch
    name: str
    hidden_states: Tensor
    """(B, L, D) states of the main rows, of the last layer or of the module's `layer`."""
    target_losses: Tensor
    """Cross-entropy at this objective's target positions."""
    correct: Tensor
    """1 where the most likely token is the target, at the same positions."""
    decoder_states: Tensor | None = None
    """(B', T, D) states of the decoder, with one and where a micro-batch has rows to decode."""

    def empty_loss(self, *metrics: str, ratios: tuple[str, ...] = ()) -> LossSum:
        """The loss of a micro-batch without predictions of this objective: 0, with a gradient.

        Processes add up their sums in one order, so `metrics` and `ratios` are those that `loss`
        gives, in its order; without any: `accuracy`.
        """
        nothing = self.target_losses.sum() * 0.0
        names = metrics or (() if ratios else ("accuracy",))
        zero = nothing.detach()
        return LossSum(
            total=nothing,
            metrics=dict.fromkeys(names, zero),
            ratios=dict.fromkeys(ratios, (zero, zero)),
        )


class Inference:
    """The encoder being trained, without gradient and dropout, for `before_forward`."""

    def __init__(self, encoder: Encoder, seq2seq: Seq2Seq | None = None) -> None:
        """`seq2seq` is the encoder-decoder of the encoder, if it has one."""
        self.encoder, self.seq2seq = encoder, seq2seq

    def states(self, rows: Rows) -> States:
        """The hidden states of rows."""
        with torch.no_grad(), _evaluating(self.encoder):
            states: States = self.encoder(rows)
            return states

    def logits(self, states: States, positions: Tensor) -> Iterator[Tensor]:
        """The LM head's logits (n, V) at flat indices, a chunk of positions at a time."""
        for some in positions.split(self.encoder.settings.lm_head.chunk_size):
            with torch.no_grad(), _evaluating(self.encoder):
                logits = self.encoder.logits_at(states, some)
            yield logits

    def generate(self, rows: Rows, languages: Tensor, settings: GenerationConfig) -> Generated:
        """What the decoder generates from padded rows, in a language for each row."""
        assert self.seq2seq is not None, "only encoder-decoders generate"
        with torch.no_grad(), _evaluating(self.seq2seq):
            return self.seq2seq.generate(rows, languages, settings)

    @property
    def runs_together(self) -> bool:
        """Is a pass an exchange of weights (FSDP)? All processes must run as many passes then."""
        return runs_together(self.encoder)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Within: each process runs as many passes as it needs; all enter and leave together."""
        with gathered(self.encoder if self.seq2seq is None else self.seq2seq):
            yield


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)


class ObjectiveModule(nn.Module, ABC):
    """The model half. Heads, queues and momentum encoders are its parameters and buffers."""

    layer: int | None = None
    """The layer whose hidden states the loss reads (0: the embeddings); none: the last."""
    label_smoothing: float = 0.0
    """Label smoothing of the decoder's targets, in training."""

    def on_stage_start(self) -> None:
        """Before the first step of a stage that trains it, unless the stage before did."""

    def num_warmup_examples(self) -> int:
        """Examples for `warm_up` before its first step (keys of a queue); the same on all ranks."""
        return 0

    def warm_up(self, name: str, batch: Batch, inference: Inference) -> None:
        """Read a micro-batch that is not trained on, before its first step (fill a queue).

        All processes call it together, each with a micro-batch of its own.
        """

    def before_forward(self, name: str, batch: Batch, inference: Inference) -> None:
        """A pass without gradient before the forward pass, for example over auxiliary rows.

        `name` is the objective's name in the recipe, under which the batch holds its tensors.
        """

    @abstractmethod
    def loss(self, result: ForwardResult) -> LossSum:
        """The sum of losses over this objective's predictions."""

    def exported_head(self) -> ObjectiveHead | None:
        """What the model folder keeps of it beside the encoder; none: nothing."""
        return None

    def after_step(self, *, taken: bool) -> None:
        """Once per step: update momentum encoders, enqueue keys.

        `taken` is False where the optimizer skipped its update: nothing may change then.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(ABC):
    """The data half, and the settings that every objective has."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for tables: what it predicts from what."""
    reads: ClassVar[tuple[str, ...]]
    """The kinds of stream it can read."""
    paper: ClassVar[str]
    num_aux_sequences: ClassVar[int] = 0
    """How many of its sequences, the last ones, go into auxiliary rows for `before_forward`."""
    target_marker: ClassVar[str | None] = None
    """The marker that its loss is a mean over; none: its target tokens."""
    base_markers: ClassVar[tuple[str, ...]] = ()
    """Markers that are positions in the sequence it depends on, not in its own."""
    uses_decoder: ClassVar[bool] = False
    """Are its first two sequences the encoder's input and the decoder's output?"""
    uses_language_tokens: ClassVar[bool] = False
    """Do its sequences begin with language tokens, which only models with a decoder have?"""
    exports_head: ClassVar[bool] = False
    """Does a model folder keep something of its module (`exported_head`)?"""

    weight: Annotated[float, Range(0, 1e6)] = 1.0
    """Weight of its loss in the sum."""

    def __post_init__(self) -> None:
        check_ranges(self)

    @classmethod
    def class_for(cls, name: str, _: object) -> type[Objective]:
        """The class of a recipe's objective, by name or as `package.module:Class`."""
        from isoglot.objectives import find_objective

        return find_objective(name)

    def depends_on(self) -> tuple[str, ...]:
        """Names of objectives whose sequences it reads; none: it builds its own.

        If it depends on others it adds nothing to the main rows, and its loss is a mean over their
        target tokens, or over its `target_marker`.
        """
        return ()

    def marks_bases(self) -> bool:
        """Does `build_from` give the sequences it depends on, with markers and labels of its own?

        They are in the main rows already then: nothing is added to the rows.
        """
        return False

    def compares_examples(self) -> bool:
        """Does its loss compare the examples of a micro-batch with each other?

        How a step is split changes the loss then, and `batch.micro_rows: auto` leaves a step in one
        piece. An objective that compares those of a whole step (`StepModule`) does not.
        """
        return False

    def models(self) -> tuple[str, ...]:
        """Models that it reads: folders, runs or names on the hub, checked before a run begins."""
        return ()

    def check_together(  # noqa: B027 (most objectives go with all others)
        self, objectives: Mapping[str, Objective]
    ) -> None:
        """Raise unless it can be trained in one recipe with these objectives, by name."""

    def accepts_language(self, language: str) -> bool:
        """Does it read examples of this language (or pair of languages)?"""
        return True

    def prepare(self, corpus: Corpus, progress: Progress | None = None) -> Objective:
        """Compute what it needs of a corpus beside the text (counts, phrases), unless it exists.

        Gives the objective that knows where the results are. Of several processes, one goes first.
        """
        return self

    @abstractmethod
    def lengths(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n, m) upper bounds on the lengths of their sequences."""

    def num_positions(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n,) position embeddings that their sequences need."""
        return np.asarray(self.lengths(sizes).max(axis=1), np.int32)

    def max_targets(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n,) upper bounds on their target tokens."""
        return np.zeros(len(sizes), np.int32)

    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        """The sequences of one example."""
        return ()

    def build_from(
        self, bases: tuple[Sequence, ...], vocabulary: Vocabulary, rng: Rng
    ) -> tuple[Sequence, ...]:
        """The auxiliary sequences of an example, from those of the objectives it depends on.

        If it `marks_bases`: those sequences in the main rows, with its markers and labels.
        """
        return ()

    def build_padded(
        self, example: Example, vocabulary: Vocabulary, rng: Rng, max_length: int
    ) -> tuple[Sequence, ...]:
        """`build` for a padded batch whose longest source has `max_length` tokens."""
        return self.build(example, vocabulary, rng)

    def with_masking_rate(self, rate: float) -> Objective:
        """The objective with another masking rate, if a stage's `masking_rate` is for it."""
        return self

    def weight_at(self, step: int) -> float:
        """Its weight at a step of a stage; constant unless overridden."""
        return self.weight

    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        """The model half, for an encoder and a corpus; without it, only tokens are predicted."""
        return TokenPrediction()


class TokenPrediction(ObjectiveModule):
    """The model half of objectives that only predict tokens: the LM head's cross-entropy."""

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        return LossSum(total=result.target_losses.sum(), metrics={"accuracy": result.correct.sum()})

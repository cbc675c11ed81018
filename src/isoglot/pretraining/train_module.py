"""The encoder and all objectives' modules as one module, so that DDP and FSDP see every weight.

One forward is one micro-batch: the objectives' own passes without gradient (`before_forward`), one
encoder pass over the rows of all objectives, the LM head once at all target positions, then each
objective's loss at its own positions. It returns sums, never means: `train_step.py` knows the
target counts of the whole step.

An encoder-decoder adds one decoder pass over all sequences to generate. Packed rows, where no
objective of a stage decodes, take the encoder's path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from typing_extensions import override

from isoglot.models.encoder import Encoder
from isoglot.models.lm_head import TargetLosses
from isoglot.models.sharding import is_split, runs_together
from isoglot.objectives.base import (
    ForwardResult,
    Inference,
    Objective,
    ObjectiveModule,
)
from isoglot.objectives.compared import GatheredStep, StepModule
from isoglot.pretraining.whole_step import PartialLosses, RandomState, WholeStep
from isoglot.types import Seq2SeqBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isoglot.corpus import Corpus
    from isoglot.models.encoder import States
    from isoglot.models.seq2seq import Seq2Seq
    from isoglot.pretraining.optimizers.weight_average import WeightAverage
    from isoglot.types import Batch, Rows


class TrainModule(nn.Module):
    """Everything that is trained: call it with a batch to get each objective's loss sum."""

    def __init__(
        self, encoder: Encoder, objectives: Mapping[str, Objective], corpus: Corpus
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.objectives = nn.ModuleDict(
            {_key(name): found.build_module(encoder, corpus) for name, found in objectives.items()}
        )
        self.names = list(objectives)
        """Names of the objectives."""
        self.average: WeightAverage | None = None
        """The moving average of the weights, where a recipe asks for one."""

    @override
    def forward(
        self,
        batch: Batch | None = None,
        *,
        warm_up: Iterable[str] | None = None,
        whole_step: WholeStep | None = None,
        examples: Mapping[str, GatheredStep] | None = None,
    ) -> Any:
        """The loss sums of a batch, by objective.

        Everything that reads weights goes through here, where DDP and FSDP prepare them:

        - `warm_up`: the batch only warms up the queues of these objectives; no losses then.
        - `whole_step`: of objectives that compare the examples of a whole step, what they compare
          instead of losses; gives a `PartialLosses`.
        - `examples`: no batch, but what they compare in the whole step; gives `StepLoss`es.
        """
        if examples is not None:
            return {name: one.loss(self._step_module(name)) for name, one in examples.items()}
        assert batch is not None
        inference = self._inference(batch)
        if warm_up is not None:
            for name in warm_up:
                self.objective(name).warm_up(name, batch, inference)
            return {}
        present = [name for name in self.names if name in batch.target_slices]
        if whole_step is not None:
            return self._partial_losses(batch, present, inference, whole_step)
        for name in present:
            self.objective(name).before_forward(name, batch, inference)
        results, zero = self._results(batch, present)
        sums = {name: self.objective(name).loss(result) for name, result in results.items()}
        first = next(iter(sums.values()))
        first.total = first.total + zero
        return sums

    def _partial_losses(
        self, batch: Batch, present: list[str], inference: Inference, asked: WholeStep
    ) -> PartialLosses:
        """The losses of objectives that compare no examples, and what the others compare."""
        own = [name for name in present if name not in asked.names]
        random = asked.random
        if random is None:
            device = batch.rows.ids.device
            start = RandomState.now(device)
            for name in (*own, *asked.names):
                self.objective(name).before_forward(name, batch, inference)
            random = (start, RandomState.now(device))
        else:  # the keys of `asked.names` were encoded in the first pass
            random[0].restore()
            for name in own:
                self.objective(name).before_forward(name, batch, inference)
            random[1].restore()
        results, zero = self._results(batch, present, losses=not asked.states_only)
        return PartialLosses(
            losses={}
            if asked.states_only
            else {name: self.objective(name).loss(results[name]) for name in own},
            compared={
                name: self._step_module(name).compared(results[name]) for name in asked.names
            },
            zero=zero,
            random=random,
        )

    def _inference(self, batch: Batch) -> Inference:  # noqa: ARG002
        return Inference(self.encoder)

    def _results(
        self, batch: Batch, names: list[str], *, losses: bool = True
    ) -> tuple[dict[str, ForwardResult], Tensor]:
        """One forward pass: what each objective reads, and a 0 with a gradient for every weight.

        Without `losses`, token losses are 0.
        """
        layers = any(self.objective(name).layer is not None for name in names)
        states = self.encoder(batch.rows, layers=layers)
        if losses:
            head = self.encoder.target_losses(
                states, batch.target_positions, batch.targets, batch.target_weights
            )
        else:
            head = _no_losses(states.hidden, len(batch.targets))
        results = {}
        for name in names:
            start, stop = batch.target_slices[name]
            layer = self.objective(name).layer
            results[name] = ForwardResult(
                batch=batch,
                name=name,
                hidden_states=states.hidden if layer is None else states.layers[layer],
                target_losses=head.losses[start:stop],
                correct=head.correct[start:stop],
            )
        return results, self._zero_with_gradient(head.losses)

    def encode(self, rows: Rows) -> States:
        """The encoder's states, outside of a training step."""
        states: States = self.encoder(rows)
        return states

    @override
    def compile(self, *args: Any, regions: bool = False, **kwargs: Any) -> None:
        """Compile the encoder, and the momentum encoders that objectives hold."""
        for module in self.modules():
            if isinstance(module, Encoder):
                if regions:
                    module.compile_regions(*args, **kwargs)
                else:
                    module.compile(*args, **kwargs)

    def objective(self, name: str) -> ObjectiveModule:
        """The module of an objective."""
        return cast("ObjectiveModule", self.objectives[_key(name)])

    def weights_of(self, names: Iterable[str]) -> list[nn.Parameter]:
        """The weights that a stage with these objectives trains: the encoder's and theirs."""
        modules = [self.encoder, *(self.objective(name) for name in names)]
        return [weight for module in modules for weight in module.parameters()]

    def _step_module(self, name: str) -> StepModule:
        module = self.objective(name)
        assert isinstance(module, StepModule), name
        return module

    def _zero_with_gradient(self, losses: Tensor) -> Tensor:
        """A gradient for every weight, zero if need be: DDP waits for all of them.

        Under FSDP for those that are whole now; it waits for other layers only if they have run.
        """
        zero = losses.sum() * 0.0
        for parameter in self.objectives.parameters():
            if parameter.requires_grad and not is_split(parameter):
                zero = zero + parameter.sum() * 0.0
        return zero


class Seq2SeqTrainModule(TrainModule):
    """The same with a decoder: MASS, denoising, back-translation."""

    def __init__(
        self, seq2seq: Seq2Seq, objectives: Mapping[str, Objective], corpus: Corpus
    ) -> None:
        super().__init__(seq2seq.encoder, objectives, corpus)
        self.seq2seq = seq2seq

    @override
    def _inference(self, batch: Batch) -> Inference:
        return Inference(self.encoder, self.seq2seq if isinstance(batch, Seq2SeqBatch) else None)

    @override
    def _results(
        self, batch: Batch, names: list[str], *, losses: bool = True
    ) -> tuple[dict[str, ForwardResult], Tensor]:
        if not isinstance(batch, Seq2SeqBatch):
            results, zero = super()._results(batch, names, losses=losses)
            return results, zero + self._zero_of_decoder()
        states = self.encoder(batch.rows)
        decoded, nothing = None, states.hidden
        if len(batch.decoding.source_rows) and losses:
            decoded = self.seq2seq.decode(batch.decoding, states.hidden, visible_to_decoder(batch))
        elif losses and runs_together(self.seq2seq):
            nothing = self.seq2seq.decode_placeholder(batch.decoding.rows, states.hidden)
        results = {}
        for name in names:
            start, stop = batch.target_slices[name]
            found = _no_losses(states.hidden, stop - start)
            if losses:
                found = self._target_losses(name, batch, states, decoded)
            results[name] = ForwardResult(
                batch=batch,
                name=name,
                hidden_states=states.hidden,
                target_losses=found.losses,
                correct=found.correct,
                decoder_states=decoded,
            )
        zero = self._zero_with_gradient(nothing)
        unread = self._zero_of_decoder() if decoded is None else self._zero_of_encoder_head()
        return results, zero + unread

    @override
    def weights_of(self, names: Iterable[str]) -> list[nn.Parameter]:
        modules = [self.seq2seq, *(self.objective(name) for name in names)]
        found = (weight for module in modules for weight in module.parameters())
        return list(dict.fromkeys(found))

    def _target_losses(
        self, name: str, batch: Seq2SeqBatch, states: States, decoded: Tensor | None
    ) -> TargetLosses:
        """The losses of one objective: the decoder's where it decodes, else the encoder's."""
        if name in batch.decoding.target_slices and decoded is not None:
            own = slice(*batch.decoding.target_slices[name])
            return self.seq2seq.losses(
                decoded,
                batch.decoding.target_positions[own],
                batch.decoding.targets[own],
                label_smoothing=self.objective(name).label_smoothing if self.training else 0.0,
            )
        own = slice(*batch.target_slices[name])
        return self.encoder.target_losses(
            states, batch.target_positions[own], batch.targets[own], batch.target_weights[own]
        )

    def _zero_of_decoder(self) -> Tensor:
        """A gradient of zero for the decoder's weights: DDP waits for all of them."""
        return _zero_of(self.seq2seq.parameters())

    def _zero_of_encoder_head(self) -> Tensor:
        """The same for the encoder's own LM head, which no loss of a decoder reads."""
        model = self.encoder.model
        others = {id(weight) for weight in model.base_model.parameters()}
        return _zero_of(weight for weight in model.parameters() if id(weight) not in others)


def _zero_of(weights: Iterable[nn.Parameter]) -> Tensor:
    """A 0 with a gradient for those of the weights that are trained and whole."""
    sums = [one.sum() * 0.0 for one in weights if one.requires_grad and not is_split(one)]
    return torch.stack(sums).sum() if sums else torch.zeros(())


def visible_to_decoder(batch: Seq2SeqBatch) -> Tensor:
    """(B, L) bool: the encoder positions that the decoder may attend to."""
    from isoglot.objectives.mass import UNSEEN

    visible = (batch.rows.sequences >= 0).flatten()
    for markers in batch.markers.values():
        if UNSEEN in markers:
            visible = visible.index_fill(0, markers[UNSEEN], value=False)
    return visible.view(batch.rows.ids.shape)


def _no_losses(states: Tensor, number: int) -> TargetLosses:
    """In the place of token losses that are not computed."""
    zeros = states.new_zeros(number)
    return TargetLosses(losses=zeros, correct=zeros.bool())


def _key(name: str) -> str:
    """Module names may not contain dots; objectives of other packages have them."""
    return name.replace(".", "-")

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

from torch import Tensor, nn
from typing_extensions import override

from isoglot.models.encoder import Encoder
from isoglot.models.sharding import is_split, runs_together
from isoglot.objectives.base import (
    ForwardResult,
    Inference,
    LossSum,
    Objective,
    ObjectiveModule,
)
from isoglot.types import Seq2SeqBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isoglot.corpus import Corpus
    from isoglot.models.encoder import States
    from isoglot.models.lm_head import TargetLosses
    from isoglot.models.seq2seq import Seq2Seq
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

    @override
    def forward(self, batch: Batch, *, warm_up: Iterable[str] | None = None) -> dict[str, LossSum]:
        """The loss sums of a batch.

        With `warm_up`, the batch only warms up the queues of these objectives; no losses then.
        """
        if warm_up is not None:
            for name in warm_up:
                self.objective(name).warm_up(name, batch, Inference(self.encoder))
            return {}
        present = [name for name in self.names if name in batch.target_slices]
        for name in present:
            self.objective(name).before_forward(name, batch, Inference(self.encoder))
        layers = any(self.objective(name).layer is not None for name in present)
        states = self.encoder(batch.rows, layers=layers)
        head = self.encoder.target_losses(
            states, batch.target_positions, batch.targets, batch.target_weights
        )
        sums = {}
        for name in present:
            start, stop = batch.target_slices[name]
            module = self.objective(name)
            layer = module.layer
            result = ForwardResult(
                batch=batch,
                name=name,
                hidden_states=states.hidden if layer is None else states.layers[layer],
                target_losses=head.losses[start:stop],
                correct=head.correct[start:stop],
            )
            sums[name] = module.loss(result)
        self._add_zero_gradients(sums, head.losses)
        return sums

    def encode(self, rows: Rows) -> States:
        """The encoder's states, outside of a training step."""
        states: States = self.encoder(rows)
        return states

    @override
    def compile(self, *args: Any, by_layer: bool = False, **kwargs: Any) -> None:
        """Compile the encoder, and the momentum encoders that objectives hold."""
        for module in self.modules():
            if isinstance(module, Encoder):
                module.compile_layers() if by_layer else module.compile(*args, **kwargs)

    def objective(self, name: str) -> ObjectiveModule:
        """The module of an objective."""
        return cast("ObjectiveModule", self.objectives[_key(name)])

    def weights_of(self, names: Iterable[str]) -> list[nn.Parameter]:
        """The weights that a stage with these objectives trains: the encoder's and theirs."""
        modules = [self.encoder, *(self.objective(name) for name in names)]
        return [weight for module in modules for weight in module.parameters()]

    def _add_zero_gradients(self, sums: dict[str, LossSum], losses: Tensor) -> None:
        """Give every weight a gradient, zero if need be: DDP waits for all of them.

        FSDP does so for the weights that are whole now; it exchanges those of a layer that has run.
        """
        zero = losses.sum() * 0.0
        for parameter in self.objectives.parameters():
            if parameter.requires_grad and not is_split(parameter):
                zero = zero + parameter.sum() * 0.0
        first = next(iter(sums.values()))
        first.total = first.total + zero


class Seq2SeqTrainModule(TrainModule):
    """The same with a decoder: MASS, denoising, back-translation."""

    def __init__(
        self, seq2seq: Seq2Seq, objectives: Mapping[str, Objective], corpus: Corpus
    ) -> None:
        super().__init__(seq2seq.encoder, objectives, corpus)
        self.seq2seq = seq2seq

    @override
    def forward(self, batch: Batch, *, warm_up: Iterable[str] | None = None) -> dict[str, LossSum]:
        if not isinstance(batch, Seq2SeqBatch):
            sums = super().forward(batch, warm_up=warm_up)
            if sums:
                self._add_zero_decoder_gradients(sums)
            return sums
        assert warm_up is None, "no objective that decodes has a queue"
        present = [name for name in self.names if name in batch.target_slices]
        for name in present:
            inference = Inference(self.encoder, self.seq2seq)
            self.objective(name).before_forward(name, batch, inference)
        states = self.encoder(batch.rows)
        decoded, no_rows = None, None
        if len(batch.decoding.source_rows):
            decoded = self.seq2seq.decode(batch.decoding, states.hidden, visible_to_decoder(batch))
        elif runs_together(self.seq2seq):
            no_rows = self.seq2seq.decode_placeholder(batch.decoding.rows, states.hidden)
        sums = {}
        for name in present:
            found = self._target_losses(name, batch, states, decoded)
            sums[name] = self.objective(name).loss(
                ForwardResult(
                    batch=batch,
                    name=name,
                    hidden_states=states.hidden,
                    target_losses=found.losses,
                    correct=found.correct,
                    decoder_states=decoded,
                )
            )
        self._add_zero_gradients(sums, states.hidden if no_rows is None else no_rows)
        if decoded is None:
            self._add_zero_decoder_gradients(sums)
        return sums

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

    def _add_zero_decoder_gradients(self, sums: dict[str, LossSum]) -> None:
        """Give the decoder's weights a gradient of zero: DDP waits for all of them."""
        first = next(iter(sums.values()))
        for parameter in self.seq2seq.parameters():
            if parameter.requires_grad and not is_split(parameter):
                first.total = first.total + parameter.sum() * 0.0


def visible_to_decoder(batch: Seq2SeqBatch) -> Tensor:
    """(B, L) bool: the encoder positions that the decoder may attend to."""
    from isoglot.objectives.mass import UNSEEN

    visible = (batch.rows.sequences >= 0).flatten()
    for markers in batch.markers.values():
        if UNSEEN in markers:
            visible = visible.index_fill(0, markers[UNSEEN], value=False)
    return visible.view(batch.rows.ids.shape)


def _key(name: str) -> str:
    """Module names may not contain dots; objectives of other packages have them."""
    return name.replace(".", "-")

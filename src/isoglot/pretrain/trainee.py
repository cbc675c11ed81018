"""The encoder and all objectives as one module, so that DDP and FSDP see every weight.

One forward is one micro-batch: passes of the objectives' own (`before_pass`), one encoder pass for
all of them, the LM head once at all prediction sites, then each objective's loss at its own sites.
Sums come back, never means: the loop knows the counts of the whole step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn
from typing_extensions import override

from isoglot.models import Encoder
from isoglot.objectives import Encoded, Inference, LossSum, Objective, ObjectiveModule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isoglot.corpus import Corpus
    from isoglot.types import Batch


class Trainee(nn.Module):
    """What is trained: call it with a batch, get each objective's sum of losses."""

    def __init__(
        self, encoder: Encoder, objectives: Mapping[str, Objective], corpus: Corpus
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.objectives = nn.ModuleDict(
            {_key(name): found.module(encoder, corpus) for name, found in objectives.items()}
        )
        self.names = list(objectives)
        """Of the objectives."""

    @override
    def forward(self, batch: Batch, *, filling: Iterable[str] | None = None) -> dict[str, LossSum]:
        """The losses of a batch; or none, where it only fills what some objectives begin with."""
        if filling is not None:
            for name in filling:
                self.objective(name).fill(name, batch, Inference(self.encoder))
            return {}
        present = [name for name in self.names if name in batch.spans]
        for name in present:
            self.objective(name).before_pass(name, batch, Inference(self.encoder))
        layers = any(self.objective(name).layer is not None for name in present)
        states = self.encoder(batch.rows, layers=layers)
        head = self.encoder.site_losses(states, batch.positions, batch.targets, batch.weights)
        sums = {}
        for name in present:
            start, stop = batch.spans[name]
            module = self.objective(name)
            encoded = Encoded(
                batch=batch,
                name=name,
                states=states.hidden if module.layer is None else states.layers[module.layer],
                losses=head.losses[start:stop],
                correct=head.correct[start:stop],
            )
            sums[name] = module.loss(encoded)
        self._touch(sums, head.losses)
        return sums

    @override
    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the encoder, and the copies of it that objectives keep."""
        for module in self.modules():
            if isinstance(module, Encoder):
                module.compile(*args, **kwargs)

    def objective(self, name: str) -> ObjectiveModule:
        """The model half of an objective."""
        return cast("ObjectiveModule", self.objectives[_key(name)])

    def weights_of(self, names: Iterable[str]) -> list[nn.Parameter]:
        """The weights that a stage with these objectives trains: the encoder's and theirs."""
        modules = [self.encoder, *(self.objective(name) for name in names)]
        return [weight for module in modules for weight in module.parameters()]

    def _touch(self, sums: dict[str, LossSum], losses: Tensor) -> None:
        """Give every weight a gradient, zero if need be: DDP waits for all of them."""
        nothing = losses.sum() * 0.0
        for parameter in self.objectives.parameters():
            if parameter.requires_grad:
                nothing = nothing + parameter.sum() * 0.0
        first = next(iter(sums.values()))
        first.total = first.total + nothing


def _key(name: str) -> str:
    """Module names may not contain dots; objectives that live elsewhere have them."""
    return name.replace(".", "-")

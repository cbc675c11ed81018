"""The trainee of encoder-decoders: the encoder and its objectives as ever, and a decoder.

One forward is one micro-batch: what objectives write for themselves (`before_pass`), one pass of
the encoder, one of the decoder over all that is to be written, then each objective's loss at its
own sites: the decoder's, if it decodes, else the encoder's. Packed rows, where no objective of a
stage decodes, go the way of every encoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.objectives import Encoded, Inference, LossSum, Objective
from isoglot.objectives.mass import UNSEEN
from isoglot.pretrain.trainee import Trainee
from isoglot.types import Seq2SeqBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch import Tensor, nn

    from isoglot.corpus import Corpus
    from isoglot.models import Seq2Seq, SiteLosses, States
    from isoglot.types import Batch


class Seq2SeqTrainee(Trainee):
    """What is trained, where there is a decoder."""

    def __init__(
        self, seq2seq: Seq2Seq, objectives: Mapping[str, Objective], corpus: Corpus
    ) -> None:
        super().__init__(seq2seq.encoder, objectives, corpus)
        self.seq2seq = seq2seq

    @override
    def forward(self, batch: Batch, *, filling: Iterable[str] | None = None) -> dict[str, LossSum]:
        if not isinstance(batch, Seq2SeqBatch):
            sums = super().forward(batch, filling=filling)
            if sums:
                self._touch_decoder(sums)
            return sums
        assert filling is None, "no objective that decodes begins with anything seen"
        present = [name for name in self.names if name in batch.spans]
        for name in present:
            inference = Inference(self.encoder, self.seq2seq)
            self.objective(name).before_pass(name, batch, inference)
        states = self.encoder(batch.rows)
        decoded = None
        if len(batch.decoding.sources):
            decoded = self.seq2seq.decode(batch.decoding, states.hidden, visible(batch))
        sums = {}
        for name in present:
            found = self._losses(name, batch, states, decoded)
            sums[name] = self.objective(name).loss(
                Encoded(
                    batch=batch,
                    name=name,
                    states=states.hidden,
                    losses=found.losses,
                    correct=found.correct,
                )
            )
        self._touch(sums, states.hidden)
        if decoded is None:
            self._touch_decoder(sums)
        return sums

    @override
    def weights_of(self, names: Iterable[str]) -> list[nn.Parameter]:
        modules = [self.seq2seq, *(self.objective(name) for name in names)]
        found = (weight for module in modules for weight in module.parameters())
        return list(dict.fromkeys(found))

    def _losses(
        self, name: str, batch: Seq2SeqBatch, states: States, decoded: Tensor | None
    ) -> SiteLosses:
        """The LM head's losses at the sites of one objective."""
        if name in batch.decoding.spans and decoded is not None:
            own = slice(*batch.decoding.spans[name])
            return self.seq2seq.losses(
                decoded,
                batch.decoding.positions[own],
                batch.decoding.targets[own],
                smoothing=self.objective(name).smoothing if self.training else 0.0,
            )
        own = slice(*batch.spans[name])
        return self.encoder.site_losses(
            states, batch.positions[own], batch.targets[own], batch.weights[own]
        )

    def _touch_decoder(self, sums: dict[str, LossSum]) -> None:
        """Give the decoder's weights a gradient of zero: DDP waits for all of them."""
        first = next(iter(sums.values()))
        for parameter in self.seq2seq.parameters():
            if parameter.requires_grad:
                first.total = first.total + parameter.sum() * 0.0


def visible(batch: Seq2SeqBatch) -> Tensor:
    """(B, L) bool: the encoder's positions that the decoder may look at."""
    seen = (batch.rows.sequences >= 0).flatten()
    for sites in batch.sites.values():
        if UNSEEN in sites:
            seen = seen.index_fill(0, sites[UNSEEN], value=False)
    return seen.view(batch.rows.ids.shape)

"""The data of a run's stages: streams opened for their objectives, and loaders over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.batching.loader import Loader, left_out, open_streams
from isoglot.pretrain.hooks import Validation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from accelerate import Accelerator

    from isoglot.batching.mixture import OpenStream
    from isoglot.corpus import Corpus
    from isoglot.objectives import Objective
    from isoglot.pretrain.config import PretrainConfig, StageConfig


class Data:
    """What a run trains and validates on, of which a process reads its share."""

    def __init__(
        self,
        config: PretrainConfig,
        corpus: Corpus,
        objectives: Mapping[str, Objective],
        accelerator: Accelerator,
    ) -> None:
        self.config, self.corpus = config, corpus
        self.objectives, self.accelerator = objectives, accelerator

    def opened(self, stage: StageConfig, warn: Callable[[str], None]) -> tuple[OpenStream, ...]:
        """The streams of a stage; what they leave out is told."""
        length = self.config.batch.row_length
        opened = open_streams(self.corpus, stage.streams, self.objectives, row_length=length)
        for note in left_out(opened, length):
            warn(note)
        return opened

    def loader(self, opened: tuple[OpenStream, ...], *, stage: int, seed: int) -> Loader:
        """Batches of opened streams, for this process."""
        fixed = self.config.batch.fixed_sites
        on_gpu = self.accelerator.device.type == "cuda"
        return Loader(
            self.corpus,
            opened,
            self.config.batch,
            seed=seed,
            stage=stage,
            rank=self.accelerator.process_index,
            world=self.accelerator.num_processes,
            workers=self.config.loader,
            fixed_sites=on_gpu if fixed is None else fixed,
            pin_memory=on_gpu,
        )

    def validation(self, stage: StageConfig) -> Validation:
        """The held-out losses of a stage."""
        return Validation(
            self.corpus,
            stage.streams,
            self.objectives,
            self.config.batch,
            self.accelerator,
            most=self.config.watch.validate_most,
        )

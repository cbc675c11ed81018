"""The models that a run writes: at its end, along the way if asked, and one for sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.models import export_sentences, model_card
from isoglot.pretrain.kinds import export_trainee
from isoglot.pretrain.sentences import sentence_head

if TYPE_CHECKING:
    from pathlib import Path

    from accelerate import Accelerator
    from rich.console import Console as Terminal

    from isoglot.corpus import Corpus
    from isoglot.pretrain.checkpoint import State
    from isoglot.pretrain.config import PretrainConfig
    from isoglot.pretrain.trainee import Trainee

ALONG = "along"
"""The folder of a run with its models of some steps."""


class Exports:
    """Writes models of what is trained; of several processes, one does."""

    def __init__(
        self,
        config: PretrainConfig,
        corpus: Corpus,
        trainee: Trainee,
        accelerator: Accelerator,
        *,
        folder: Path,
        name: str,
        recipe_text: str | None,
        terminal: Terminal,
    ) -> None:
        self.config, self.corpus, self.trainee = config, corpus, trainee
        self.accelerator, self.folder, self.terminal = accelerator, folder, terminal
        self.name, self.recipe_text = name, recipe_text
        # asked for now, so that a head that cannot be exported is refused before the training
        self.head = sentence_head(trainee, config.export)

    def along(self, state: State) -> None:
        """Keep the model of this moment, where models are wanted along training."""
        if self.config.export.every and self.accelerator.is_main_process:
            self._export(self.folder / ALONG / f"step-{state.total_steps:08d}", state)

    def final(self, state: State) -> tuple[Path, tuple[str, ...]]:
        """Write the run's result; gives its folder and what it could not hold."""
        model = self.folder / "model"
        warnings: list[str] = []
        if self.accelerator.is_main_process:
            warnings = self._export(model, state)
            if self.head is not None:
                folder = self.folder / "sentence-transformers"
                longest = self.trainee.encoder.max_positions
                export_sentences(model, folder, self.head, max_length=longest)
                self.terminal.print(
                    f"sentence-transformers: {folder}", highlight=False, soft_wrap=True
                )
        self.accelerator.wait_for_everyone()
        return model, tuple(warnings)

    def _export(self, model: Path, state: State) -> list[str]:
        card = model_card(
            name=self.name,
            languages=self.corpus.languages,
            objectives=tuple(self.trainee.names),
            tokens_seen=state.tokens,
            start=self.config.model.start,
            translates=self.config.model.decoder is not None,
        )
        return export_trainee(
            self.trainee, model, self.corpus, card=card, recipe_text=self.recipe_text
        )

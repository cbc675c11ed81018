"""The models that a run writes: the final one, intermediate ones, and one for sentences.

RUN/model/                       a Hugging Face folder
RUN/intermediate/step-00001000/  the same, every `export.every_steps` steps
RUN/sentence-transformers/       where `export.sentence_transformers` asks for it
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from accelerate import Accelerator
from rich.console import Console

from isoglot.corpus import Corpus
from isoglot.errors import RecipeError
from isoglot.models.sentence_export import SentenceHead
from isoglot.pretraining.config import PretrainConfig
from isoglot.pretraining.train_module import Seq2SeqTrainModule, TrainModule

if TYPE_CHECKING:
    from isoglot.pretraining.checkpoint import TrainState

INTERMEDIATE = "intermediate"
"""The folder of a run with models of earlier steps."""


@dataclass(slots=True, kw_only=True)
class Exporter:
    """Writes the models of a run, on the main process."""

    config: PretrainConfig
    corpus: Corpus
    module: TrainModule
    accelerator: Accelerator
    folder: Path
    """The run's folder."""
    name: str
    recipe_text: str | None
    console: Console
    head: SentenceHead | None = field(init=False)
    """The head of the sentence-transformers folder; one that cannot be exported is refused here,
    before training."""

    def __post_init__(self) -> None:
        self.head = _sentence_head(self.module, self.config)

    def export_intermediate(self, state: TrainState) -> None:
        """Export the model of this step, if intermediate models are asked for."""
        if self.config.export.every_steps and self.accelerator.is_main_process:
            self._export(self.folder / INTERMEDIATE / f"step-{state.total_steps:08d}", state)

    def export_final(self, state: TrainState) -> tuple[Path, tuple[str, ...]]:
        """Export the final model; returns its folder and notes on what it could not hold."""
        model = self.folder / "model"
        notes: list[str] = []
        if self.accelerator.is_main_process:
            notes = self._export(model, state)
            if self.head is not None:
                from isoglot.models.sentence_export import export_sentence_transformers

                folder = self.folder / "sentence-transformers"
                longest = self.module.encoder.max_positions
                export_sentence_transformers(model, folder, self.head, max_length=longest)
                self.console.print(
                    f"sentence-transformers: {folder}", highlight=False, soft_wrap=True
                )
        self.accelerator.wait_for_everyone()
        return model, tuple(notes)

    def _export(self, folder: Path, state: TrainState) -> list[str]:
        from isoglot.models.export import export_encoder, model_card
        from isoglot.models.seq2seq_export import export_seq2seq

        card = model_card(
            name=self.name,
            languages=self.corpus.languages,
            objectives=tuple(self.module.names),
            tokens_seen=state.tokens,
            init_from=self.config.model.init_from,
            is_seq2seq=self.config.model.decoder is not None,
        )
        if isinstance(self.module, Seq2SeqTrainModule):
            return export_seq2seq(
                self.module.seq2seq,
                folder,
                tokenizer_folder=self.corpus.tokenizer_folder,
                base_tokenizer=self.corpus.manifest.tokenizer.fingerprint,
                card=card,
                recipe_text=self.recipe_text,
            )
        return export_encoder(
            self.module.encoder,
            folder,
            tokenizer_folder=self.corpus.tokenizer_folder,
            card=card,
            recipe_text=self.recipe_text,
        )


@runtime_checkable
class EmbedsSentences(Protocol):
    """An objective's module that computes one vector of a sentence."""

    def sentence_head(self, *, projected: bool) -> SentenceHead:
        """The layers between the encoder's final states and the vector."""
        ...


def _sentence_head(module: TrainModule, config: PretrainConfig) -> SentenceHead | None:
    """The head to export, if a sentence-transformers folder is asked for.

    Raises:
        RecipeError: no objective has such a head, or the format cannot hold the model.
    """
    kind = config.export.sentence_transformers
    if kind == "none":
        return None
    if config.model.language_embeddings == "all":
        raise RecipeError(
            "export.sentence_transformers: sentence-transformers has no language embeddings, and "
            "the model has them on all tokens. Set model.language_embeddings: none, or "
            "export.sentence_transformers: none."
        )
    for objective in module.objectives.children():
        if isinstance(objective, EmbedsSentences):
            return objective.sentence_head(projected=kind == "projected")
    raise RecipeError(
        "export.sentence_transformers: no objective of the recipe computes sentence vectors. Add "
        "moco to a parallel stream, or set export.sentence_transformers: none."
    )

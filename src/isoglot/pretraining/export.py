"""The models that a run writes: the final one, intermediate ones, and one for sentences.

RUN/model/                       a Hugging Face folder
RUN/intermediate/step-00001000/  the same, every `export.every_steps` steps
RUN/sentence-transformers/       where `export.sentence_transformers` asks for it
RUN/languages/de/                for each of `export.fold_languages`, a plain folder of one language
"""

from __future__ import annotations

import math
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from accelerate import Accelerator
from rich.console import Console

from isoglot import json_text
from isoglot.corpus import Corpus
from isoglot.errors import RecipeError
from isoglot.models.encoder import position_table
from isoglot.models.sentence_export import SentenceHead
from isoglot.models.sharding import whole_weights
from isoglot.pretraining.config import PretrainConfig, objectives_of
from isoglot.pretraining.optimizers.weight_average import averaged_weights
from isoglot.pretraining.processes.waiting import wait_for_all
from isoglot.pretraining.train_module import Seq2SeqTrainModule, TrainModule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.models.model_card import DataRow, HeldoutScore, ModelCard
    from isoglot.models.objective_heads import ObjectiveHead
    from isoglot.pretraining.checkpoints.checkpoint_state import TrainState

INTERMEDIATE = "intermediate"
"""The folder of a run with models of earlier steps."""
LANGUAGES = "languages"
"""The folder of a run with plain models of single languages."""


@dataclass(slots=True, kw_only=True)
class Exporter:
    """Writes the models of a run, on the main process; all processes call it."""

    config: PretrainConfig
    corpus: Corpus
    module: TrainModule
    accelerator: Accelerator | None
    """None: there is one process."""
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
        _check_fold_languages(self.module, self.config)

    def export_intermediate(self, state: TrainState) -> None:
        """Export the model of this step, if intermediate models are asked for."""
        if not self.config.export.every_steps:
            return
        with self._exported_weights():
            if self._is_main_process:
                self.export(self.folder / INTERMEDIATE / f"step-{state.total_steps:08d}", state)
        self._wait_for_all()

    def export_final(self, state: TrainState) -> tuple[Path, tuple[str, ...]]:
        """Export the final model; returns its folder and notes on what it could not hold."""
        model = self.folder / "model"
        notes: list[str] = []
        with self._exported_weights():
            if self._is_main_process:
                notes = self.export(model, state)
                self._export_sentence_transformers(model, state)
                self._export_languages(state)
        self._wait_for_all()
        return model, tuple(notes)

    @contextmanager
    def _exported_weights(self) -> Iterator[None]:
        """Within: the main process has whole weights, averaged ones where the run averages."""
        with (
            averaged_weights(self.module.average),
            whole_weights(self.module, keep=self._is_main_process),
        ):
            yield

    def _wait_for_all(self) -> None:
        if self.accelerator is not None:
            wait_for_all(self.accelerator)

    @property
    def _is_main_process(self) -> bool:
        return self.accelerator is None or self.accelerator.is_main_process

    def export(self, folder: Path, state: TrainState) -> list[str]:
        """Write the Hugging Face folder of a step; gives notes on what it could not hold."""
        from isoglot.models.export import export_encoder
        from isoglot.models.seq2seq_export import export_seq2seq

        card = self.card(state)
        if isinstance(self.module, Seq2SeqTrainModule):
            return export_seq2seq(
                self.module.seq2seq,
                folder,
                tokenizer_folder=self.corpus.tokenizer_folder,
                base_tokenizer=self.corpus.manifest.tokenizer.fingerprint,
                card=card.render("translation"),
                recipe_text=self.recipe_text,
            )
        return export_encoder(
            self.module.encoder,
            folder,
            tokenizer_folder=self.corpus.tokenizer_folder,
            card=card.render(),
            recipe_text=self.recipe_text,
            heads=_objective_heads(self.module),
        )

    def _export_sentence_transformers(self, model: Path, state: TrainState) -> None:
        if self.head is None:
            return
        from isoglot.models.model_card import with_limitations
        from isoglot.models.sentence_export import (
            export_sentence_transformers,
            sentence_limitations,
        )

        folder = self.folder / "sentence-transformers"
        card = self.card(state).render("sentence-similarity", self.head.describe())
        export_sentence_transformers(
            model,
            folder,
            self.head,
            max_length=self.module.encoder.max_positions,
            card=with_limitations(card, sentence_limitations(model)),
        )
        self.console.print(f"sentence-transformers: {folder}", highlight=False, soft_wrap=True)

    def _export_languages(self, state: TrainState) -> None:
        from isoglot.models.export import export_encoder
        from isoglot.models.fold import folded_encoder

        for code in self.config.export.fold_languages:
            folder = self.folder / LANGUAGES / code
            card = replace(self.card(state), name=f"{self.name} ({code})", languages=(code,))
            export_encoder(
                folded_encoder(self.module.encoder, code),
                folder,
                tokenizer_folder=self.corpus.tokenizer_folder,
                card=card.render(),
                recipe_text=self.recipe_text,
            )
            self.console.print(f"{code} alone: {folder}", highlight=False, soft_wrap=True)

    def card(self, state: TrainState) -> ModelCard:
        """What the run knows of the model of a step."""
        from isoglot.models.model_card import ModelCard

        metrics = self.folder / "metrics.jsonl"
        steps, scores = last_heldout_scores(metrics, until=state.total_steps)
        return ModelCard(
            name=self.name,
            languages=tuple(self.corpus.languages),
            objectives=tuple(objectives_of(self.config)),
            tokens_seen=state.tokens,
            init_from=self.config.model.init_from,
            license=self.config.export.license,
            data=tuple(data_rows(self.corpus, knowledge=reads_knowledge(self.config))),
            scores=tuple(scores),
            steps=steps,
            weights=None if self.config.averaging is None else self.config.averaging.describe(),
        )


def last_heldout_scores(
    file: Path, *, until: int | None = None
) -> tuple[int | None, list[HeldoutScore]]:
    """The step of a run's last validation, and its means over languages, from metrics.jsonl.

    Validations after the step `until` are passed over.
    """
    from isoglot.models.model_card import HeldoutScore

    last: dict[str, float] = {}
    upto = math.inf if until is None else until
    if file.is_file():
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if '"valid/' in line:
                with suppress(ValueError):  # a damaged line
                    found = json_text.parse(line)
                    if isinstance(found, dict) and found.get("step", math.inf) <= upto:
                        last = found
    scores = [
        HeldoutScore(objective, metric, value)
        for name, value in last.items()
        for kind, objective, language, metric in [(*name.split("/"), "", "", "")[:4]]
        if (kind, language) == ("valid", "mean")
    ]
    return (int(last["step"]) if last else None), scores


def data_rows(corpus: Corpus, *, knowledge: bool = False) -> Iterator[DataRow]:
    """The training part of each language or pair of a corpus, over all sources.

    With `knowledge`, its mentions to train on and its descriptions besides, where it is at hand.
    """
    from isoglot.models.model_card import DataRow

    found: dict[tuple[str, str], tuple[int, int]] = {}
    for source in corpus.manifest.sources.values():
        for language, splits in source.languages.items():
            if "train" in splits:
                lines, tokens = found.get((language, source.kind), (0, 0))
                entry = splits["train"]
                added = lines + entry.rows, tokens + sum(entry.tokens.values())
                found[language, source.kind] = added
    for (language, kind), (lines, tokens) in found.items():
        yield DataRow(language, kind, lines, tokens)
    if not (knowledge and corpus.has_knowledge):
        return
    for language, one in corpus.knowledge.manifest.counts.items():
        mentions, tokens = one.mentions["train"], one.sentence_tokens["train"]
        yield DataRow(language, "mentions of entities", mentions, tokens)
        yield DataRow(
            language, "descriptions of entities", one.descriptions, one.description_tokens
        )


def reads_knowledge(config: PretrainConfig) -> bool:
    """Whether a stage of a run reads the knowledge of its corpus."""
    streams = (stream for stage in config.stages for stream in stage.streams.values())
    return any(stream.reads == "knowledge" for stream in streams)


def _objective_heads(module: TrainModule) -> dict[str, ObjectiveHead]:
    """Objective -> its trained head, for the objectives that have one to export."""
    found = {name: module.objective(name).exported_head() for name in module.names}
    return {name: head for name, head in found.items() if head is not None}


@runtime_checkable
class EmbedsSentences(Protocol):
    """An objective's module that computes one vector of a sentence."""

    def sentence_head(self, *, projected: bool) -> SentenceHead:
        """The layers between the encoder's final states and the vector."""
        ...


def _sentence_head(module: TrainModule, config: PretrainConfig) -> SentenceHead | None:
    """The head to export, if a sentence-transformers folder is asked for.

    It is that of the objective that computes sentence vectors; without one, a pooling alone.

    Raises:
        RecipeError: a projection is asked for that no objective has, or there is a decoder.
    """
    kind, pooling = config.export.sentence_transformers, config.export.pooling
    if kind == "none":
        return None
    if config.model.decoder is not None:
        raise RecipeError(
            "export.sentence_transformers is for encoders, and the recipe has model.decoder. Set "
            "export.sentence_transformers: none."
        )
    if config.model.language_embeddings == "all" and position_table(module.encoder.model) is None:
        raise RecipeError(
            "export.sentence_transformers: the model has language embeddings on all tokens and no "
            "position embeddings to fold them into. Set model.language_embeddings: none, or "
            "export.sentence_transformers: none."
        )
    for objective in module.objectives.children():
        if isinstance(objective, EmbedsSentences):
            head = objective.sentence_head(projected=kind == "projected")
            return head if pooling is None else replace(head, pooling=pooling)
    if kind == "projected":
        raise RecipeError(
            "export.sentence_transformers: no objective of the recipe has a projection. Add moco "
            "to a parallel stream, or set export.sentence_transformers: pooled."
        )
    return SentenceHead(pooling=pooling or "mean")


def _check_fold_languages(module: TrainModule, config: PretrainConfig) -> None:
    """Refuse, before training, languages whose embeddings could not be folded."""
    codes = config.export.fold_languages
    if not codes:
        return
    encoder = module.encoder
    if config.model.decoder is not None or config.model.language_embeddings != "all":
        raise RecipeError(
            "export.fold_languages is for an encoder with model.language_embeddings: all. Leave "
            "it out."
        )
    unknown = [code for code in codes if encoder.language_id(code) < 0]
    if unknown:
        raise RecipeError(
            f"export.fold_languages: the corpus has no {', '.join(unknown)}, only "
            f"{', '.join(encoder.language_codes)}."
        )
    if position_table(encoder.model) is None:
        raise RecipeError(
            f"export.fold_languages: a {encoder.model.config.model_type} model has no position "
            "embeddings to fold a language embedding into. Leave it out."
        )

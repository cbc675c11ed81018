"""`export_model`: a run's checkpoint, a model folder or a hub encoder in the formats asked for.

RUN/exports/step-00002300/model/                   transformers
RUN/exports/step-00002300/sentence-transformers/
RUN/exports/step-00002300/onnx/

RUN/model, which the run itself writes at its end, is never touched.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from rich.console import Console

from isoglot.argument_names import public
from isoglot.errors import IsoglotError, nearest
from isoglot.exporting.cards import CardOrigin, onnx_card, sentence_card
from isoglot.exporting.heldout_pairs import pairs_of_corpus, pairs_of_files
from isoglot.exporting.pooling import Layers, Pooling, PoolingChoice, Progress, choose_pooling
from isoglot.exporting.run_checkpoint import (
    WhichCheckpoint,
    export_checkpoint,
    has_checkpoints,
    locked_unless_training,
    open_checkpoint,
)
from isoglot.folders import model_folder, with_home
from isoglot.locks import lock_file

if TYPE_CHECKING:
    from isoglot.corpus import Corpus

Format = Literal["transformers", "sentence-transformers", "onnx"]
FORMATS: tuple[Format, ...] = get_args(Format)
EXPORTS = "exports"
"""The folder of a run with exported checkpoints."""
_FOLDERS: dict[Format, str] = {"transformers": "model"}
"""The folder of a format, where it is not its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What is written, and how sentence vectors are chosen."""

    formats: tuple[Format, ...] = ("transformers",)
    """The folders to write."""
    pairs: tuple[Path, ...] = ()
    """Held-out translations (en-sw.tsv) for the pooling; none: those of the run's corpus."""
    pooling: Pooling | None = None
    """The pooling of sentence vectors; none: it is chosen on held-out pairs."""
    layers: Layers = "all"
    """Layers that poolings are compared on: all, or the last."""

    def __post_init__(self) -> None:
        for name in self.formats:
            if name not in FORMATS:
                raise IsoglotError(f"There is no format {name!r}: {nearest(name, FORMATS)}")
        if not self.formats:
            raise IsoglotError(f"Name a format: {', '.join(FORMATS)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedModel:
    """What was written."""

    folders: dict[Format, Path]
    step: int | None = None
    """The step of the run's checkpoint; none for a model folder."""
    pooling: PoolingChoice | None = None
    """The sentence vectors, where there are any."""
    onnx_difference: float | None = None
    """Largest difference between the outputs of onnxruntime and torch."""
    notes: tuple[str, ...] = ()
    """What the folders could not hold."""


@public
def export_model(
    source: str | Path,
    to: str | Path | None = None,
    config: ExportOptions | None = None,
    *,
    checkpoint: WhichCheckpoint = "last",
    corpus: str | Path | None = None,
    console: Console | None = None,
    progress: Progress | None = None,
) -> ExportedModel:
    """Export a run, stopped or finished, a model folder or an encoder of the hub.

        options = ExportOptions(formats=("transformers", "sentence-transformers"))
        done = isoglot.export_model("runs/mine", config=options)

    Args:
        source: a run with checkpoints, a Hugging Face folder or a name on the hub.
        to: the folder to write; of several formats, each is a folder in it. None: a folder of the
            run, RUN/exports/step-N, with a folder for each format.
        config: what is written.
        checkpoint: of a run, the newest undamaged one, the best one, or that of a step.
        corpus: the corpus of a run; none: as the run has recorded it.
        console: where notes are shown; none: standard error.
        progress: called with (stage, done, total).
    """
    config = config or ExportOptions()
    if "onnx" in config.formats:
        from isoglot.models.onnx_export import check_onnx_installed

        check_onnx_installed()
    job = _Job(config=config, console=console or Console(stderr=True), progress=progress)
    run = with_home(source)
    if has_checkpoints(run):
        return job.of_run(run, to, checkpoint, corpus)
    return job.of_model(source, to)


@dataclass(slots=True, kw_only=True)
class _Job:
    """One export: its options, and what was written so far."""

    config: ExportOptions
    console: Console
    progress: Progress | None
    notes: list[str] = field(default_factory=list)

    def warn(self, note: str) -> None:
        """Tell the user something."""
        self.console.print(f"[yellow]note[/]: {note}", highlight=False, soft_wrap=True)

    def of_run(
        self,
        run: Path,
        to: str | Path | None,
        checkpoint: WhichCheckpoint,
        corpus: str | Path | None,
    ) -> ExportedModel:
        """Export a checkpoint of a run."""
        with ExitStack() as stack:
            stack.enter_context(locked_unless_training(run, self.warn))
            found = open_checkpoint(run, checkpoint, corpus, self.warn)
            place = run / EXPORTS / found.checkpoint.place.name
            places = self._places(with_home(to) if to else place, alone=to is not None)
            self._lock(stack, places)
            model = places.get("transformers") or self._scratch(stack, places)
            card, notes = export_checkpoint(found, model, self.console)
            self.notes += notes
            origin = CardOrigin(name=found.recipe.name, model=model, of_run=card)
            return self._convert(
                origin, places, found.corpus if found.is_whole else None, step=found.step
            )

    def of_model(self, source: str | Path, to: str | Path | None) -> ExportedModel:
        """Export a model folder."""
        model = model_folder(source)
        if "transformers" in self.config.formats:
            raise IsoglotError(
                f"{source} is a transformers folder already. Give --format sentence-transformers "
                "or onnx."
            )
        if to is None:
            raise IsoglotError(f"{source} is a model, not a run: name the folder to write, --to.")
        with ExitStack() as stack:
            places = self._places(with_home(to), alone=True)
            self._lock(stack, places)
            origin = CardOrigin(name=str(source), model=model)
            return self._convert(origin, places, None, step=None)

    def _places(self, folder: Path, *, alone: bool) -> dict[Format, Path]:
        """The folder of each format; with `alone`, a single format is the folder itself."""
        formats = self.config.formats
        if alone and len(formats) == 1:
            return {formats[0]: folder}
        return {name: folder / _FOLDERS.get(name, name) for name in formats}

    def _lock(self, stack: ExitStack, places: dict[Format, Path]) -> None:
        for place in places.values():
            stack.enter_context(lock_file(place))

    def _scratch(self, stack: ExitStack, places: dict[Format, Path]) -> Path:
        """A temporary folder on the disk of the output, for a model that is not asked for."""
        parent = next(iter(places.values())).parent
        made = tempfile.TemporaryDirectory(dir=parent, prefix=".export-")
        return Path(stack.enter_context(made)) / "model"

    def _convert(
        self,
        origin: CardOrigin,
        places: dict[Format, Path],
        corpus: Corpus | None,
        step: int | None,
    ) -> ExportedModel:
        """Write the other formats of a transformers folder."""
        from isoglot.models.loading import check_is_encoder, load_config

        choice, difference = None, None
        sentences, onnx = places.get("sentence-transformers"), places.get("onnx")
        if sentences or onnx:
            check_is_encoder(origin.name, load_config(str(origin.model)))
        if sentences:
            choice = self._write_sentences(origin, sentences, corpus)
        if onnx:
            from isoglot.models.onnx_export import export_onnx

            self._say("converting to ONNX ...")
            difference = export_onnx(
                origin.model,
                onnx,
                card=onnx_card(origin, choice),
                pooling=choice.pooling if choice else None,
                num_layers=choice.layer if choice else None,
            )
        return ExportedModel(
            folders=places,
            step=step,
            pooling=choice,
            onnx_difference=difference,
            notes=tuple(self.notes),
        )

    def _write_sentences(
        self, origin: CardOrigin, folder: Path, corpus: Corpus | None
    ) -> PoolingChoice:
        from torch import cuda

        from isoglot.models.encoder import position_range
        from isoglot.models.sentence_export import (
            SentenceHead,
            export_sentence_transformers,
            load_sentence_encoder,
        )

        base = load_sentence_encoder(origin.model).to("cuda" if cuda.is_available() else "cpu")
        _, max_length = position_range(base)
        choice = self._choose(base, origin.model, max_length, corpus)
        export_sentence_transformers(
            origin.model,
            folder,
            SentenceHead(pooling=choice.pooling),
            max_length=max_length,
            card=sentence_card(origin, choice),
            num_layers=choice.layer,
        )
        return choice

    def _choose(
        self, base: object, model: Path, max_length: int, corpus: Corpus | None
    ) -> PoolingChoice:
        """The pooling that was asked for, or the best one on held-out pairs, or the mean."""
        from isoglot.models.loading import load_tokenizer

        tokenizer, config = load_tokenizer(str(model)), self.config
        if config.pooling is not None:
            return PoolingChoice.of_last(base, config.pooling, "It was asked for, not chosen.")
        if config.pairs:
            pairs = pairs_of_files(config.pairs, tokenizer, max_length, self.warn)
            source = ", ".join(file.name for file in config.pairs)
        else:
            pairs = pairs_of_corpus(corpus, tokenizer, max_length) if corpus else {}
            source = "held-out part of the training corpus"
        if not pairs:
            self.warn(
                "there are no held-out pairs to choose the pooling on: it is the mean of the last "
                "layer. Give translations with --pairs en-sw.tsv."
            )
            return PoolingChoice.of_last(base, "mean", "It was not chosen on held-out data.")
        return choose_pooling(
            base,
            tokenizer.pad_token_id,
            pairs,
            source=source,
            layers=config.layers,
            progress=self.progress,
        )

    def _say(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True)

"""What a run needs, checked before any work: its folder, its models, its sources, its files.

`check_run` needs no corpus, so it comes before one is generated; `check_corpus` comes before
anything is counted, transplanted or trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.errors import CheckpointError, CorpusError
from isoglot.folders import model_folder
from isoglot.models.cpu_precision import check_cpu_precision
from isoglot.models.transplant.dictionary import expand_patterns
from isoglot.pretraining.checkpoints import checkpoint
from isoglot.pretraining.config import objectives_of
from isoglot.pretraining.environment import check_environment
from isoglot.pretraining.optimizers.optimizer import check_packages

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus import Corpus
    from isoglot.models.config import ModelConfig
    from isoglot.pretraining.config import PretrainConfig

TRANSPLANTED = "transplanted"
"""Folder of a run with the model that was given the corpus's vocabulary."""


def check_run(config: PretrainConfig, folder: Path, *, resume: bool) -> None:
    """Refuse a run whose folder cannot be used, or whose models are not there."""
    _check_folder(folder, resume=resume)
    check_environment(config.logging.trackers)
    check_cpu_precision(config.precision)
    for stage in range(len(config.stages)):
        check_packages(config.optimizer_in(stage), config.memory)
    config.model.check_source()
    if config.model.init_from is not None and not has_begun(folder):
        model_folder(config.model.init_from)
    for objective in objectives_of(config).values():
        for name in objective.models():
            model_folder(name)


def check_corpus(config: PretrainConfig, corpus: Corpus) -> None:
    """Refuse a corpus that lacks a source, a language or the knowledge that a stage reads."""
    for number, stage in enumerate(config.stages):
        for name, stream in stage.streams.items():
            if stream.reads != "knowledge" and not corpus.sources(stream.reads):
                raise CorpusError(
                    f"{corpus.folder} has no prepared source of kind {stream.reads!r}, which the "
                    f"stream {name!r} reads. Add one to the prepare file, or take the stream out: "
                    f"--set stages.{number}.streams.{name}=null."
                )
            stream.selected(corpus)
    if config.transplant is not None:
        expand_patterns(config.transplant.dictionaries)


def has_begun(folder: Path) -> bool:
    """Has a run been transplanted and trained? Then it needs the model it started from no more."""
    transplanted = (folder / TRANSPLANTED / "config.json").is_file()
    return transplanted and checkpoint.latest(folder / "checkpoints") is not None


def _check_folder(folder: Path, *, resume: bool) -> None:
    """Refuse a run's folder that is a file, holds a model or, unless resumed, another run."""
    if (folder / "config.json").is_file():
        raise CheckpointError(
            f"{folder} holds a model, not a run. Choose another folder with --out."
        )
    for place in (folder, *folder.parents):
        if place.is_file():
            raise CheckpointError(f"{place} is a file. Choose a folder with --out.")
    existing = None if resume else checkpoint.latest(folder / "checkpoints")
    if existing is not None:
        raise CheckpointError(
            f"{folder} already holds a run ({existing.name}). Add --resume to continue it, or "
            "choose another folder with --out."
        )


def check_tokenizer(model: ModelConfig, corpus: Corpus) -> None:
    """Refuse a folder to start from whose tokenizer is not the corpus's (language tokens apart)."""
    from isoglot.models.loading import load_config
    from isoglot.models.seq2seq_loading import is_seq2seq

    assert model.init_from is not None
    if model.decoder is None or not is_seq2seq(model.init_from):
        corpus.check_tokenizer(model.init_from)
        return
    found = getattr(load_config(model.init_from), "base_tokenizer", None)
    if found is not None and found != corpus.manifest.tokenizer.fingerprint:
        raise CorpusError(
            f"{model.init_from} was trained with another tokenizer than that of {corpus.folder}. "
            "Prepare the corpus with the tokenizer of the corpus that it was trained on."
        )


def check_language_tokens(corpus: Corpus) -> None:
    """Refuse languages whose token the tokenizer already has with another meaning."""
    from isoglot.corpus.tokenization.vocabulary import open_tokenizer
    from isoglot.models.seq2seq_export import language_token

    known = open_tokenizer(corpus.tokenizer_folder).get_vocab()
    taken = [code for code in corpus.languages if language_token(code) in known]
    if taken:
        raise CorpusError(
            f"The language {taken[0]!r} would get the token {language_token(taken[0])}, which the "
            f"tokenizer of {corpus.folder} has already. Give the language another name in the "
            "prepare file, and prepare again."
        )

"""What a run's folder records of the run besides its numbers: the recipe, and what an export needs.

RUN/recipe.yaml              the complete recipe
RUN/stages.json              the steps of each stage, also of stages whose length is in epochs
RUN/recipe-until-STEP.yaml   an earlier one, of a run that was resumed with another
RUN/corpus/                  the corpus's manifest.json, and where the corpus was (origin.json)
RUN/tokenizer/               its tokenizer
RUN/stopped.json             the step and the signal of a run that was stopped, until it goes on

With corpus/ and tokenizer/, a model is exported from a checkpoint where the corpus is not at hand.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot import json_text
from isoglot.atomic import replace_folder, write_json, write_text
from isoglot.corpus import Corpus
from isoglot.corpus.storage.corpus import TOKENIZER_FOLDER
from isoglot.corpus.storage.manifest import FILE, read_manifest
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from isoglot.pretraining.build import RunContext

RECIPE = "recipe.yaml"
STOPPED = "stopped.json"
STAGES = "stages.json"
_CORPUS, _ORIGIN = "corpus", "origin.json"


def keep_records(context: RunContext, *, resumed_at: int) -> None:
    """Write the recipe and the corpus's description beside the run, on the main process."""
    if not context.accelerator.is_main_process:
        return
    context.folder.mkdir(parents=True, exist_ok=True)
    (context.folder / STOPPED).unlink(missing_ok=True)
    write_json(context.folder / STAGES, {"steps": list(context.num_steps)})
    _keep_corpus(context.folder, context.corpus)
    if context.recipe_text is None:
        return
    file = context.folder / RECIPE
    resumed = resumed_at and file.is_file()
    if resumed and file.read_bytes() != context.recipe_text.encode():
        file.replace(context.folder / f"recipe-until-{resumed_at}.yaml")
    write_text(file, context.recipe_text)


def keep_stop(context: RunContext, *, step: int, signal: str) -> None:
    """Write that a run was stopped: launchers like torchrun do not pass on its exit code."""
    if context.accelerator.is_main_process:
        write_json(context.folder / STOPPED, {"step": step, "signal": signal})


def _keep_corpus(run: Path, corpus: Corpus) -> None:
    with replace_folder(run / TOKENIZER_FOLDER) as new:
        for file in corpus.tokenizer_folder.iterdir():
            if file.is_file():
                shutil.copyfile(file, new / file.name)
    with replace_folder(run / _CORPUS) as new:
        shutil.copyfile(corpus.folder / FILE, new / FILE)
        write_json(new / _ORIGIN, {"folder": corpus.url or str(corpus.folder.resolve())})


def recorded_corpus(run: Path) -> Corpus | None:
    """The corpus of a run without its rows: languages, tokenizer and counts; none: an old run."""
    if not (run / _CORPUS / FILE).is_file():
        return None
    return Corpus(run, read_manifest(run / _CORPUS))


def corpus_origin(run: Path) -> Corpus | None:
    """The corpus that a run was trained on, whole; none where it is not at hand any more."""
    recorded = recorded_corpus(run)
    if recorded is None:
        return None
    try:
        content = json_text.parse((run / _CORPUS / _ORIGIN).read_text(encoding="utf-8"))
        found = Corpus.open(Path(content["folder"]), verify="never")
    except (OSError, ValueError, KeyError, TypeError, CorpusError):
        return None
    return found if found.fingerprint == recorded.fingerprint else None

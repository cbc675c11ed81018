"""The parts of a run, put together: devices, objectives, model, data, exports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from accelerate import Accelerator
from rich.console import Console as Terminal

from isoglot.batching.permutation import key_of
from isoglot.corpus import Corpus
from isoglot.errors import CheckpointError
from isoglot.objectives import Objective
from isoglot.pretrain import checkpoint
from isoglot.pretrain.config import PretrainConfig, objectives_of
from isoglot.pretrain.data import Data
from isoglot.pretrain.devices import make_accelerator, same_bits_twice
from isoglot.pretrain.epochs import steps_of
from isoglot.pretrain.exports import Exports
from isoglot.pretrain.hooks import Preparing
from isoglot.pretrain.kinds import build_trainee
from isoglot.pretrain.start import START, start_of
from isoglot.pretrain.trainee import Trainee

if TYPE_CHECKING:
    from isoglot.models import ModelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What stays the same from the first stage of a run to its last."""

    config: PretrainConfig
    corpus: Corpus
    folder: Path
    name: str
    recipe_text: str | None
    terminal: Terminal
    """Where progress is shown; quiet in all processes but one."""
    accelerator: Accelerator
    objectives: dict[str, Objective]
    """By name, with what they had to find in the corpus."""
    steps: list[int]
    """Of each stage."""
    trainee: Trainee
    data: Data
    exports: Exports


def assemble(
    config: PretrainConfig,
    corpus: Corpus,
    folder: Path,
    name: str,
    recipe_text: str | None,
    terminal: Terminal,
) -> Parts:
    """All of them, in the order in which they need each other."""
    _check_folder(folder)
    accelerator = make_accelerator(config, folder)
    if not accelerator.is_main_process:
        terminal = Terminal(quiet=True)
    if accelerator.device.type == "cuda" and config.deterministic:
        same_bits_twice()
    torch.manual_seed(key_of(config.seed, "weights") >> 1)
    # what an objective must find or count in the corpus is made by one process, and kept
    with accelerator.main_process_first():
        told = Preparing(terminal)
        objectives = {
            name: found.prepared(corpus, told) for name, found in objectives_of(config).items()
        }
    steps = [
        steps_of(stage, corpus, objectives, config.batch, seed=config.seed, number=number)
        for number, stage in enumerate(config.stages)
    ]
    start = _start(config, corpus, folder, accelerator, terminal)
    trainee = build_trainee(start, objectives, corpus, row_length=config.batch.row_length)
    trainee.to(accelerator.device)
    return Parts(
        config=config,
        corpus=corpus,
        folder=folder,
        name=name,
        recipe_text=recipe_text,
        terminal=terminal,
        accelerator=accelerator,
        objectives=objectives,
        steps=steps,
        trainee=trainee,
        data=Data(config, corpus, objectives, accelerator),
        exports=Exports(
            config,
            corpus,
            trainee,
            accelerator,
            folder=folder,
            name=name,
            recipe_text=recipe_text,
            terminal=terminal,
        ),
    )


def _check_folder(folder: Path) -> None:
    """Refuse to put a run where something else is."""
    if (folder / "config.json").is_file():
        raise CheckpointError(
            f"{folder} is a model, and a run in it would hide behind that. Choose another folder "
            "with --out."
        )
    for place in (folder, *folder.parents):
        if place.is_file():
            raise CheckpointError(f"{place} is a file. Choose a folder with --out.")


def _start(
    config: PretrainConfig,
    corpus: Corpus,
    folder: Path,
    accelerator: Accelerator,
    terminal: Terminal,
) -> ModelConfig:
    """The model to begin with; one process transplants it, unless the run has begun already."""
    there = (folder / START / "config.json").is_file()
    begun = there and checkpoint.newest(folder / "checkpoints") is not None
    with accelerator.main_process_first():
        return start_of(
            config,
            corpus,
            folder,
            make=accelerator.is_main_process and not begun,
            say=lambda line: terminal.print(line, highlight=False, soft_wrap=True),
        )

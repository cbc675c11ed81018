"""The demo: a small encoder of two languages is adapted to a third, with the proof.

    testbed --prepare--> OUT/known --pretrain--> encoder of English and Spanish
    testbed --> OUT/new: text of all three, translations of Swahili, as a user has them
    encoder, files --isoglot.adapt--> OUT/adapted: model, scores before and after, report.html

All of it is what `isoglot prepare`, `isoglot pretrain` and `isoglot adapt` do; finished work is
kept, and the same command continues.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from isoglot.demo.testbed_corpus import PIVOT, generated_corpus
from isoglot.progress import duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import Console

    from isoglot.adaptation.run import AdaptOutcome

KNOWN = (PIVOT, "es")
"""Languages of the encoder."""
NEW = "sw"
"""The language that it is adapted to."""
RECIPE = "demo/checkpoint"
WORLD: Mapping[str, int] = {"num_concepts": 60, "max_entities": 20}
KNOWN_SIZE: Mapping[str, int] = {"num_sentences": 6000, "num_pairs": 1}
"""What the encoder is pre-trained on."""
NEW_SIZE: Mapping[str, int] = {"num_sentences": 3000, "num_pairs": 3000}
"""What it is adapted with."""
VOCAB_SIZE = 1000


def run_demo(
    folder: Path,
    console: Console,
    *,
    settings: tuple[str, ...] = (),
    known_size: Mapping[str, int] = KNOWN_SIZE,
    new_size: Mapping[str, int] = NEW_SIZE,
    world: Mapping[str, int] = WORLD,
    heldout: int = 300,
) -> AdaptOutcome:
    """Run the demo into a folder; an earlier, interrupted one continues.

    Args:
        folder: all files go here.
        console: shows progress, the facts and the plan.
        settings: changes of the encoder's recipe, `path.to.setting=value`.
        known_size: lines of each language that the encoder is pre-trained on.
        new_size: lines of each language, and pairs, that it is adapted with.
        world: size of the lexicon.
        heldout: lines of each language, and pairs, that are scored before and after.

    Returns:
        How the adaptation ended, with its scores.
    """
    from isoglot.adaptation.request import AdaptConfig
    from isoglot.adaptation.run import AdaptOutcome, adapt

    began = time.monotonic()
    _use_one_thread()
    console.print(
        "Two small trainings on generated text, about 3 minutes on two cores. Ctrl-C stops; the "
        "same command continues.",
        highlight=False,
    )
    encoder = _known_encoder(folder / "known", console, settings, {**world, **known_size})
    if encoder is None:
        return AdaptOutcome(out=folder / "adapted", finished=False, stopped="pre-training stopped")
    _new_files(folder / "new", {**world, **new_size}, read_before=known_size["num_sentences"])
    text: dict[str, tuple[str, ...]] = {
        code: (str(folder / f"new/text/{code}.txt"),) for code in (*KNOWN, NEW)
    }
    pairs: dict[str, tuple[str, ...]] = {
        f"{PIVOT}-{NEW}": (str(folder / f"new/pairs/{PIVOT}-{NEW}.tsv"),)
    }
    config = AdaptConfig(encoder=str(encoder), text=text, pairs=pairs, heldout=heldout)
    _print_command(config, folder / "adapted", console)
    outcome = adapt(config, folder / "adapted", console=console)
    if outcome.finished:
        console.print(f"{duration(time.monotonic() - began)} in all", highlight=False)
    return outcome


def _use_one_thread() -> None:
    """Models as small as these gain nothing from a second thread, here or in other processes."""
    import torch

    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)


def _known_encoder(
    folder: Path, console: Console, settings: tuple[str, ...], size: Mapping[str, Any]
) -> Path | None:
    """The model folder of the encoder of the known languages; none if training was stopped."""
    from isoglot.corpus import Corpus
    from isoglot.pretraining.run import pretrain
    from isoglot.recipe import dump, load_recipe

    corpus = generated_corpus(
        folder, console, languages=KNOWN, num_pages=0, vocab_size=VOCAB_SIZE, **size
    )
    run = folder / "run"
    if not (run / "model/config.json").is_file():
        recipe = load_recipe(RECIPE, settings)
        steps = sum(stage.steps or 0 for stage in recipe.stages)
        console.print(
            f"Pre-training an encoder of {' and '.join(KNOWN)}: {steps} steps of MLM",
            highlight=False,
        )
        done = pretrain(
            recipe,
            Corpus.open(corpus),
            run,
            resume=run.exists(),
            name=recipe.name,
            recipe_text=dump(recipe),
            console=console,
        )
        return done.model
    return run / "model"


def _new_files(folder: Path, size: Mapping[str, Any], *, read_before: int) -> None:
    """Text of all languages that the encoder has not read, and translations of the new one."""
    from isoglot import testbed

    if not (folder / f"pairs/{PIVOT}-{NEW}.tsv").is_file():
        testbed.write_raw_files(
            folder,
            languages=(*KNOWN, NEW),
            num_test_pairs=1,
            skip_sentences=read_before,
            **size,
        )


def _print_command(config: Any, out: Path, console: Console) -> None:
    """What a user would type."""
    options = [f"--text {code}={names[0]}" for code, names in config.text.items()]
    options += [f"--pairs {code}={names[0]}" for code, names in config.pairs.items()]
    command = " \\\n    ".join([f"isoglot adapt {config.encoder} --out {out}", *options])
    console.print(f"\nThe job itself:\n\n  {command}\n", highlight=False, soft_wrap=True)

"""An adaptation in small: a tiny encoder of English and German, text and pairs of Swahili."""

from __future__ import annotations

from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from isoglot.adaptation.choices import Decision
from isoglot.adaptation.display import STEPS, StepDisplay
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.plan_files import AdaptPlan
from isoglot.adaptation.request import AdaptConfig
from isoglot.adaptation.run import AdaptOutcome, carry_out_plan
from isoglot.api import pretrain
from isoglot.corpus.deduplication.hashing import DuplicatesConfig
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.models.config import ModelConfig
from isoglot.pretraining.config import Recipe
from isoglot.recipe import load_recipe
from isoglot.testbed import write_raw_files

HELDOUT = 60
"""Lines and pairs of the held-out files."""


@dataclass(frozen=True)
class SmallData:
    """Raw files and an encoder, made once; adaptations have folders of their own."""

    raw: Path
    encoder: Path


def make_data(folder: Path, *, steps: int = 40) -> SmallData:
    """Text in three languages, and an encoder of two of them."""
    raw = folder / "raw"
    write_raw_files(
        raw,
        languages=("en", "de", "sw"),
        num_sentences=800,
        num_pairs=500,
        num_test_pairs=HELDOUT,
        num_concepts=20,
        max_entities=12,
    )
    text: dict[str, tuple[str, ...]] = {code: (f"text/{code}.txt",) for code in ("en", "de")}
    config = PrepareConfig(
        sources={"text": SourceConfig(kind="text", format="lines", files=text)},
        tokenizer=TokenizerConfig(vocab_size=500),
        duplicates=DuplicatesConfig(scope="none"),
    )
    prepare(config, folder / "corpus", base=raw)
    recipe = _recipe(steps, parallel=False)
    outcome = pretrain(recipe, folder / "corpus", folder / "base", console=Console(file=StringIO()))
    assert outcome.model is not None
    return SmallData(raw, outcome.model)


def _recipe(steps: int, *, parallel: bool) -> Recipe:
    """The tiny recipe, smaller."""
    recipe = load_recipe("tiny", [f"stages.0.steps={steps}"])
    (stage,) = recipe.stages
    streams = {name: stage.streams[name] for name in ("text", *(["parallel"] * parallel))}
    return replace(
        recipe,
        name="small",
        model=ModelConfig(size="tiny", num_layers=2, hidden_size=48, num_heads=2, dropout=0.0),
        stages=(replace(stage, streams=streams),),
        batch=replace(recipe.batch, rows=16),
        checkpoint=replace(recipe.checkpoint, every_steps=10),
        logging=replace(recipe.logging, validate_every_steps=20, validate_examples=30),
    )


def make_plan(data: SmallData, out: Path, *, steps: int = 40, new_words: int = 0) -> AdaptPlan:
    """A plan as `make_plan` of the library would write it."""
    start = str(out / "encoder") if new_words else str(data.encoder)
    sources = {
        "text": SourceConfig(
            kind="text",
            format="lines",
            files={code: (str(data.raw / f"text/{code}.txt"),) for code in ("en", "sw")},
        ),
        "pairs": SourceConfig(
            kind="pairs", format="tsv", files={"en-sw": (str(data.raw / "pairs/en-sw.tsv"),)}
        ),
    }
    recipe = _recipe(steps, parallel=True)
    return AdaptPlan(
        decisions=(Decision(topic="steps", choice=f"{steps} steps", reason="a test is short"),),
        prepare=PrepareConfig(
            sources=sources,
            tokenizer=TokenizerConfig(folder=start),
            duplicates=DuplicatesConfig(scope="none"),
            exclude=("../heldout/text/*.txt", "../heldout/pairs/*.tsv"),
            heldout_share=0.05,
        ),
        recipe=replace(recipe, model=ModelConfig(init_from=start, dropout=0.0)),
        new_words=new_words,
        step_seconds={"train": 10.0},
        disk_bytes=10**6,
    )


def hold_out(data: SmallData, folder: AdaptFolder) -> None:
    """Held-out lines and pairs from the testbed's test files, and samples."""
    (folder.heldout / "text").mkdir(parents=True, exist_ok=True)
    (folder.heldout / "pairs").mkdir(exist_ok=True)
    folder.sample.mkdir(exist_ok=True)
    folder.plan.mkdir(exist_ok=True)
    test = (data.raw / "test/en-sw.tsv").read_text("utf-8")
    (folder.heldout / "pairs/en-sw.tsv").write_text(test, "utf-8")
    for number, code in enumerate(("en", "sw")):
        lines = [line.split("\t")[number] for line in test.splitlines()]
        (folder.heldout / f"text/{code}.txt").write_text("\n".join(lines) + "\n", "utf-8")
        text = (data.raw / f"text/{code}.txt").read_text("utf-8")
        (folder.sample / f"{code}.txt").write_text(text, "utf-8")


def small_config(data: SmallData, **settings: object) -> AdaptConfig:
    """The settings of the small adaptation."""
    given: dict[str, object] = {
        "encoder": str(data.encoder),
        "text": {code: (str(data.raw / f"text/{code}.txt"),) for code in ("en", "sw")},
        "pairs": {"en-sw": (str(data.raw / "pairs/en-sw.tsv"),)},
        "workers": 1,
        **settings,
    }
    return AdaptConfig(**given)  # type: ignore[arg-type]


def run_small(
    data: SmallData, out: Path, plan: AdaptPlan, console: Console | None = None
) -> AdaptOutcome:
    """Carry a plan out in a folder."""
    folder = AdaptFolder(out)
    if not folder.heldout.is_dir():
        hold_out(data, folder)
    console = console or Console(file=StringIO(), width=200)
    with StepDisplay(console, STEPS) as display:
        return carry_out_plan(small_config(data), plan, folder, display, console)

"""The trade-off of Figure 1 of MetaXLM: more of the source language, or more of the others?

    python -m benchmarks.alpha WORK [--alphas 0 0.3 0.7 1] [--seeds 0 1 2] [--tasks testbed-nli]

Generates a world whose English text is ten times that of each other language, and pre-trains the
single-phase baseline (`ablations/metaxlm-tiny-xlm`) on it with several alphas, p ∝ N^alpha: with 1
English is drawn as often as there is text of it, with 0 all languages are drawn alike. Prints and
draws, against alpha, the held-out loss in English, in the others, and the gap, and the same of
tasks if some are named. CPU, minutes; what is there already is not run again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from isoglot import testbed
from isoglot.cli.console import print_table
from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.finetuning.settings import FinetuneRequest
from isoglot.pretraining.run import pretrain
from isoglot.recipe import dump, load_recipe
from isoglot.report.inputs import NamedFolder
from isoglot.report.transfer import plot_transfer, transfer_rows
from isoglot.study.transfer import heldout_curves, models_to_plot, transfer_curves

RECIPE = "ablations/metaxlm-tiny-xlm"
ALPHA = "stages.0.streams.text.alpha"
LANGUAGES = ("en", "de", "ru", "sw", "zh")
SOURCE = "en"


def uneven_corpus(work: Path, *, sentences: int, times: int) -> Corpus:
    """Generated text, of English so many times as much as of the others, prepared."""
    raw = work / "raw"
    if not raw.is_dir():
        testbed.write_raw_files(
            raw, languages=LANGUAGES, num_sentences=sentences, num_pairs=10, num_test_pairs=10
        )
        for language in LANGUAGES:
            if language != SOURCE:
                file = raw / "text" / f"{language}.txt"
                lines = file.read_text(encoding="utf-8").splitlines()[: sentences // times]
                file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = {language: (f"text/{language}.txt",) for language in LANGUAGES}
    text = SourceConfig(kind="text", format="lines", files=files)
    tokenizer = TokenizerConfig(vocab_size=3000, byte_fallback=False, character_coverage=1.0)
    settings = PrepareConfig(sources={"text": text}, tokenizer=tokenizer, heldout_share=0.02)
    prepare(settings, work / "corpus", base=raw)
    return Corpus.open(work / "corpus")


def train(corpus: Corpus, folder: Path, alpha: float, seed: int, steps: int) -> None:
    """Pre-train with one alpha and seed, unless that is done."""
    if (folder / "model/config.json").is_file():
        return
    changes = [
        f"{ALPHA}={alpha}",
        f"seed={seed}",
        f"stages.0.steps={steps}",
        "export.every_steps=0",
    ]
    recipe = load_recipe(RECIPE, [*changes, "logging.validate_every_steps=0"])
    pretrain(
        recipe,
        corpus,
        folder,
        resume=folder.exists(),
        name=folder.name,
        recipe_text=dump(recipe),
        console=Console(stderr=True),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Pre-train with several alphas and compare.")
    parser.add_argument("work", type=Path)
    parser.add_argument("--alphas", nargs="+", type=float, default=[0.0, 0.3, 0.7, 1.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--sentences", type=int, default=20_000, help="of English")
    parser.add_argument("--times", type=int, default=10, help="English text to another's")
    parser.add_argument("--tasks", nargs="*", default=[], help="testbed tasks to fine-tune for")
    given = parser.parse_args()
    corpus = uneven_corpus(given.work, sentences=given.sentences, times=given.times)
    runs = []
    for alpha in given.alphas:
        for seed in given.seeds:
            folder = given.work / "runs" / f"alpha-{alpha:g}-seed{seed}"
            train(corpus, folder, alpha, seed, given.steps)
            runs.append(NamedFolder("single-phase", folder))
    scored = [heldout_curves(runs, ALPHA, source=SOURCE)]
    if given.tasks:
        asked = FinetuneRequest(protocol="testbed", seeds=(0,))
        found = models_to_plot(runs, ALPHA)
        scored += transfer_curves(found, given.tasks, given.work, asked, source=SOURCE)
    for one in scored:
        print(f"{one.title}, {one.unit}")
        print_table(["", "alpha", "source", "targets", "gap"], transfer_rows(one))
    (given.work / "alpha.svg").write_text(plot_transfer(scored, x_label="alpha"), encoding="utf-8")
    print(given.work / "alpha.svg")


if __name__ == "__main__":
    main()

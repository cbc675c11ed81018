"""The comparison of objectives: from one MLM checkpoint on a generated corpus, three trainings.

    testbed → prepare → demo/checkpoint → demo/mlm, demo/mlm-tlm, demo/ppa → retrieval
            → table → report.html

All continuations see the same text and translations and the same number of tokens. They differ in
what they make of a translation pair: two texts (MLM), one text (MLM + TLM), or one text and two
sentences that find each other (PPA). PPA gives each objective's mean loss the same weight; the
others weigh every target token alike.
"""

from __future__ import annotations

import time
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from rich.table import Table

from isoglot.atomic import write_text
from isoglot.demo.jobs import Job, JobScores, job_runner
from isoglot.demo.testbed_corpus import TEST_PAIRS, generated_corpus
from isoglot.progress import duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import Console

CORPUS_SIZE: Mapping[str, Any] = {
    "languages": ("en", "es", "ru", "ar"),
    "num_sentences": 6000,
    "num_pairs": 4000,
    "num_concepts": 60,
    "max_entities": 20,
    "vocab_size": 1600,
}
CONTROL = "MLM"
VARIANTS = {CONTROL: "demo/mlm", "MLM + TLM": "demo/mlm-tlm", "PPA": "demo/ppa"}
"""Label of each row of the table, and its recipe; the first is the control."""


def run_comparison(
    folder: Path,
    console: Console,
    *,
    seeds: tuple[int, ...] = (1,),
    settings: tuple[str, ...] = (),
    corpus_size: Mapping[str, Any] = CORPUS_SIZE,
) -> list[JobScores]:
    """Run the comparison into a folder, print its table and write its report.

    Finished runs in the folder are not trained again, unfinished ones continue from their newest
    checkpoint.

    Args:
        folder: corpus, runs and report go here.
        console: shows progress and the table.
        seeds: random seeds to train each variant with.
        settings: changes of all recipes, `path.to.setting=value`.
        corpus_size: arguments of `generated_corpus`.

    Returns:
        The scores, those of the checkpoint first.
    """
    began = time.monotonic()
    console.print(
        f"{1 + 3 * len(seeds)} small models, about {1.5 + 2.2 * len(seeds):.0f} minutes on two "
        "cores. Ctrl-C stops; the same command continues.",
        highlight=False,
    )
    corpus = generated_corpus(folder, console, num_pages=0, **corpus_size)
    base, *jobs = _jobs(folder, corpus, seeds, settings)
    with job_runner([base, *jobs], console) as run:
        console.print(f"Training the checkpoint that all start from: {base.num_steps} steps of MLM")
        scores = list(run([base]))
        console.print(_table(scores))
        names = ", ".join(VARIANTS)
        console.print(f"Training {names} from it: {jobs[0].num_steps} steps each")
        for row in run(jobs):
            scores.append(row)
            console.print(f"{row.label}, seed {row.seed}: average {row.average:.1f}")
    base_scores, *rest = scores
    rest.sort(key=lambda row: (row.seed, [*VARIANTS].index(row.label)))
    _print_result([base_scores, *rest], console, time.monotonic() - began)
    _write_report([base_scores, *rest], corpus, folder / "report.html", console)
    return [base_scores, *rest]


def _jobs(
    folder: Path, corpus: Path, seeds: tuple[int, ...], settings: tuple[str, ...]
) -> list[Job]:
    """The checkpoint's job, then those of the variants, the longest first within a seed."""
    from isoglot.recipe import load_recipe

    def job(label: str, recipe: str, name: str, seed: int, init_from: Path | None = None) -> Job:
        return Job(
            label=label,
            recipe=recipe,
            corpus=corpus,
            out=folder / name,
            seed=seed,
            num_steps=sum(stage.steps or 0 for stage in load_recipe(recipe, settings).stages),
            init_from=init_from,
            settings=settings,
        )

    base = job("checkpoint", "demo/checkpoint", "checkpoint", seed=0)
    return [
        base,
        *(
            job(
                label,
                recipe,
                f"{recipe.removeprefix('demo/')}-seed{seed}",
                seed,
                base.out / "model",
            )
            for seed in seeds
            for label, recipe in reversed(VARIANTS.items())
        ),
    ]


# --- the table --------------------------------------------------------------------------------


def _table(scores: list[JobScores]) -> Table:
    """A row per variant, means over seeds; the first row is the checkpoint."""
    languages = list(scores[0].by_language)
    columns = (*languages, "average", "by seed", "not centered")
    table = Table("", *columns, title="Sentence retrieval, accuracy@1 in percent")
    for label, rows in {"checkpoint": scores[:1], **_grouped(scores[1:])}.items():
        if rows:
            table.add_row(
                label,
                *(f"{mean(row.by_language[code] for row in rows):.1f}" for code in languages),
                _mean_sd([row.average for row in rows]),
                " ".join(f"{row.average:.1f}" for row in rows),
                _mean_sd([row.uncentered for row in rows]),
            )
    return table


def _print_result(scores: list[JobScores], console: Console, seconds: float) -> None:
    console.print(_table(scores))
    rest = scores[1:]
    groups = _grouped(rest)
    best = max(rest, key=lambda row: row.average).model
    # equal up to how full the rows are: a percent or two
    tokens = f"{round(mean(row.num_tokens for row in rest), -3):,.0f}"
    console.print(
        f"Both directions with English, {TEST_PAIRS} sentences a language, mean-pooled states of "
        f"each model's best layer (chosen on one half of the sentences, scored on the other), "
        f"minus the mean vector of each language (centered).\n"
        f"All start from the same checkpoint and train on {tokens} tokens.\n"
        + "".join(_margin(label, groups) for label in VARIANTS if label != CONTROL)
        + _caveat(len(groups[CONTROL]))
        + f"{duration(seconds)}. Two of the trained encoders, as Hugging Face folders:\n"
        f"  {groups[CONTROL][0].model}\n  {best}\n\n"
        f"Open one:\n\n"
        f"  from transformers import AutoModelForMaskedLM, AutoTokenizer\n"
        f"  tokenizer = AutoTokenizer.from_pretrained({str(best)!r})\n"
        f"  model = AutoModelForMaskedLM.from_pretrained({str(best)!r})",
        highlight=False,
        soft_wrap=True,
    )


def _caveat(num_seeds: int) -> str:
    if num_seeds > 1:
        return ""
    return (
        "One random seed: it shows that the pieces work, and the order of the rows. For means and "
        "standard deviations: isoglot demo --compare --seeds 3 (about 8 minutes; finished runs are "
        "kept).\n"
    )


def _grouped(scores: list[JobScores]) -> dict[str, list[JobScores]]:
    return {label: [row for row in scores if row.label == label] for label in VARIANTS}


def _margin(label: str, groups: dict[str, list[JobScores]]) -> str:
    pairs = zip(groups[CONTROL], groups[label], strict=True)
    margins = [row.average - control.average for control, row in pairs]
    by_seed = " ".join(f"{margin:+.1f}" for margin in margins)
    return f"{label}, margin over {CONTROL}: {_mean_sd(margins)} points; by seed {by_seed}.\n"


def _mean_sd(values: list[float]) -> str:
    sd = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{mean(values):.1f}{sd}"


# --- the report -------------------------------------------------------------------------------


def _write_report(scores: list[JobScores], corpus: Path, file: Path, console: Console) -> None:
    """One page with scores, training curves, and the sentence space of one model per variant."""
    from isoglot.evaluation.pairs import read_pairs
    from isoglot.evaluation.visualize import VisualizationConfig, visualize_folder
    from isoglot.report.inputs import NamedFolder
    from isoglot.report.page import read_report_data, report_page
    from isoglot.visualizations import FILE

    pairs = read_pairs(sorted((corpus.parent / "raw/test").glob("*.tsv")), limit=TEST_PAIRS)
    config = VisualizationConfig(sentences_per_language=100)
    models = {row.label: row.model for row in reversed(scores)}
    for model in models.values():
        visualize_folder(model, pairs, config).write(model.parent / FILE)
    inputs = [NamedFolder(row.label, row.model.parent) for row in scores]
    title = "Isoglot's demo: one checkpoint, continued in three ways"
    data = read_report_data([*inputs, NamedFolder("corpus", corpus)])
    write_text(file, report_page(data, title=title))
    console.print(f"All of it on one page: {file}", highlight=False, soft_wrap=True)

"""`isoglot show`: lists of what a recipe can name; a recipe, a corpus or a model in detail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.console import print_table, write_page
from isoglot.cli.options import MODEL, parse_settings
from isoglot.cli.outputs import output_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.corpus import Corpus

show = typer.Typer(
    help="List recipes, objectives, streams, tasks, protocols; show a recipe, protocol, corpus or "
    "model.",
    no_args_is_help=True,
)
app.add_typer(show, name="show")

_MARKDOWN = typer.Option(False, "--markdown", help="Print a Markdown table.")


@show.command()
def recipes(
    markdown: bool = _MARKDOWN,
    everything: bool = typer.Option(
        False, "--all", help="Also list ablations and the demo's recipes."
    ),
) -> None:
    """List the built-in recipes; with --all --markdown, also how each differs from its paper."""
    from isoglot.recipe import document

    names = document.built_in()
    shown = [name for name in names if everything or "/" not in name]
    found = {name: document.read(document.find(name)).data for name in shown}
    if not markdown:
        print_table(["recipe", "what it trains"], [[n, r["summary"]] for n, r in found.items()])
        if len(shown) < len(names):
            print(f"\n{len(names) - len(shown)} more, mostly ablations: --all")
        return
    print_table(
        ["recipe", "what it trains", "paper"],
        [[f"`{n}`", r["summary"], r.get("paper", "")] for n, r in found.items()],
        markdown=True,
    )
    if everything:
        print("\n## Differences from the papers")
        _print_differences({name: recipe["differs"] for name, recipe in found.items()})


def _print_differences(found: dict[str, dict[str, str]]) -> None:
    """For each recipe, its lines; for one that extends another, what it changes in them."""
    from isoglot.recipe import document

    groups: dict[tuple[str | None, tuple[str, ...]], list[str]] = {}
    for name, lines in found.items():
        base = document.built_in_base(name)
        inherited = found.get(base or "", {})
        own = [line for topic, line in lines.items() if inherited.get(topic) != line]
        gone = [
            f"does not apply: {line}" for topic, line in inherited.items() if topic not in lines
        ]
        groups.setdefault((base, (*own, *gone)), []).append(name)
    for (base, changes), names in groups.items():
        same = f", as `{base}`" if base else ""
        print(f"\n{', '.join(f'`{name}`' for name in names)}{same}{':' if changes else '.'}")
        if changes:
            print("\n" + "\n".join(f"- {line}" for line in changes))


@show.command()
def objectives(markdown: bool = _MARKDOWN) -> None:
    """List the training objectives that a stream of a recipe can name."""
    from isoglot.objectives import all_objectives

    headings = ["objective", "what it does", "reads", "paper"]
    rows = []
    for kind in all_objectives():
        row = [kind.name, kind.summary, ", ".join(kind.reads), kind.paper]
        if markdown:
            file = f"`src/{kind.__module__.replace('.', '/')}.py`"
            row = [f"`{kind.name}`", *row[1:], file]
        rows.append(row)
    print_table([*headings, "file"] if markdown else headings, rows, markdown=markdown)


@show.command()
def objective(
    name: str = typer.Argument(
        ..., help="An objective (`isoglot show objectives`), or your own as package.module:Class."
    ),
) -> None:
    """Print the settings of an objective: defaults, a sentence about each, the values allowed.

    The output is the part of a recipe that sets the objective.
    """
    from isoglot.objectives import find_objective
    from isoglot.recipe.explain import explained_part

    kind = find_objective(name)
    print(f"# Reads {' or '.join(kind.reads)}. {kind.paper}.")
    print(explained_part("objectives", name, kind()), end="")


@show.command()
def template() -> None:
    """Print an objective with a head of its own, in full, to be copied and changed."""
    from isoglot.objectives import template as module

    print(Path(module.__file__).read_text(encoding="utf-8"), end="")


@show.command()
def streams() -> None:
    """List the streams that a stage of a recipe can draw from."""
    from isoglot.batching.streams import STREAMS

    print_table(
        ["stream", "what it draws", "reads sources of kind"],
        [[kind.kind, (kind.__doc__ or "").split("\n")[0], kind.reads] for kind in STREAMS],
    )


@show.command()
def tasks(markdown: bool = _MARKDOWN) -> None:
    """List the tasks that `isoglot evaluate` and `isoglot finetune` score."""
    from isoglot.tasks import all_tasks

    rows = [
        [task.name, task.kind, task.summary, task.languages, task.metrics[0].name, task.license]
        for task in all_tasks()
    ]
    if markdown:
        rows = [[f"`{name}`", *others] for name, *others in rows]
    print_table(
        ["task", "kind", "what is asked", "languages", "metric", "license of the data"],
        rows,
        markdown=markdown,
    )


@show.command()
def protocols() -> None:
    """List the fine-tuning settings that `isoglot finetune --protocol` can name."""
    from isoglot.finetuning.protocols import PROTOCOLS

    print_table(
        ["protocol", "where its settings are from", "seeds"],
        [[name, protocol.line, str(protocol.seeds)] for name, protocol in PROTOCOLS.items()],
    )


@show.command()
def protocol(
    name: str = typer.Argument(..., help="A protocol (`isoglot show protocols`)."),
) -> None:
    """Print a protocol: its settings for each kind of task and task, and the defaults of others.

    `isoglot finetune --set NAME=VALUE` changes one of them.
    """
    from isoglot.finetuning.protocols import find_protocol
    from isoglot.finetuning.settings import FinetuneConfig
    from isoglot.recipe.explain import sentences

    found, said, defaults = find_protocol(name), sentences(FinetuneConfig), FinetuneConfig()
    columns = found.columns()
    rows = {key: [str(getattr(config, key)) for config in columns.values()] for key in said}
    own = [[key, *row] for key, row in rows.items() if {*row} != {str(getattr(defaults, key))}]
    print(f"{name}: {found.line}. Random seeds: {found.seeds}.\n")
    print_table(["setting of the protocol", *columns], own)
    print()
    print_table(
        ["setting", "default", "what it sets"],
        [[key, str(getattr(defaults, key)), sentence] for key, sentence in said.items()],
    )


@show.command()
def recipe(
    name: str = typer.Argument(..., help="A built-in recipe (`isoglot show recipes`) or a file."),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: path.to.setting=value. May be repeated."
    ),
) -> None:
    """Print a recipe in full, with a sentence about each setting.

    The recipe that it extends is merged, and defaults are filled in. The output is itself a recipe:
    save and edit it.
    """
    from isoglot.recipe import load_recipe
    from isoglot.recipe.explain import explained

    print(explained(load_recipe(name, settings)), end="")


@show.command()
def corpus(
    folder: Path = typer.Argument(..., help="A prepared corpus."),
    alpha: list[float] = typer.Option(
        [0.7, 0.3],
        min=-10,
        max=10,
        help="Show p proportional to N^alpha for each language. May be repeated.",
    ),
    samples: int = typer.Option(
        2, min=0, max=1000, help="Sample lines of each source and language."
    ),
    html: Path | None = typer.Option(None, help="Also write an HTML page.", callback=output_file),
) -> None:
    """Show sizes, drop reasons, sampling probabilities and sample lines of a corpus."""
    from isoglot.corpus import Corpus

    opened = Corpus.open(folder)
    _print_corpus(opened, alphas=alpha, samples=samples)
    if html is not None:
        from isoglot.report.page import corpus_page

        title = f"Corpus {opened.folder.resolve().name}"
        print()
        write_page(html, corpus_page(opened, alphas=alpha, samples=samples, title=title))


def _print_corpus(corpus: Corpus, *, alphas: Sequence[float], samples: int) -> None:
    """Print counts, drop reasons, sampling probabilities and sample lines of a corpus."""
    from isoglot.cli.knowledge import show_knowledge
    from isoglot.cli.prepare import show_manifest
    from isoglot.corpus.knowledge.store import FOLDER, MANIFEST
    from isoglot.report.corpus_stats import sample_rows, sampling_shares

    show_manifest(corpus.manifest)
    print(f"\nfingerprint of the corpus: {corpus.fingerprint}")
    print("\nSampling probability of each language, p ∝ N^alpha, N counted in sentences:\n")
    print_table(
        ["sources of kind", "language", "share of N", *(f"alpha = {alpha:g}" for alpha in alphas)],
        (
            [draw.kind, draw.language, *(f"{100 * p:.1f} %" for p in (draw.share, *draw.drawn))]
            for draw in sampling_shares(corpus.manifest, alphas)
        ),
    )
    if (corpus.folder / FOLDER / MANIFEST).is_file():
        print("\nKnowledge: entities, their descriptions and mentions, and facts:\n")
        show_knowledge(corpus.knowledge, alphas=alphas)
    if samples > 0:
        print("\nSample training lines, decoded from their token ids:\n")
        print_table(
            ["source", "language", "text"],
            (
                [sample.source, sample.language, "  |  ".join(sample.texts)]
                for sample in sample_rows(corpus, samples)
            ),
        )


@show.command()
def model(
    folder: Path = MODEL,
    settings: list[str] = typer.Option(
        [], "--set", help="Change a model setting: norm_dtype=float32. May be repeated."
    ),
) -> None:
    """Show the size of a model and every change that Isoglot makes in it before training."""
    from isoglot.cli.console import disable_progress_bars
    from isoglot.folders import model_folder
    from isoglot.models.config import ModelConfig
    from isoglot.models.optimizations import describe_model

    disable_progress_bars()
    found = model_folder(folder)
    config = ModelConfig(init_from=str(found), **parse_settings(settings, ModelConfig))
    described = describe_model(found, config)
    print(
        f"{described.architecture}: {described.num_layers} layers × {described.hidden_size}, "
        f"vocabulary {described.vocabulary_size:,}, {described.max_positions:,} positions, "
        f"{described.num_parameters:,} parameters"
    )
    if described.new_weights:
        print(
            f"{len(described.new_weights)} weights of the LM head are not in the folder "
            f"({described.new_weights[0]}, ...): training begins with random ones."
        )
    print()
    rows = []
    for one in described.optimizations:
        change = one.optimization
        rows.append([change.name, change.changes, change.why, one.active, str(one.num_layers)])
    print_table(["optimization", "change", "reason", "active", "layers"], rows)


from isoglot.cli import show_batch  # noqa: E402, F401 (registers `isoglot show batch`)

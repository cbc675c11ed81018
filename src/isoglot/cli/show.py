"""`isoglot show`: what there is to choose from, a recipe in full, a corpus at a glance."""

from __future__ import annotations

import inspect
from pathlib import Path

import typer

from isoglot.cli import app
from isoglot.cli.tables import print_table

show = typer.Typer(
    help="Show recipes, objectives, streams, tasks, protocols; a recipe in full; a corpus.",
    no_args_is_help=True,
)
app.add_typer(show, name="show")

_MARKDOWN = typer.Option(False, "--markdown", help="As a Markdown table.")


@show.command()
def recipes(
    markdown: bool = _MARKDOWN,
    everything: bool = typer.Option(False, "--all", help="Ablations and the demo's recipes, too."),
) -> None:
    """List the built-in recipes; with --all, those in folders too, and how they differ."""
    from isoglot.recipe import document

    names = document.built_in()
    shown = [name for name in names if everything or "/" not in name]
    found = {name: document.read(document.find(name)).data for name in shown}
    if not markdown:
        print_table(["recipe", "what it trains"], [[n, r["summary"]] for n, r in found.items()])
        if len(shown) < len(names):
            print(f"\n{len(names) - len(shown)} more, ablations most of them: --all")
        return
    head = ["recipe", "what it trains", "paper"]
    rows = [[f"`{n}`", r["summary"], r.get("paper", "")] for n, r in found.items()]
    if everything:
        first: dict[str, str] = {}
        head.append("differs from the paper")
        for row, (name, recipe) in zip(rows, found.items(), strict=True):
            differs = "; ".join(recipe.get("differs", []))
            same = first.setdefault(differs, name)
            row.append(differs if same == name else f"as `{same}`")
    print_table(head, rows, markdown=True)


@show.command()
def objectives(markdown: bool = _MARKDOWN) -> None:
    """List the objectives that a stream of a recipe can name."""
    from isoglot.objectives import OBJECTIVES

    if not markdown:
        print_table(
            ["objective", "what it does", "reads", "paper"],
            [[kind.name, kind.line, ", ".join(kind.reads), kind.paper] for kind in OBJECTIVES],
        )
        return
    print_table(
        ["objective", "what it does", "reads", "paper", "file"],
        [
            [f"`{kind.name}`", kind.line, ", ".join(kind.reads), kind.paper, _file(kind)]
            for kind in OBJECTIVES
        ],
        markdown=True,
    )


@show.command()
def streams() -> None:
    """List the streams that a stage of a recipe can draw from."""
    from isoglot.batching.streams import STREAMS

    print_table(
        ["stream", "what one reads", "sources of kind"],
        [[kind.kind, _first_line(kind), kind.reads] for kind in STREAMS],
    )


@show.command()
def tasks(markdown: bool = _MARKDOWN) -> None:
    """List the tasks that `isoglot evaluate` and `isoglot finetune` score."""
    from isoglot.tasks import TASKS

    rows = [
        [task.name, task.kind, task.line, task.languages, task.metrics[0].name, task.licence]
        for task in TASKS
    ]
    if markdown:
        rows = [[f"`{name}`", *others] for name, *others in rows]
    print_table(
        ["task", "kind", "what is asked", "languages", "metric", "licence of the data"],
        rows,
        markdown=markdown,
    )


@show.command()
def protocols() -> None:
    """List the fine-tuning settings that `isoglot finetune --protocol` can name."""
    from isoglot.finetune.protocols import PROTOCOLS

    print_table(
        ["protocol", "where its settings are from", "seeds"],
        [[name, protocol.line, str(protocol.seeds)] for name, protocol in PROTOCOLS.items()],
    )


@show.command()
def recipe(
    name: str = typer.Argument(..., help="A built-in recipe (`isoglot show recipes`) or a file."),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: path.to.it=value. May be given several times."
    ),
) -> None:
    """Print a recipe with all its settings, each explained; save it as a start for your own.

    What a recipe extends is merged, what it leaves out is filled in. The output is a recipe too.
    """
    from isoglot.recipe import load_recipe
    from isoglot.recipe.explain import explained

    print(explained(load_recipe(name, settings)), end="")


@show.command()
def corpus(
    folder: Path = typer.Argument(..., help="A prepared corpus."),
    alpha: list[float] = typer.Option(
        [0.7, 0.3],
        help="Draw languages with p proportional to N^alpha. May be given several times.",
    ),
    samples: int = typer.Option(2, help="Lines of each source and language to show."),
    html: Path | None = typer.Option(None, help="Write the same as an HTML page, too."),
) -> None:
    """Show what a corpus holds, what was dropped, how often languages are drawn, and some lines."""
    from isoglot.cli.corpus import show_corpus, write_page
    from isoglot.corpus import Corpus

    opened = Corpus.open(folder, verify="never")
    show_corpus(opened, alphas=alpha, samples=samples)
    if html is not None:
        write_page(opened, html, alphas=alpha, samples=samples)


def _file(kind: type) -> str:
    path = f"src/{kind.__module__.replace('.', '/')}.py"
    return f"[{path.rpartition('/')[2]}]({path})"


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").split("\n")[0]

"""`isoglot fetch`: test sets and training data by name."""

from __future__ import annotations

import fnmatch
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app, options
from isoglot.cli.outputs import output_folder
from isoglot.errors import FetchError, IsoglotError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.fetching.fetch import Fetched
    from isoglot.fetching.http import FetchConfig
    from isoglot.fetching.registry import Entry

_EXAMPLE = r"""
Examples:

    isoglot fetch tatoeba xnli --out eval

    isoglot fetch opus:Tatoeba/en-sw wikipedia:sw cc100:sw --out raw

    isoglot fetch hf:OWNER/DATASET:CONFIG https://example.org/text.txt.gz \
      --out raw

    isoglot fetch --list 'tydi*'

    isoglot fetch mlqa --dry-run
"""
TESTS, RAW = Path("eval"), Path("raw")
"""Folders of test sets and of training data, where none is named."""
_NAMES = typer.Argument(
    None,
    metavar="[NAME]...",
    help="Names of test sets and training data (--list), hf:OWNER/DATASET, or addresses.",
    show_default=False,
)
_OUT = typer.Option(
    None,
    "--out",
    "-o",
    help="Folder for the files.",
    callback=output_folder,
    show_default="eval for test sets, raw for training data",
)
_LIST = typer.Option(
    False, "--list", help="List what can be fetched, or the names that match the patterns given."
)
_MARKDOWN = typer.Option(False, "--markdown", help="Print --list as Markdown.")
_DRY_RUN = typer.Option(False, "--dry-run", help="Print sizes and licenses and download nothing.")
_UPDATE = typer.Option(
    False, "--update", help="Download again, and accept files that changed since the first time."
)
_MIRROR = typer.Option(
    None,
    "--mirror",
    metavar="URL",
    help="Ask URL/HOST/PATH instead of https://HOST/PATH.",
    show_default="the environment variable ISOGLOT_MIRROR",
)


@app.command(epilog=_EXAMPLE)
def fetch(
    names: list[str] = _NAMES,
    out: Path | None = _OUT,
    languages: str = options.LANGUAGES,
    listing: bool = _LIST,
    markdown: bool = _MARKDOWN,
    dry_run: bool = _DRY_RUN,
    update: bool = _UPDATE,
    mirror: str | None = _MIRROR,
) -> None:
    """Download test sets and training data by name, verify them, and unpack them in place.

    Test sets go where `isoglot evaluate` and `isoglot finetune` read them, training data where
    `isoglot prepare` does: OUT/sources.yaml is a prepare file of all that was fetched. The license
    is shown before the first byte. An interrupted download continues when the command is run again;
    what is there already is verified and not downloaded again.
    """
    from isoglot.fetching.http import FetchConfig
    from isoglot.fetching.plan import is_remote_name
    from isoglot.fetching.registry import find_entry

    if listing:
        _print_list(names or [], markdown=markdown)
        return
    if not names:
        raise typer.BadParameter("name something to fetch; --list shows what there is.")
    names = [part for name in names for part in _divided(name)]
    config = FetchConfig(mirror=_checked_mirror(mirror))
    for name in names:
        if not is_remote_name(name):
            find_entry(name)  # a wrong name is found before the first download
    wanted = options.parse_languages(languages)
    if dry_run:
        _print_sizes(names, config, wanted)
        return
    folders = {name: out or (TESTS if _is_test_set(name) else RAW) for name in names}
    fetched, faults = fetch_all(folders, config, wanted, update=update)
    _print_settings({folders[name] for name in fetched})
    if faults:
        raise FetchError("\n".join(faults))


def fetch_all(
    folders: dict[str, Path],
    config: FetchConfig,
    languages: tuple[str, ...] | None = None,
    *,
    update: bool = False,
) -> tuple[dict[str, Fetched], list[str]]:
    """Fetch each name into its folder; what failed does not stop the others."""
    from isoglot.cli.console import StageProgress
    from isoglot.fetching.fetch import describe
    from isoglot.fetching.fetch import fetch as fetch_one

    done: dict[str, Fetched] = {}
    faults: list[str] = []
    for name, folder in folders.items():
        with StageProgress(size=True) as progress:
            try:
                done[name] = fetch_one(
                    name,
                    folder,
                    languages=languages,
                    config=config,
                    progress=progress,
                    announce=lambda plan: print(describe(plan), file=sys.stderr, flush=True),
                    update=update,
                )
            except IsoglotError as error:
                faults.append(str(error))
                continue
        print(_summary(name, done[name], folder), flush=True)
    return done, faults


def _summary(name: str, fetched: Fetched, folder: Path) -> str:
    from isoglot.fetching.fetch import human_size

    size = sum(path.stat().st_size for path in fetched.files)
    number = len(fetched.files)
    files = f"{number} file{'s' if number != 1 else ''}, {human_size(size)}"
    there = ", verified, there already" if fetched.was_there else ""
    return f"{name}: {files} in {folder}{there}"


def _print_settings(folders: set[Path]) -> None:
    """Write the prepare files of folders with training data, and print them."""
    from isoglot.fetching.sources import DUMPS, write_settings

    for folder in sorted(folders):
        for path, text in write_settings(folder).items():
            command = "knowledge extract" if path.name == DUMPS else "prepare"
            print(f"\n# {path}: isoglot {command} {path} --out FOLDER\n{text}", end="")


def _is_test_set(name: str) -> bool:
    from isoglot.fetching.registry import entries

    entry = entries().get(name.partition(":")[0])
    return entry is not None and entry.kind == "test"


def _checked_mirror(mirror: str | None) -> str | None:
    from isoglot.fetching.http import MIRROR, check_url

    given = mirror or os.environ.get(MIRROR)
    if given:
        try:
            check_url(given)
        except FetchError as error:
            where = "--mirror" if mirror else MIRROR
            raise typer.BadParameter(str(error), param_hint=where) from error
    return mirror


def _divided(name: str) -> list[str]:
    """Names with commas between, as --tasks takes them; an address stays whole."""
    return [name] if "://" in name else [part for part in name.split(",") if part]


def _print_list(patterns: Sequence[str], *, markdown: bool) -> None:
    from isoglot.cli.console import print_table
    from isoglot.errors import nearest
    from isoglot.fetching.registry import entries

    known = entries()
    found = [
        entry
        for name, entry in known.items()
        if not patterns or any(fnmatch.fnmatch(name, _plain(pattern)) for pattern in patterns)
    ]
    if not found:
        raise FetchError(f"No data is called {patterns[0]!r}; {nearest(patterns[0], known)}")
    headings = ["name", "kind", "size", "license", "languages"]
    rows = [_row(entry, markdown=markdown) for entry in found]
    print_table([*headings, "from"] if markdown else headings, rows, markdown=markdown)


def _plain(pattern: str) -> str:
    return pattern.partition(":")[0]


def _row(entry: Entry, *, markdown: bool) -> list[str]:
    size = entry.size or ("differs" if entry.arguments else "not known")
    if entry.how and not entry.arguments:
        size = "by hand" if entry.page else "none"
    name = f"`{entry.spelled}`" if markdown else entry.spelled
    row = [name, entry.kind, size, entry.license, entry.languages]
    if markdown:
        row.append(f"{entry.title}, <{entry.page}>" if entry.page else entry.title)
    return row


def _print_sizes(
    names: Sequence[str], config: FetchConfig, languages: tuple[str, ...] | None
) -> None:
    """Print size and license of each name, and ask servers for sizes that are not known."""
    from isoglot.cli.console import print_table
    from isoglot.fetching.download import remote_size
    from isoglot.fetching.fetch import human_size, size_of
    from isoglot.fetching.plan import make_plan

    rows = []
    for name in names:
        plan = make_plan(name, config, languages=languages)
        size = size_of(plan)
        if plan.size is None and len(plan.pieces) == 1:
            asked = remote_size(plan.pieces[0].remote, config)
            size = size if asked is None else human_size(asked)
        rows.append([plan.name, str(len(plan.pieces)), size, plan.license])
    print_table(["name", "downloads", "size", "license"], rows)


def fetch_missing(
    names: Sequence[str],
    data: Sequence[Path],
    targets: tuple[str, ...] | None,
    sources: Sequence[str],
    train_on: str | None = None,
) -> None:
    """Fetch data of tasks into the first data folder, with that of the tasks they are trained on.

    Files of your own are left alone: only data that is missing, or that was fetched, is fetched.
    """
    from isoglot.fetching.http import FetchConfig
    from isoglot.fetching.records import record_path
    from isoglot.fetching.registry import entries
    from isoglot.finetuning.plan import TRAINED_ON
    from isoglot.languages import canonical
    from isoglot.tasks import FINE_TUNED_KINDS, find_task

    wanted: dict[str, Path] = {}
    trained = [name for name in names if find_task(name).kind in FINE_TUNED_KINDS]
    others = [train_on or TRAINED_ON.get(name, name) for name in trained]
    for name in dict.fromkeys((*names, *others)):
        entry, task = entries().get(name), find_task(name)
        own = any(task.splits(folder) for folder in data)
        fetched = record_path(data[0], name).exists()
        if entry is not None and not entry.how and (fetched or not own):
            wanted[name] = data[0]
    languages = None if targets is None else tuple(sorted({*targets, *map(canonical, sources)}))
    _, faults = fetch_all(wanted, FetchConfig(), languages)
    if faults:
        raise FetchError("\n".join(faults))

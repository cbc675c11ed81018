"""Writes what the pages take from elsewhere: commands, hours, sizes, printed numbers, deviations.

    python -m reproduce.pages            rewrite reproduce/*.md
    python -m reproduce.pages --check    fail where a page is out of date

Blocks between `<!-- NAME -->` and `<!-- end -->` are replaced: `commands` and `plan` come from the
script's `--dry-run`, `tables` from tables/PAPER.yaml, `differs` from the recipes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from reproduce.table import PAPERS, markdown, read_tables

FOLDER = Path(__file__).parent
RECIPES = {
    "xlm-k": ("xlm-k",),
    "ernie-m": ("ernie-m", "ernie-m-large"),
    "mlm-gc": ("mlm-gc", "mlm-gc+tlm", "unmt-xlm+gc", "unmt-mass+gc"),
    "metaxlm": ("metaxlm", "metaxlm-dict"),
    "ppa": ("ppa",),
}
_BLOCK = re.compile(r"<!-- (?P<name>\w+)(?: (?P<paper>[\w-]+))? -->\n.*?<!-- end -->", re.DOTALL)
_WIDTH = 160
_REPEATED = {"mlm-gc": re.compile(r"(-|en/|prepare-)(ro|ne)\b|\b(ro|ne)-en|en-(ro|ne)\b")}
"""Commands that differ from others in the language alone."""


@cache
def dry_run(paper: str) -> str:
    """What the script prints with `--dry-run`, on a machine with sixteen cores."""
    done = subprocess.run(
        ["bash", str(FOLDER / f"{paper}.sh"), "--dry-run"],
        env={**os.environ, "WORKERS": "16"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def planned(output: str) -> list[str]:
    """The commands in what a script prints with `--dry-run`."""
    return [one for one in output.splitlines() if one.startswith(("isoglot ", "sacrebleu "))]


def without_repetitions(paper: str, lines: list[str]) -> list[str]:
    """Commands without those that differ from others in the language alone."""
    repeated = _REPEATED.get(paper)
    if repeated is None:
        return lines
    return [one for one in lines if " fetch " in one or not repeated.search(one)]


def commands(paper: str) -> str:
    """The commands of a script, long ones cut."""
    whole = planned(dry_run(paper))
    lines = without_repetitions(paper, whole)
    shown = [one if len(one) <= _WIDTH else f"{one[:_WIDTH]} ..." for one in lines]
    if len(lines) < len(whole):
        shown.append("# and the same for the other languages of Table 4")
    return "```sh\n" + "\n".join(shown) + "\n```"


def plan(paper: str) -> str:
    """The table of hours and sizes."""
    return dry_run(paper).partition("\nGPU hours")[2].partition("\n\n")[2].rstrip()


def tables(paper: str) -> str:
    """The paper's numbers."""
    return markdown(read_tables(paper), measured=False)


def differs(paper: str) -> str:
    """Where the recipes differ from the paper."""
    from isoglot.recipe import load_recipe

    lines: dict[str, None] = {}
    for name in RECIPES[paper]:
        for reason in load_recipe(name).differs.values():
            lines[f"- {reason}"] = None
    return "\n".join(lines)


def overview(paper: str) -> str:
    """A line for each paper: its tables, hours and size."""
    del paper
    rows = ["| paper | tables | GPU hours | on disk |", "|---|---|--:|--:|"]
    for one in PAPERS:
        _, _, hours, disk = (
            cell.strip(" *") for cell in plan(one).splitlines()[-1].strip("|").split("|")
        )
        names = ", ".join(
            f"{table.table} ({table.title.split(',')[0]})" for table in read_tables(one)
        )
        rows.append(f"| [{one}]({one}.md) | {names} | {hours} | {disk} |")
    return "\n".join(rows)


BLOCKS = {
    "commands": commands,
    "plan": plan,
    "tables": tables,
    "differs": differs,
    "overview": overview,
}


def updated(page: Path) -> str:
    """The page with its blocks written anew."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- {name} -->\n{BLOCKS[name](page.stem)}\n<!-- end -->"

    return _BLOCK.sub(block, page.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    given = parser.parse_args()
    stale = []
    for page in sorted(FOLDER.glob("*.md")):
        text = updated(page)
        if text != page.read_text(encoding="utf-8"):
            stale.append(page.name)
            if not given.check:
                page.write_text(text, encoding="utf-8")
    print(f"changed: {', '.join(stale) or 'none'}")
    sys.exit(given.check and bool(stale))


if __name__ == "__main__":
    main()

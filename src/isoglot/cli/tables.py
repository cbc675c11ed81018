"""Tables of the command line: aligned columns for people, Markdown for the README."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

Row = Sequence[str]
_WIDTH_OF_A_PIPE = 200


def print_table(headings: Row, rows: Iterable[Row], *, markdown: bool = False) -> None:
    """Print a table to standard output."""
    if markdown:
        lines = [headings, ["---"] * len(headings), *rows]
        print("\n".join(f"| {' | '.join(line)} |" for line in lines))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings, box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    # in a file or a pipe nothing is gained by folding lines
    Console(width=None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE).print(table)

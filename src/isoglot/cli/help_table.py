"""The table of options in help texts, for terminals of 80 columns.

typer gives `--no-x` a column of its own and cuts names that do not fit. Here `--no-x` stands below
`--x`, names are never cut, and long words of the help are folded.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import override

_CELLS = 6
"""Cells of typer's row: long, short, negative long and negative short names, type, help."""


def install() -> None:
    """Make typer print its options so."""
    from rich.table import Table
    from rich.text import Text
    from typer import rich_utils

    class OptionsTable(Table):
        """A table of options."""

        @override
        def add_row(self, *cells: Any, **styles: Any) -> None:
            if len(cells) >= _CELLS:
                *first, long, short, negative, other, kind, text = cells
                names = Text("\n").join(part for part in (long, negative, other) if part)
                cells = (*first, names, short, kind, text)
            super().add_row(*cells, **styles)
            for column in self.columns[:-2]:
                column.no_wrap = True
            self.columns[-1].overflow = "fold"

    vars(rich_utils)["Table"] = OptionsTable

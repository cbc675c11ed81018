"""A micro-batch as an HTML page of its own, and as text for a terminal (`isoglot show batch`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.explore.batch_figure import mask_svg
from isoglot.explore.batch_html import (
    MAX_TOKEN_CHARACTERS,
    PALETTE,
    STYLE,
    counts_html,
    legend_html,
    row_html,
)
from isoglot.explore.markup import html_text
from isoglot.explore.svg_figure import cut_text

if TYPE_CHECKING:
    from rich.text import Text

    from isoglot.explore.drawn_batch import DrawnBatch, DrawnRow, DrawnSequence

_PAGE_STYLE = """
:root{color-scheme:light dark}
body{font-family:system-ui,"Noto Sans",sans-serif;max-width:1100px;margin:0 auto;padding:12px;
background:Canvas;color:CanvasText}
details{overflow-x:auto}
summary{cursor:pointer}
"""
_STYLES = {"masked": "reverse", "replaced": "reverse italic", "kept": "reverse underline"}
"""rich styles of kinds of tokens."""


def batch_page(drawn: DrawnBatch, rows: list[DrawnRow], *, title: str) -> str:
    """The HTML page of some rows: boxes, counts, and the mask of each row to unfold."""
    parts = []
    for row in rows:
        masks = "".join(mask_svg(row, number) for number in range(len(row.sequences)))
        folded = (
            f"<details><summary>attention masks</summary>{mask_svg(row, None)}{masks}</details>"
        )
        parts.append(row_html(row, drawn, positions=True) + folded)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html_text(title)}</title><style>{_PAGE_STYLE}{STYLE}</style></head><body>"
        f'<div class="ig-b"><h3>{html_text(title)}</h3>{counts_html(drawn)}'
        f"{legend_html(drawn, 'sequence')}{''.join(parts)}</div></body></html>\n"
    )


def row_lines(row: DrawnRow) -> list[Text]:
    """A row for a terminal: a line of names and a line of tokens for each sequence."""
    from rich.text import Text

    lines = [Text(f"{row.title}: {row.length:,} tokens, padding {row.padding:,}", style="bold")]
    for number, one in enumerate(row.sequences):
        names = " · ".join(map(_printable, (one.objective, one.origin)))
        head = f"{names} · rule {one.rule.name.lower()}"
        lines.append(Text(head, style=PALETTE[number % len(PALETTE)]))
        lines.append(_tokens(one))
    return lines


def _tokens(sequence: DrawnSequence) -> Text:
    """The tokens; masked ones reversed with their targets, slots in brackets, markers after `^`."""
    from rich.text import Text

    line = Text("  ")
    for token in sequence.tokens:
        shown = f"[{token.text}]" if token.kind == "slot" else token.text
        style = "dim" if token.kind == "special" else _STYLES.get(token.kind, "")
        line.append(_printable(shown), style=style)
        if token.target is not None:
            line.append(f"→{_printable(token.target)}", "bold")
        for marker in token.markers:
            line.append(f"^{_printable(marker)}", "yellow")
        line.append(" ")
    return line


def _printable(text: str) -> str:
    """The text, cut, without characters that would change the terminal."""
    shown = cut_text(text, MAX_TOKEN_CHARACTERS)
    return "".join(character if character.isprintable() else "\ufffd" for character in shown)

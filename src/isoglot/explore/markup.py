"""Text in HTML: escaped, cut at a sensible length, right-to-left where it is so.

All HTML of the tabs is built from these functions. Sentences, names of files and messages come from
elsewhere and may hold tags, scripts or 100,000 characters; they are always shown as text.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_CHARACTERS = 500
"""Characters of a text that are shown, unless a tab says otherwise."""


def cut(text: str, limit: int = MAX_CHARACTERS) -> str:
    """The text, or its first characters and how many there are; not escaped."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text):,} characters)"


def html_text(text: object, limit: int = MAX_CHARACTERS) -> str:
    """Text for HTML or an attribute in double quotes: cut, then escaped."""
    return escape(cut(str(text), limit), quote=True)


def sentence(text: str, limit: int = MAX_CHARACTERS) -> str:
    """A sentence as an element that takes its direction from its own script.

    `bdi` keeps Arabic, and characters that change the direction, from reordering what follows.
    """
    return f'<bdi dir="auto">{html_text(text, limit)}</bdi>'


def note(text: str) -> str:
    """A paragraph of explanation."""
    return f'<p class="ig-note">{html_text(text, 2000)}</p>'


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, label: str = "", cards: bool = False
) -> str:
    """A table: headings are text, cells are HTML from the functions of this module.

    With `cards`, a row is a list of headings and cells where the page is narrow.
    """
    names = [html_text(heading) for heading in headings]
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-heading="{name}">{cell}</td>' for name, cell in zip(names, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    kind = "ig-table ig-cards" if cards else "ig-table"
    return (
        f'<div class="ig-scroll"><table class="{kind}" aria-label="{html_text(label)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )

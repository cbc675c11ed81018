"""A figure as SVG: blocks under and beside each other, texts of estimated width.

Text has the color of the page around it (`currentColor`); a figure that stands alone has a
background of its own, dark where the reader's system is. Widths of texts are estimated, so that no
font is read: a figure is the same on every machine.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from isoglot.corpus.tokenization.vocabulary import SPACE_MARK
from isoglot.explore.batch_html import MAX_TOKEN_CHARACTERS
from isoglot.explore.markup import html_text

WIDTH = 720
"""Width of a figure, in its own units."""
STANDALONE = "ig-alone"
"""The class of a figure that is a file of its own; on a page it is removed."""

_STYLE = f"""
.ig-svg{{font-family:system-ui,"Noto Sans","Noto Sans Arabic","Noto Sans CJK SC",sans-serif}}
.ig-svg text{{fill:currentColor;unicode-bidi:isolate}}
.ig-svg .muted{{opacity:.75}}
.ig-svg .mark{{fill-opacity:.35}}
.ig-svg .ground{{fill:none}}
.{STANDALONE}{{color:#1c2126}}
.{STANDALONE} .ground{{fill:#fff}}
@media (prefers-color-scheme:dark){{
.{STANDALONE}{{color:#e6e9ec}}
.{STANDALONE} .ground{{fill:#15181c}}
}}
"""
_NARROW = frozenset("iljft.,;:!'|()[] ")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a figure, drawn from its own upper left corner."""

    width: float
    height: float
    body: str


def text_width(text: str, size: float) -> float:
    """About how wide a text is, by its characters; never read from a font."""
    width = 0.0
    for character in text:
        if unicodedata.category(character) in ("Mn", "Me", "Cf"):
            continue
        if unicodedata.east_asian_width(character) in "WF":
            width += 1.0
        elif character in _NARROW:
            width += 0.36
        elif character.isupper() or character in "mw<>@—→▁▴":
            width += 0.72
        else:
            width += 0.57
    return width * size


def svg_text(text: str, limit: int = MAX_TOKEN_CHARACTERS) -> str:
    """Text for SVG: cut, without the characters that XML cannot hold, escaped."""
    return html_text("".join(map(_in_xml, cut_text(text, limit))), limit)


def cut_text(text: str, limit: int) -> str:
    """The text, or its first characters and an ellipsis: `limit` characters in all."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _in_xml(character: str) -> str:
    number = ord(character)
    if number < 0x20:
        return chr(0x2400 + number)
    if 0xD800 <= number <= 0xDFFF or number in (0xFFFE, 0xFFFF):
        return "\ufffd"
    return character


class Figure:
    """Blocks from top to bottom; those of one `add` stand beside each other while there is room."""

    def __init__(self, label: str, width: float = WIDTH) -> None:
        """`label` is what screen readers say."""
        self._label, self._width = label, width
        self._parts: list[str] = []
        self._top, self._widest = 10.0, 0.0

    def add(self, *blocks: Block) -> None:
        """Add blocks in a line, or in several if they are too wide for one."""
        left, height = 0.0, 0.0
        for block in blocks:
            if left and left + block.width > self._width:
                self._top += height + 10
                left, height = 0.0, 0.0
            place = f"translate({px(10 + left)} {px(self._top)})"
            self._parts.append(f'<g transform="{place}">{block.body}</g>')
            left += block.width + 28
            height = max(height, block.height)
            self._widest = max(self._widest, left - 28)
        self._top += height + 10

    def svg(self, *, standalone: bool = True) -> str:
        """The figure; one that does not stand alone takes the colors of its page."""
        width, height = max(self._width, self._widest) + 20, self._top
        alone = f" {STANDALONE}" if standalone else ""
        size = f"{px(width)} {px(height)}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ig-svg{alone}" viewBox="0 0 {size}" '
            f'width="{px(width)}" height="{px(height)}" role="img" '
            f'aria-label="{svg_text(self._label, 300)}"><style>{_STYLE}</style>'
            f'<rect class="ground" width="100%" height="100%"/>{"".join(self._parts)}</svg>\n'
        )


def text_element(
    text: str,
    x: float,
    y: float,
    *,
    size: float,
    anchor: str = "middle",
    css: str = "",
    weight: int = 400,
    decorate: bool = False,
) -> str:
    """A text of SVG at a point; `css` is its class."""
    more = f' class="{css}"' if css else ""
    more += f' font-weight="{weight}"' if weight != 400 else ""
    more += ' text-decoration="underline"' if decorate else ""
    shown = svg_text(text, 200)
    if shown.startswith(SPACE_MARK) and len(shown) > 1:
        shown = f'<tspan class="mark">{SPACE_MARK}</tspan>{shown[1:]}'
    return (
        f'<text x="{px(x)}" y="{px(y)}" font-size="{size}" text-anchor="{anchor}"{more}>'
        f"{shown}</text>"
    )


def px(value: float) -> str:
    """A length of SVG, with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")

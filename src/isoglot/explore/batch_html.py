"""Rows of a micro-batch as HTML: a card for each sequence, a box for each token.

A line of boxes is a run of tokens of one language and role. Runs of a right-to-left script run from
the right. Colors are of one lightness that serves on white and on black, text has the color of
the page around it: the same HTML fits a light and a dark page. All text is escaped and cut.
"""

from __future__ import annotations

import unicodedata
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from isoglot.corpus.tokenization.vocabulary import SPACE_MARK
from isoglot.explore.drawn_batch import KINDS, DrawnBatch, DrawnRow, DrawnSequence, DrawnToken
from isoglot.explore.markup import html_text, table

if TYPE_CHECKING:
    from collections.abc import Iterator

ColorBy = Literal["sequence", "objective", "language"]

PALETTE = (
    "#2878bd",
    "#d0571c",
    "#0f8a63",
    "#a844b3",
    "#967000",
    "#6a61d8",
    "#d6395f",
    "#12829c",
    "#757e8a",
    "#5c8a16",
)
"""Colors with a contrast of 3:1 on white and on black pages; they repeat after the last."""

MAX_TOKEN_CHARACTERS = 40
"""Characters of a token that are shown."""

STYLE = """
.ig-b{--ig-b-line:color-mix(in srgb,currentColor 25%,transparent);font-size:14px;line-height:1.3;
contain:inline-size}
.ig-b h4{margin:14px 0 6px;font-size:14px;font-weight:600}
.ig-b-seq{border-inline-start:4px solid var(--c);padding:2px 0 2px 8px;margin:0 0 10px}
.ig-b-head{font-size:12px;opacity:.8;margin-bottom:3px}
.ig-b-run{display:flex;flex-wrap:wrap;gap:3px;align-items:flex-start;margin-bottom:3px}
.ig-b-lang{font-size:11px;opacity:.75;min-width:4.6em;padding-top:4px}
.ig-b-t{display:inline-flex;flex-direction:column;align-items:center;border:1px solid var(--c);
border-radius:4px;padding:1px 4px;background:color-mix(in srgb,var(--c) 10%,transparent);
max-width:100%;overflow-wrap:anywhere}
.ig-b-t small{font-size:11px;font-weight:600}
.ig-b-t i{font-size:10px;font-style:normal;opacity:.7}
.ig-b-t em{font-size:10px;font-style:normal;background:var(--c);color:#fff;border-radius:3px;
padding:0 3px}
.ig-b-mark{opacity:.4}
.ig-b-special{background:none;border-color:var(--ig-b-line)}
.ig-b-masked{background:color-mix(in srgb,var(--c) 42%,transparent)}
.ig-b-replaced{background:color-mix(in srgb,var(--c) 42%,transparent);border-style:double;
border-width:3px}
.ig-b-kept{background:color-mix(in srgb,var(--c) 42%,transparent);text-decoration:underline}
.ig-b-slot{border-style:dashed;border-width:2px;background:none}
.ig-b-padding{border:1px dotted var(--ig-b-line);border-radius:4px;padding:1px 6px;opacity:.75;
display:inline-block}
.ig-b-legend{display:flex;flex-wrap:wrap;gap:4px 14px;margin:6px 0;font-size:12px}
.ig-b-legend>span{display:inline-flex;gap:5px;align-items:center}
.ig-b-legend .ig-b-t{flex:none}
.ig-b-mask{overflow-x:auto;contain:inline-size}
.ig-b-mask svg{max-width:none}
.ig-b table{border-collapse:collapse;font-size:13px;margin:0;border:0!important;width:auto}
.ig-b tr{border:0!important}
.ig-b th,.ig-b td{padding:3px 12px 3px 0!important;text-align:start;border:0!important;
border-bottom:1px solid var(--ig-b-line)!important}
"""
"""The style sheet of the boxes; class names begin with `ig-b`."""


def is_right_to_left(text: str) -> bool:
    """Is the first letter of a text of a right-to-left script?"""
    for character in text:
        found = unicodedata.bidirectional(character)
        if found in ("R", "AL"):
            return True
        if found == "L":
            return False
    return False


def runs(sequence: DrawnSequence) -> Iterator[tuple[list[DrawnToken], bool]]:
    """The tokens of a sequence in stretches of one language and role; is each right-to-left?"""

    def key(token: DrawnToken) -> tuple[str, bool]:
        return token.language, token.kind == "slot"

    for _, group in groupby(sequence.tokens, key):
        tokens = list(group)
        said = "".join(t.target or t.text for t in tokens if t.kind != "special")
        yield tokens, is_right_to_left(said)


def color_number(
    token: DrawnToken, sequence: DrawnSequence, number: int, drawn: DrawnBatch, by: ColorBy
) -> int:
    """The color of a token; `number` is that of its sequence in the row."""
    if by == "objective":
        return drawn.objectives().index(sequence.objective)
    return drawn.languages().index(token.language) if by == "language" else number


def row_html(
    row: DrawnRow, drawn: DrawnBatch, *, color_by: ColorBy = "sequence", positions: bool = False
) -> str:
    """One row: its sequences and its padding."""
    cards = [
        _sequence_html(sequence, number, drawn, color_by, positions=positions)
        for number, sequence in enumerate(row.sequences)
    ]
    if row.padding:
        cards.append(f'<span class="ig-b-padding">padding × {row.padding:,}</span>')
    title = f"{row.title}: {row.length:,} tokens, {len(row.sequences):,} sequences"
    return f'<div class="ig-b-row"><h4>{html_text(title)}</h4>{"".join(cards)}</div>'


def _sequence_html(
    sequence: DrawnSequence, number: int, drawn: DrawnBatch, by: ColorBy, *, positions: bool
) -> str:
    lines = []
    for tokens, right_to_left in runs(sequence):
        slots = " slots" if tokens[0].kind == "slot" else ""
        label = f'<span class="ig-b-lang">{html_text(tokens[0].language)}{slots}</span>'
        boxes = "".join(
            _token_html(
                token, color_number(token, sequence, number, drawn, by), positions=positions
            )
            for token in tokens
        )
        direction = "rtl" if right_to_left else "ltr"
        lines.append(f'<div class="ig-b-run" dir="{direction}">{label}{boxes}</div>')
    head = " · ".join(
        (
            sequence.objective,
            sequence.origin,
            f"draw {sequence.draw}",
            f"{len(sequence.tokens)} tokens",
            f"rule: {sequence.rule.name.lower()}",
        )
    )
    color = PALETTE[number % len(PALETTE)]
    if by == "objective":
        color = PALETTE[drawn.objectives().index(sequence.objective) % len(PALETTE)]
    return (
        f'<div class="ig-b-seq" style="--c:{color}"><div class="ig-b-head">{html_text(head)}'
        f"</div>{''.join(lines)}</div>"
    )


def _token_html(token: DrawnToken, color: int, *, positions: bool) -> str:
    parts = [f"<em>{html_text(marker)}</em>" for marker in token.markers]
    parts.append(_token_text(token.text))
    if token.target is not None:
        parts.append(f"<small>{_token_text(token.target)}</small>")
    if positions:
        parts.append(f"<i>{token.position}</i>")
    title = f"{KINDS[token.kind]}; position {token.position}, language {token.language}"
    return (
        f'<span class="ig-b-t ig-b-{token.kind}" style="--c:{PALETTE[color % len(PALETTE)]}" '
        f'title="{html_text(title)}">{"".join(parts)}</span>'
    )


def _token_text(text: str) -> str:
    """The tokenizer's text, with a pale mark of a word's start."""
    shown = html_text(text, MAX_TOKEN_CHARACTERS)
    if shown.startswith(SPACE_MARK) and len(shown) > 1:
        shown = f'<span class="ig-b-mark">{SPACE_MARK}</span>{shown[1:]}'
    return f"<bdi>{shown}</bdi>"


def legend_html(drawn: DrawnBatch, color_by: ColorBy) -> str:
    """What boxes and colors mean."""
    kinds = {t.kind for row in drawn.rows for one in row.sequences for t in one.tokens}
    items = [
        f'<span><span class="ig-b-t ig-b-{kind}" style="--c:{PALETTE[0]}">abc</span>{said}</span>'
        for kind, said in KINDS.items()
        if kind in kinds and kind not in ("token", "special")
    ]
    names = {"objective": drawn.objectives(), "language": drawn.languages(), "sequence": ()}
    for number, name in enumerate(names[color_by]):
        swatch = f'<span style="color:{PALETTE[number % len(PALETTE)]}">■</span>'
        items.append(f"<span>{swatch}{html_text(name)}</span>")
    return f'<div class="ig-b-legend">{"".join(items)}</div>'


def counts_html(drawn: DrawnBatch) -> str:
    """A table of the objectives: predictions, sequences and tokens of each."""
    rows = [[html_text(cell) for cell in row] for row in counts(drawn)]
    return table(COUNT_HEADINGS, rows, label="targets by objective")


COUNT_HEADINGS = ("objective", "predictions", "target tokens", "sequences", "tokens")


def counts(drawn: DrawnBatch) -> list[tuple[str, ...]]:
    """For each objective: predictions that its loss counts, target tokens, sequences, tokens.

    An objective that reads the targets of another (`cooccurrence`) has none of its own.
    """
    found = []
    for name, number in drawn.batch.num_targets.items():
        own = [s for row in drawn.rows for s in row.sequences if s.objective == name]
        targets = sum(token.target is not None for one in own for token in one.tokens)
        tokens = sum(len(one.tokens) for one in own)
        found.append((name, *(f"{n:,}" for n in (number, targets, len(own), tokens))))
    return found


def batch_html(
    drawn: DrawnBatch, rows: list[DrawnRow], *, color_by: ColorBy, positions: bool
) -> str:
    """Some rows of a batch with their legend, as one element."""
    inside = "".join(row_html(r, drawn, color_by=color_by, positions=positions) for r in rows)
    return f'<div class="ig-b"><style>{STYLE}</style>{legend_html(drawn, color_by)}{inside}</div>'

"""The tab *Batches*: what a recipe feeds the model, token by token, and who attends to whom.

Recipes are the built-in ones that fit the session's corpus, and the session's own. A file or a
class cannot be named on the page: others may use it, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError
from isoglot.explore.batch_figure import MAX_MASK_TOKENS, mask_svg
from isoglot.explore.batch_html import batch_html, counts_html
from isoglot.explore.drawn_batch import decode_batch
from isoglot.explore.events import sentence_errors
from isoglot.explore.markup import html_text, note
from isoglot.explore.stage_batches import MAX_STEP, fitting_recipes, open_stage

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.explore.batch_html import ColorBy
    from isoglot.explore.drawn_batch import DrawnBatch, DrawnRow
    from isoglot.explore.session import ExploreSession
    from isoglot.explore.stage_batches import StageBatches

_NO_CORPUS = "There is no corpus to draw from. Start isoglot explore with --corpus FOLDER."
_WHOLE_ROW = "the whole row"
_CLASS_PATH = re.compile(r"[\w.]:\w")
_KEPT = 4
"""Stages, and micro-batches, that are kept for the next click."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """Which micro-batch is shown."""

    recipe: str
    settings: tuple[str, ...] = ()
    """`path.to.setting=value`, as after `--set`."""
    stage: int = 0
    step: int = 1
    micro_batch: int = 0


def parse_settings(text: str) -> tuple[str, ...]:
    """The settings of a text field, one on each line; paths and classes are refused."""
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    for line in lines:
        if "/" in line or "\\" in line or _CLASS_PATH.search(line):
            raise IsoglotError(
                f"{line[:200]}: a path or a class cannot be named on this page. Write it into a "
                "recipe file, and start isoglot explore with --recipe FILE."
            )
    return lines


class BatchBrowser:
    """Opens stages of recipes on a corpus; the last ones are kept."""

    def __init__(self, corpus: Corpus, own_recipe: str | None = None) -> None:
        """`own_recipe` is the name or path of a recipe beside the built-in ones."""
        self.corpus, self.own_recipe = corpus, own_recipe
        self._stages: dict[tuple[str, tuple[str, ...], int], StageBatches] = {}
        self._drawn: dict[BatchRequest, DrawnBatch] = {}
        self._fitting: list[str] | None = None

    def recipes(self) -> list[str]:
        """The recipes that fit the corpus, the session's own first."""
        if self._fitting is None:
            self._fitting = fitting_recipes(self.corpus)
        own = [] if self.own_recipe is None else [self.own_recipe]
        return list(dict.fromkeys([*own, *self._fitting]))

    def all_recipes(self) -> list[str]:
        """All recipes that may be chosen, found without reading them."""
        from isoglot.recipe import recipe_names

        own = [] if self.own_recipe is None else [self.own_recipe]
        return list(dict.fromkeys([*own, *recipe_names()]))

    def drawn(self, request: BatchRequest) -> DrawnBatch:
        """A micro-batch, decoded."""
        if request not in self._drawn:
            if request.recipe not in self.all_recipes():
                raise IsoglotError(f"{request.recipe[:200]}: choose a recipe of the list.")
            key = (request.recipe, request.settings, request.stage)
            if key not in self._stages:
                from isoglot.recipe import load_recipe

                recipe = load_recipe(request.recipe, request.settings)
                _keep(self._stages, key, open_stage(recipe, self.corpus, request.stage))
            stage = self._stages[key]
            built = stage.micro_batch(request.step, request.micro_batch)
            _keep(self._drawn, request, decode_batch(built, stage))
        return self._drawn[request]


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    while len(kept) >= _KEPT:
        kept.pop(next(iter(kept)))
    kept[key] = value


def row_names(drawn: DrawnBatch) -> list[str]:
    """The names of the rows with sequences, to choose from."""
    return [row.title for row in drawn.rows if row.sequences]


def sequence_names(row: DrawnRow) -> list[str]:
    """The names of the masks of a row: the whole row, or each sequence."""
    own = [
        f"sequence {number}: {one.objective}, {one.origin}"
        for number, one in enumerate(row.sequences)
    ]
    return [_WHOLE_ROW, *own]


def find_row(drawn: DrawnBatch, name: str | None) -> DrawnRow:
    """The row of a name; the first if there is none of that name."""
    rows = [row for row in drawn.rows if row.sequences]
    if not rows:
        raise IsoglotError("This micro-batch has no sequences.")
    return next((row for row in rows if row.title == name), rows[0])


def summary_html(drawn: DrawnBatch, request: BatchRequest) -> str:
    """What is shown, and the counts of targets by objective."""
    batch = drawn.batch
    said = (
        f"{request.recipe}, stage {request.stage}, step {request.step}, micro-batch "
        f"{request.micro_batch}: {len(batch.rows.ids):,} rows of {batch.rows.ids.shape[1]:,} "
        f"tokens, {batch.num_tokens:,} tokens without padding"
    )
    return f'<div class="ig-b"><p>{html_text(said)}</p>{counts_html(drawn)}</div>'


def mask_html(row: DrawnRow, name: str | None) -> str:
    """The mask of a row or of one of its sequences, as HTML."""
    names = sequence_names(row)
    chosen = names.index(name) if name in names else min(1, len(names) - 1)
    svg = mask_svg(row, chosen - 1 if chosen else None)
    if not svg:
        return note(f"A mask of more than {MAX_MASK_TOKENS:,} tokens is not drawn.")
    return f'<div class="ig-b-mask">{svg}</div>'


def build_tab(session: ExploreSession) -> None:
    """Create the components inside the open tab."""
    import gradio

    if session.corpus is None:
        gradio.HTML(note(_NO_CORPUS))
        return
    browser = BatchBrowser(session.corpus, session.recipe)
    inputs, ask = _inputs(gradio, browser)
    summary = gradio.HTML(elem_id="batches-summary")
    row, mask, color, positions = _view_settings(gradio)
    rows = gradio.HTML(elem_id="batches-rows")
    drawn_mask = gradio.HTML(elem_id="batches-mask")
    views = [row, mask, color, positions]

    def request(
        recipe: str, settings: str, stage: float, step: float, micro: float
    ) -> BatchRequest:
        return BatchRequest(
            recipe=recipe,
            settings=parse_settings(settings),
            stage=int(stage or 0),
            step=int(step or 1),
            micro_batch=int(micro or 0),
        )

    @sentence_errors
    def show(*given: Any) -> list[Any]:
        *asked, row_name, mask_name, by, with_positions = given
        wanted = request(*asked)
        drawn = browser.drawn(wanted)
        chosen = find_row(drawn, row_name)
        names = sequence_names(chosen)
        shown = mask_name if mask_name in names else names[1]
        html = batch_html(drawn, [chosen], color_by=by, positions=bool(with_positions))
        return [
            summary_html(drawn, wanted),
            gradio.Dropdown(row_names(drawn), value=chosen.title, visible=True),
            gradio.Dropdown(names, value=shown, visible=True),
            html,
            mask_html(chosen, shown),
        ]

    outputs = [summary, row, mask, rows, drawn_mask]
    ask.click(show, [*inputs, *views], outputs)
    for component in views:
        # only what the user changes: `change` would also follow what `show` sets
        component.input(show, [*inputs, *views], outputs)
    gradio.on(fn=lambda: gradio.Dropdown(browser.recipes()), inputs=None, outputs=inputs[0])


def _inputs(gradio: Any, browser: BatchBrowser) -> tuple[list[Any], Any]:
    """Recipe, settings, stage, step and micro-batch, and the button."""
    names = browser.all_recipes()
    with gradio.Row():
        recipe = gradio.Dropdown(
            names,
            value=names[0] if browser.own_recipe else "tiny",
            label="Recipe",
            elem_id="batches-recipe",
        )
        stage = gradio.Number(0, label="Stage (stages.N)", precision=0, minimum=0, maximum=99)
        step = gradio.Number(1, label="Step", precision=0, minimum=1, maximum=MAX_STEP)
        micro = gradio.Number(0, label="Micro-batch", precision=0, minimum=0, maximum=9999)
    with gradio.Row(equal_height=True):
        settings = gradio.Textbox(
            label="Settings, one on each line",
            placeholder="objectives.mlm.masking.rate=0.3",
            lines=2,
            max_length=4000,
            scale=4,
        )
        ask = gradio.Button("Show batch", variant="primary", elem_id="batches-ask", scale=1)
    return [recipe, settings, stage, step, micro], ask


def _view_settings(gradio: Any) -> list[Any]:
    """Row, mask, colors and positions: what of a micro-batch is shown."""
    with gradio.Row():
        # another row changes the names of the masks: Gradio may still send the name shown before,
        # and would refuse it, where `show` takes the first sequence
        any_name = {"allow_custom_value": True, "visible": False}
        row = gradio.Dropdown([], label="Row", elem_id="batches-row", **any_name)
        mask = gradio.Dropdown([], label="Mask of", elem_id="batches-mask-of", **any_name)
        by: tuple[ColorBy, ...] = ("sequence", "objective", "language")
        color = gradio.Radio(list(by), value=by[0], label="Colors by")
        positions = gradio.Checkbox(label="Positions", value=False)
    return [row, mask, color, positions]

"""The tab *Alignment*: two sentences, their words joined by the links of `isoglot align`.

A figure of lines, a matrix of cosines and the links in Pharaoh format, for one or two models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from isoglot.alignment.align import pharaoh
from isoglot.alignment.config import AlignConfig
from isoglot.evaluation.settings import Aligner
from isoglot.explore.alignment_figure import links_svg, matrix_svg
from isoglot.explore.components import chosen_models, model_choices, pairs_choice, random_pair
from isoglot.explore.events import sentence_errors
from isoglot.explore.markup import html_text, note
from isoglot.explore.word_links import SentenceWords, find_words, link_words

if TYPE_CHECKING:
    from isoglot.explore.session import ExploreModel, ExploreSession

_ABOUT = (
    "Each word is joined with the words that the aligner links it with. A line is thicker, and a "
    "cell of the matrix darker, the larger the cosine of their states."
)


def draw_pair(
    model: ExploreModel,
    sides: tuple[SentenceWords, SentenceWords],
    *,
    aligner: Aligner,
    layer: int,
    languages: tuple[str, str],
) -> tuple[str, str]:
    """What one model makes of a pair: figures as HTML, and the links in Pharaoh format.

    A layer above the model's last stands for the last; two models may differ in their number.
    """
    words = sides[0].words, sides[1].words
    pair = link_words(
        model,
        words,
        aligner=aligner,
        layer=min(layer, model.num_layers),
        languages=languages if all(languages) else None,
    )
    notes = [side.note for side in sides if side.note]
    if pair.is_cut:
        notes.append("A sentence is longer than the model's positions: words beyond have no link.")
    title = f"<h3>{html_text(model.name)}</h3>"
    label = f"{model.name}: links of words, {aligner}, layer {pair.layer}"
    figures = links_svg(pair, label=label) + matrix_svg(pair, label=f"{model.name}: cosines")
    return title + figures + "".join(map(note, dict.fromkeys(notes))), pharaoh(pair.links)


def build_tab(session: ExploreSession) -> None:
    """Create the components inside the open tab."""
    import gradio

    gradio.HTML(note(_ABOUT))
    texts, codes = _sentence_rows(gradio)
    other, ask = _buttons(gradio, session)
    with gradio.Row():
        pairs = pairs_choice(gradio, session)
        aligner = gradio.Dropdown(
            list(get_args(Aligner)), value=AlignConfig().aligner, label="Aligner"
        )
        most = max(model.num_layers for model in session.models)
        first_layer = AlignConfig().chosen_layer(session.models[0].num_layers)
        layer = gradio.Slider(
            0, most, value=first_layer, step=1, label="Layer", elem_id="align-layer"
        )
        models = model_choices(gradio, session)
    outputs = _output_columns(gradio, several=len(session.models) > 1)

    @sentence_errors
    def draw(
        one: str, two: str, first: str, second: str, rule: Aligner, depth: int, *names: str
    ) -> list[Any]:
        sides = find_words(one, first), find_words(two, second)
        found: list[Any] = []
        for model in chosen_models(session, *names):
            if model is None:
                found += ["", ""]
            else:
                found += draw_pair(
                    model, sides, aligner=rule, layer=int(depth), languages=(first, second)
                )
        return found

    inputs = [*texts, *codes, aligner, layer, *models]
    for event in (ask.click, texts[0].submit, texts[1].submit):
        event(draw, inputs, outputs)
    # settings draw again what is there; before the first pair there is nothing to draw
    for event in (aligner.input, layer.release, *(model.input for model in models)):
        event(lambda *given: draw(*given) if all(given[:2]) else [""] * 4, inputs, outputs)
    if session.pairs:
        filled = [*texts, *codes]
        other.click(lambda name: random_pair(session, name), pairs, filled).then(
            draw, inputs, outputs
        )


def _sentence_rows(gradio: Any) -> tuple[list[Any], list[Any]]:
    texts, codes = [], []
    with gradio.Row():
        for place in ("First", "Second"):
            with gradio.Column(min_width=300):
                texts.append(
                    gradio.Textbox(
                        label=f"{place} sentence", lines=2, elem_id=f"align-{place.lower()}"
                    )
                )
                codes.append(
                    gradio.Textbox(
                        label="Its language (may be left out)",
                        placeholder="sw, zh, ...",
                        max_lines=1,
                        max_length=32,
                    )
                )
    return texts, codes


def _buttons(gradio: Any, session: ExploreSession) -> tuple[Any, Any]:
    with gradio.Row():
        other = gradio.Button("Random pair", visible=bool(session.pairs), elem_id="align-random")
        ask = gradio.Button("Align", variant="primary", elem_id="align-ask")
    return other, ask


def _output_columns(gradio: Any, *, several: bool) -> list[Any]:
    """Figures and links of the first model, then of the second."""
    found = []
    with gradio.Row(elem_classes="ig-sides"):
        for number, place in enumerate(("first", "second")):
            with gradio.Column(min_width=300, visible=several or not number):
                found.append(gradio.HTML(elem_id=f"align-figure-{place}"))
                found.append(
                    gradio.Textbox(
                        label="Links, in Pharaoh format",
                        interactive=False,
                        buttons=["copy"],
                        elem_id=f"align-links-{place}",
                    )
                )
    return found

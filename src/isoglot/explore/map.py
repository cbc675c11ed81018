"""The tab *Map*: sentences or words of all languages in two dimensions, layer by layer.

Points have the color of their language; the text of a point is shown beside it (`page.js`), and
translations of each other are joined. Maps that were drawn are kept.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from isoglot.explore.events import sentence_errors
from isoglot.explore.map_points import WORDS, choose_texts, layer_vectors, locate, map_sources
from isoglot.explore.markup import html_text, note
from isoglot.report.colors import wheel
from isoglot.report.figures import fit_square

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from isoglot.evaluation.visualize import Method
    from isoglot.explore.map_points import MapPoints, MapText
    from isoglot.explore.session import ExploreModel, ExploreSession

_SIZE, _MARGIN = 1000, 30
_MAX_TEXT = 200
"""Characters of a text beside its point."""
_MAX_KEPT = 16
"""Maps, and vectors of models, that are kept."""
_MAX_NUMBER = 1000
_NUMBER = 150
_NO_MODEL = "none"
_EMPTY = (
    "Nothing to draw. Start isoglot explore with --pairs en-sw.tsv, --dictionary en-sw.txt, "
    "--text sw=FILE or --corpus FOLDER."
)


def map_svg(
    texts: Sequence[MapText], points: MapPoints, languages: Sequence[str], *, join: bool
) -> str:
    """The map as SVG: a group of circles for each language, a line for each translation."""
    scale, left, top = fit_square(points.places, _SIZE, _MARGIN)
    places = [(left + scale * x, top + scale * y) for x, y in points.places]
    opening = (
        f'<svg class="ig-map" viewBox="0 0 {_SIZE} {_SIZE}" role="img" '
        f'aria-label="{len(texts)} texts in {len(languages)} languages">'
    )
    parts = [opening]
    if join:
        parts.append(f'<path class="ig-joins" d="{_joins(texts, places)}"/>')
    for number, code in enumerate(languages):
        light, dark = wheel(number, len(languages))
        parts.append(f'<g class="ig-points" style="--ig-light:{light};--ig-dark:{dark}">')
        for one, (x, y) in zip(texts, places, strict=True):
            if one.language == code:
                pair = "" if one.pair is None else f' data-pair="{one.pair}"'
                shown = html_text(one.text, _MAX_TEXT)
                parts.append(
                    f'<circle cx="{x:.0f}" cy="{y:.0f}" r="7"{pair} data-language='
                    f'"{html_text(code)}" data-text="{shown}"/>'
                )
        parts.append("</g>")
    return "".join([*parts, "</svg>"])


def _joins(texts: Sequence[MapText], places: Sequence[tuple[float, float]]) -> str:
    """SVG path data of the lines between translations."""
    ends: dict[int, list[tuple[float, float]]] = {}
    for one, place in zip(texts, places, strict=True):
        if one.pair is not None:
            ends.setdefault(one.pair, []).append(place)
    return "".join(
        f"M{a[0]:.0f} {a[1]:.0f}L{b[0]:.0f} {b[1]:.0f}"
        for a, b in (pair for pair in ends.values() if len(pair) == 2)
    )


def legend(languages: Sequence[str]) -> str:
    """The colors of the languages, as HTML."""
    dots = []
    for number, code in enumerate(languages):
        light, dark = wheel(number, len(languages))
        dots.append(
            f'<span class="ig-key" style="--ig-light:{light};--ig-dark:{dark}">{html_text(code)}'
            "</span>"
        )
    return f'<p class="ig-legend">{"".join(dots)}</p>'


class MapDrawer:
    """Draws maps of a session; vectors and points that were computed are kept."""

    def __init__(self, session: ExploreSession) -> None:
        self.session = session
        self.sources = map_sources(session)
        self._texts: dict[tuple[Any, ...], list[MapText]] = {}
        self._vectors: dict[tuple[Any, ...], Tensor] = {}
        self._points: dict[tuple[Any, ...], MapPoints] = {}

    def draw(
        self,
        model: ExploreModel,
        source: str,
        languages: Sequence[str],
        *,
        number: int,
        layer: int,
        method: Method = "t-SNE",
        join: bool = True,
    ) -> str:
        """The map of one model and layer, as HTML."""
        layer = min(layer, model.num_layers)
        are_words = source == WORDS
        key = (source, tuple(languages), number)
        texts = _kept(
            self._texts, key, lambda: choose_texts(self.session, source, languages, number)
        )
        vectors = _kept(
            self._vectors,
            (model.name, *key),
            lambda: layer_vectors(model, texts, are_words=are_words),
        )
        points = _kept(
            self._points,
            (model.name, *key, layer, method),
            lambda: locate(texts, vectors[layer], layer, are_words=are_words, method=method),
        )
        codes = sorted({one.language for one in texts})
        where = f"layer {layer} of {model.num_layers}"
        if layer == 0:
            where = "the embedding table" if are_words else "the embeddings (layer 0)"
        said = f"{len(texts):,} {'words' if are_words else 'sentences'}, {where}; {points.method}."
        if points.accuracy is not None:
            said += f" Nearest of the other language is the translation: {points.accuracy:.0%}."
        title = f"<h3>{html_text(model.name)}</h3>"
        return title + legend(codes) + map_svg(texts, points, codes, join=join) + note(said)


def _kept(kept: dict[tuple[Any, ...], Any], key: tuple[Any, ...], compute: Any) -> Any:
    """The value of a key, computed if it is not there; the oldest value goes if there are many."""
    if key not in kept:
        found = compute()
        if len(kept) >= _MAX_KEPT:
            kept.pop(next(iter(kept)))
        kept[key] = found
    return kept[key]


def build_tab(session: ExploreSession) -> None:
    """Create the components inside the open tab."""
    import gradio

    drawer = MapDrawer(session)
    if not drawer.sources:
        gradio.HTML(note(_EMPTY))
        return
    source, languages, layer, *rest, start = _settings(gradio, drawer)
    with gradio.Row(elem_classes="ig-sides"):
        sides = [gradio.HTML(elem_id=f"map-{place}") for place in ("first", "second")]

    @sentence_errors
    def draw(
        name: str,
        codes: list[str],
        at: int,
        number: int,
        method: Method,
        join: bool,  # noqa: FBT001 (the value of a checkbox)
        first: str,
        second: str,
    ) -> list[str]:
        return [
            ""
            if model == _NO_MODEL
            else drawer.draw(
                session.model(model),
                name,
                codes,
                number=int(number),
                layer=int(at),
                method=method,
                join=join,
            )
            for model in (first, second)
        ]

    def show_languages(name: str) -> Any:
        codes = list(drawer.sources[name])
        return gradio.CheckboxGroup(codes, value=codes)

    def show_layers(first: str, second: str) -> Any:
        shown = [session.model(name).num_layers for name in (first, second) if name != _NO_MODEL]
        return gradio.Slider(maximum=max(shown))

    inputs = [source, languages, layer, *rest]
    start.click(show_layers, rest[-2:], layer).then(draw, inputs, sides)
    layer.change(draw, inputs, sides, trigger_mode="always_last")
    source.change(show_languages, source, languages)


def _settings(gradio: Any, drawer: MapDrawer) -> list[Any]:
    """Source, languages, layer, number, method, joins, two models, the button."""
    names = [model.name for model in drawer.session.models]
    several, sources = len(names) > 1, list(drawer.sources)
    codes = list(drawer.sources[sources[0]])
    with gradio.Row():
        source = gradio.Dropdown(
            sources, value=sources[0], label="Draw", visible=len(sources) > 1, min_width=140
        )
        languages = gradio.CheckboxGroup(codes, value=codes, label="Languages")
        one = gradio.Dropdown(names, value=names[0], label="Model", visible=several, min_width=140)
        beside = names[1] if several else _NO_MODEL
        two = gradio.Dropdown(
            [_NO_MODEL, *names], value=beside, label="Beside it", visible=several, min_width=140
        )
    with gradio.Row():
        number = gradio.Slider(
            10, _MAX_NUMBER, value=_NUMBER, step=10, label="Texts of each language, or pairs"
        )
        methods = ["t-SNE", *(["UMAP"] if find_spec("umap") else [])]
        method = gradio.Radio(methods, value="t-SNE", label="Method", visible=len(methods) > 1)
        join = gradio.Checkbox(value=True, label="Join translations", min_width=140)
        start = gradio.Button("Draw", variant="primary", elem_id="map-draw", min_width=140)
    highest = drawer.session.models[0].num_layers
    layer = gradio.Slider(
        0, highest, value=highest, step=1, label="Layer (0: embeddings)", elem_id="map-layer"
    )
    return [source, languages, layer, number, method, join, one, two, start]

"""Retrieval as papers print it: one layer and one direction of the scores that are computed.

XTREME (Hu et al. 2020; `run_tatoeba.sh`) reads layer 8 of 12 and layer 14 of 24, and searches the
English translation of each sentence. ERNIE-M (section 4.2) reads the middle layer of the model that
was fine-tuned on XNLI. MetaXLM (Figure 3) has all layers and the mean of both directions, which is
what the report's figure of layers shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot.errors import IsoglotError
from isoglot.languages import canonical, is_language

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from isoglot.results import Score

BOTH = "both"
_XTREME_LAYERS = {12: 8, 24: 14}
_LAYERS: dict[str, Callable[[int], int | None]] = {
    "xtreme": _XTREME_LAYERS.get,
    "ernie-m-base": lambda num_layers: num_layers // 2,
    "ernie-m-large": lambda num_layers: num_layers // 2,
}
"""Protocol -> the layer that its paper reads, of a model with so many layers."""
_PAPER_DIRECTION = "to-en"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalView:
    """A layer and a direction of retrieval."""

    layer: int | None = None
    """None: the exported vectors."""
    direction: str = BOTH
    """`both`, or `to-CODE` and `from-CODE`: the language that is searched, or searched with."""
    paper: str = ""

    def __post_init__(self) -> None:
        way, _, code = self.direction.partition("-")
        if self.direction != BOTH and (way not in ("to", "from") or not is_language(code)):
            raise IsoglotError(
                f"--direction {self.direction}: give both, or one side, such as to-en or from-en."
            )

    @property
    def name(self) -> str:
        """The heading of its column: `xtreme: layer 8, to en`."""
        where = "exported" if self.layer is None else f"layer {self.layer}"
        way = self.direction.replace("-", " ", 1)
        return f"{f'{self.paper}: ' if self.paper else ''}{where}, {way}"

    def metric(self, metric: str, language: str) -> str | None:
        """The name of a metric in this direction; none for a pair without the language."""
        if self.direction == BOTH:
            return metric
        way, _, named = self.direction.partition("-")
        code, codes = canonical(named), language.split("-")
        if code not in codes or len(codes) != 2:
            return None
        other = codes[codes.index(code) - 1]
        return f"{metric} {other}→{code}" if way == "to" else f"{metric} {code}→{other}"

    def values(self, scores: Iterable[Score], metric: str) -> dict[str, Score]:
        """Language -> its score in this view."""
        return {
            score.language: score
            for score in scores
            if score.layer == self.layer and score.metric == self.metric(metric, score.language)
        }


def retrieval_view(
    protocol: str, num_layers: int, *, layer: int | None = None, direction: str | None = None
) -> RetrievalView | None:
    """The view of `--layer` and `--direction`, or of a protocol's paper; none if it has none."""
    if layer is not None and not 0 <= layer <= num_layers:
        raise IsoglotError(f"--layer {layer}: the model has layers 0 to {num_layers}.")
    if layer is not None or direction is not None:
        return RetrievalView(layer=layer, direction=direction or BOTH)
    of_paper = _LAYERS.get(protocol, lambda _: None)(num_layers)
    if of_paper is None:
        return None
    return RetrievalView(layer=of_paper, direction=_PAPER_DIRECTION, paper=protocol)

"""The tab *Masks*: blanks in several languages, filled alone and with a translation beside them.

`blanks` builds what the model reads; this module shows candidates, and what TLM's and CAMLM's input
change.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from isoglot.errors import IsoglotError
from isoglot.explore.blanks import (
    ALONE,
    BARS,
    BLANK,
    TRANSLATION_ALONE,
    WITH_TRANSLATION,
    BlankFiller,
    parse_clozes,
)
from isoglot.explore.components import chosen_models, model_choices, pairs_choice, random_pair
from isoglot.explore.events import sentence_errors
from isoglot.explore.markup import html_text, note, sentence
from isoglot.explore.word_links import find_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.explore.blanks import Candidate, Cloze, Filled
    from isoglot.explore.session import ExploreModel, ExploreSession

_MAX_LINES = 20
_HEADINGS = {
    ALONE: ("alone", "The sentence by itself (MLM's input)."),
    WITH_TRANSLATION: ("with translation", "Both sentences in one sequence (TLM's input)."),
    TRANSLATION_ALONE: (
        "translation alone",
        "The translation and a slot; no other word of the sentence is visible (CAMLM's input).",
    ),
}
_ABOUT = (
    f"Write {BLANK} in the place of a token, one sentence a line. A language before a colon and a "
    f"translation after {BARS} may be added: sw: Paka {BLANK} maziwa. {BARS} en: The cat drinks "
    "milk. Two more columns then show what the translation changes; bold candidates are not among "
    "those of the sentence alone. A candidate that begins with … continues the word before it."
)


class MaskFilling:
    """Fills blanks with the models of a session."""

    def __init__(self, session: ExploreSession) -> None:
        self.session = session
        self._fillers: dict[str, BlankFiller] = {}

    def answer(self, model: ExploreModel, text: str, number: int) -> str:
        """What one model fills the blanks of some lines with, as HTML."""
        if model.name not in self._fillers:
            self._fillers[model.name] = BlankFiller(model)
        filler = self._fillers[model.name]
        clozes = parse_clozes(text, filler.mask_tokens)
        if len(clozes) > _MAX_LINES:
            raise IsoglotError(f"There are {len(clozes)} sentences; fill at most {_MAX_LINES}.")
        parts = [f"<h3>{html_text(model.name)}</h3>"]
        filled = (filler.fill(cloze, num_candidates=number) for cloze in clozes)
        parts += [cloze_html(*both) for both in zip(clozes, filled, strict=True)]
        if any(cloze.translation is not None for cloze in clozes):
            parts += [note(one) for one in (filler.layouts.source, filler.layouts.untrained) if one]
        return "".join(parts)

    def example(self, name: str) -> str:
        """A random pair of a file of pairs as a line, with a blank for a word of the first."""
        first, second, one, other = random_pair(self.session, name)
        words = find_words(first, one).words
        chosen = max(words, key=len) if len(words) < 3 else random.choice(words)  # noqa: S311
        hidden = first.replace(chosen, BLANK, 1)
        return f"{one}: {hidden} {BARS} {other}: {second}"


def cloze_html(cloze: Cloze, filled: Filled) -> str:
    """The candidates of each blank of a sentence, one column for each way."""
    lines = [sentence(cloze.sentence.text)]
    if cloze.translation is not None:
        lines.append(sentence(cloze.translation.text))
    parts = [f'<div class="ig-cloze">{"".join(lines)}</div>']
    blanks = len(next(iter(filled.by_way.values())))
    for number in range(blanks):
        by_way = {way: found[number] for way, found in filled.by_way.items()}
        parts.append(_blank_html(by_way, f"blank {number + 1} of {blanks}" if blanks > 1 else ""))
    return "".join([*parts, *map(note, filled.notes)])


def _blank_html(by_way: dict[str, list[Candidate]], title: str) -> str:
    known = {one.text for one in by_way.get(ALONE, ())}
    columns = "".join(
        f'<div class="ig-way"><h4 title="{html_text(_HEADINGS[way][1])}">'
        f"{html_text(_HEADINGS[way][0])}</h4>{_candidates_html(candidates, known)}</div>"
        for way, candidates in by_way.items()
    )
    heading = f'<p class="ig-note">{html_text(title)}</p>' if title else ""
    return f'{heading}<div class="ig-ways">{columns}</div>'


def _candidates_html(candidates: Sequence[Candidate], known: set[str]) -> str:
    """Candidates with their probabilities; those that the sentence alone does not have are bold."""
    rows = "".join(
        f"<li class='ig-{_novelty(one, known)}'>"
        f'<span class="ig-fill" style="width:{100 * one.probability:.1f}%"></span>'
        f'<bdi dir="auto">{html_text(one.text, 60)}</bdi>'
        f'<span class="ig-percent">{100 * one.probability:.1f} %</span></li>'
        for one in candidates
    )
    return f'<ol class="ig-candidates">{rows}</ol>'


def _novelty(candidate: Candidate, known: set[str]) -> str:
    return "old" if candidate.text in known else "new"


def build_tab(session: ExploreSession) -> None:
    """Create the components inside the open tab."""
    import gradio

    filling = MaskFilling(session)
    gradio.HTML(note(_ABOUT))
    lines = gradio.Textbox(
        label="Sentences with blanks", lines=4, max_lines=_MAX_LINES, elem_id="masks-lines"
    )
    with gradio.Row():
        other = gradio.Button("Random pair", visible=bool(session.pairs), elem_id="masks-random")
        ask = gradio.Button("Fill the blanks", variant="primary", elem_id="masks-ask")
    with gradio.Row():
        pairs = pairs_choice(gradio, session)
        number = gradio.Slider(1, 20, value=5, step=1, label="Candidates")
        models = model_choices(gradio, session)
    with gradio.Row(elem_classes="ig-sides"):
        sides = []
        for place in ("first", "second")[: len(session.models)]:
            with gradio.Column(min_width=300):
                sides.append(gradio.HTML(elem_id=f"masks-{place}"))

    @sentence_errors
    def fill(text: str, most: int, *chosen: str) -> list[str]:
        return [
            "" if model is None else filling.answer(model, text, int(most))
            for model in chosen_models(session, *chosen[: len(sides)])
        ]

    inputs = [lines, number, *models]
    ask.click(fill, inputs, sides)
    if session.pairs:
        other.click(filling.example, pairs, lines).then(fill, inputs, sides)

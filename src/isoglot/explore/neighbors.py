"""The tab *Neighbors*: the nearest sentences to one that is typed, by one or two models.

Sentence vectors are those that users of a model folder get (`evaluation.exported`); the score is
their cosine. A sentence that the files of pairs have is marked where its translation is found.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import IsoglotError
from isoglot.explore.events import sentence_errors
from isoglot.explore.markup import html_text, note, sentence, table
from isoglot.explore.sentences import collections_of, translations
from isoglot.explore.vector_index import Neighbor, VectorIndex
from isoglot.models import language_embeddings

if TYPE_CHECKING:
    from collections.abc import Collection as AnyCollection
    from collections.abc import Mapping, Sequence

    from isoglot.explore.session import ExploreModel, ExploreSession, Progress

_TOGETHER, _BY_LANGUAGE = "all languages together", "each language by itself"
_NO_LANGUAGE = "not named"
_NO_MODEL = "none"
_SHOWN = 10
_EMPTY = (
    "Nothing to search in. Start isoglot explore with --pairs en-sw.tsv, --text sw=FILE or "
    "--corpus FOLDER."
)


def merge(found: Mapping[str, Sequence[Neighbor]], number: int) -> list[Neighbor]:
    """The nearest of all languages, the nearest first."""
    together = [one for of_language in found.values() for one in of_language]
    return sorted(together, key=lambda one: -one.cosine)[:number]


def neighbors_table(
    neighbors: Sequence[Neighbor], marked: AnyCollection[str], *, label: str
) -> str:
    """Neighbors as HTML; translations of the sentence are marked."""
    rows = []
    for one in neighbors:
        width = max(0.0, min(1.0, one.cosine)) * 100
        bar = f'<span class="ig-bar" style="width:{width:.0f}%"></span>'
        score = f'<span class="ig-score">{one.cosine:.3f}{bar}</span>'
        mark = ' <span class="ig-mark">translation</span>' if one.text in marked else ""
        code = f'<span class="ig-code">{html_text(one.language)}</span>'
        rows.append((score, code, f"{sentence(one.text)}{mark}"))
    return table(("cosine", "", "sentence"), rows, label=label)


def needs_language(model: ExploreModel) -> bool:
    """Whether the vectors of a model depend on the language that a sentence is said to have."""
    has_rows = bool(language_embeddings.languages_of(model.folder))
    return has_rows or bool(Pretokenizer.load(model.folder).methods)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked for."""

    text: str
    collection: str
    """Name of the sentences that are searched."""
    languages: tuple[str, ...]
    together: bool = True
    """One list of all languages; else a list for each."""
    number: int = 10
    """Length of a list."""
    language: str | None = None
    """Language of the text, for models that need it."""


class NeighborSearch:
    """Answers questions about the sentences of a session."""

    def __init__(self, session: ExploreSession) -> None:
        self.session = session
        self.collections = collections_of(session)
        self.index = VectorIndex(session.vectors_folder)

    @cached_property
    def translations(self) -> dict[str, list[str]]:
        """Sentence of the files of pairs -> its translations."""
        return translations(self.session)

    def answer(self, model: ExploreModel, question: Question, progress: Progress) -> str:
        """What one model finds, as HTML."""
        text = question.text.strip()
        if not text:
            raise IsoglotError("Type a sentence first.")
        if not question.languages:
            raise IsoglotError("Choose at least one language.")
        found = self.index.nearest(
            model,
            self.collections[question.collection],
            question.languages,
            text,
            k=question.number,
            query_language=question.language,
            progress=progress,
        )
        marked = self.translations.get(text, ())
        title = f"<h3>{html_text(model.name)}</h3>"
        if question.together:
            lists = {model.name: merge(found, question.number)}
        else:
            lists = {f"{model.name}, {code}": own for code, own in found.items()}
        return title + "".join(
            neighbors_table(own, marked, label=label) for label, own in lists.items()
        )

    def random_sentence(self, collection: str, languages: Sequence[str]) -> str:
        """One of the sentences that are searched."""
        texts = self.collections[collection].sentences
        found = [text for code in languages for text in texts[code]]
        return random.choice(found) if found else ""  # noqa: S311


def build_tab(session: ExploreSession) -> None:
    """Create the components inside the open tab."""
    import gradio

    search = NeighborSearch(session)
    if not search.collections:
        gradio.HTML(note(_EMPTY))
        return
    query, ask, other = _query_row(gradio)
    chosen, languages, *rest = _settings(gradio, search)
    with gradio.Row(elem_classes="ig-sides"):
        sides = [gradio.HTML(elem_id=f"neighbors-{place}") for place in ("first", "second")]

    @sentence_errors
    def answer(
        text: str,
        collection: str,
        codes: list[str],
        order: str,
        number: int,
        spoken: str,
        first: str,
        second: str,
        bar: Any = gradio.Progress(),  # noqa: B008 (Gradio finds it there)
    ) -> list[str]:
        question = Question(
            text=text,
            collection=collection,
            languages=tuple(codes),
            together=order == _TOGETHER,
            number=int(number),
            language=None if spoken == _NO_LANGUAGE else spoken,
        )
        with session.progress() as terminal:

            def progress(stage: str, done: int, total: int | None) -> None:
                terminal(stage, done, total)
                bar((done, total), desc=stage, unit="sentences")

            return [
                "" if name == _NO_MODEL else search.answer(session.model(name), question, progress)
                for name in (first, second)
            ]

    def show_languages(name: str) -> Any:
        codes = list(search.collections[name].languages)
        return gradio.CheckboxGroup(codes, value=codes)

    inputs = [query, chosen, languages, *rest]
    for event in (ask.click, query.submit):
        event(answer, inputs, sides)
    other.click(search.random_sentence, [chosen, languages], query).then(answer, inputs, sides)
    chosen.change(show_languages, chosen, languages)


def _query_row(gradio: Any) -> tuple[Any, Any, Any]:
    """The sentence, and the buttons beside it."""
    with gradio.Row(equal_height=True):
        query = gradio.Textbox(
            label="Sentence",
            placeholder="A sentence in any language",
            lines=2,
            scale=4,
            min_width=300,
            elem_id="neighbors-query",
        )
        with gradio.Column(scale=1, min_width=160):
            ask = gradio.Button("Search", variant="primary", elem_id="neighbors-ask")
            other = gradio.Button("Random sentence", elem_id="neighbors-random")
    return query, ask, other


def _settings(gradio: Any, search: NeighborSearch) -> list[Any]:
    """Collection, languages, order, number, language of the sentence, two models."""
    models = search.session.models
    names, several = [model.name for model in models], len(models) > 1
    collections = search.collections
    first = next(iter(collections.values()))
    codes = sorted({code for one in collections.values() for code in one.languages})
    with gradio.Row():
        chosen = gradio.Dropdown(
            list(collections), value=first.name, label="Search in", visible=len(collections) > 1
        )
        languages = gradio.CheckboxGroup(
            list(first.languages), value=list(first.languages), label="Languages"
        )
    with gradio.Row():
        one = gradio.Dropdown(names, value=names[0], label="Model", visible=several)
        beside = names[1] if several else _NO_MODEL
        two = gradio.Dropdown([_NO_MODEL, *names], value=beside, label="Beside it", visible=several)
        spoken = gradio.Dropdown(
            [_NO_LANGUAGE, *codes],
            value=_NO_LANGUAGE,
            label="Language of the sentence",
            visible=any(map(needs_language, models)),
        )
        order = gradio.Radio([_TOGETHER, _BY_LANGUAGE], value=_TOGETHER, label="List")
        number = gradio.Slider(1, 50, value=_SHOWN, step=1, label="Sentences shown")
    return [chosen, languages, order, number, spoken, one, two]

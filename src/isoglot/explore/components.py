"""Components that several tabs have: the choice of models and of a pair of sentences."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoglot.explore.session import ExploreModel, ExploreSession

NO_MODEL = "none"
"""Stands for a model that is not shown."""


def model_choices(gradio: Any, session: ExploreSession) -> list[Any]:
    """The choice of a model and of one beside it; hidden if the session has one model."""
    names = [model.name for model in session.models]
    several = len(names) > 1
    beside = names[1] if several else NO_MODEL
    return [
        gradio.Dropdown(names, value=names[0], label="Model", visible=several),
        gradio.Dropdown([NO_MODEL, *names], value=beside, label="Beside it", visible=several),
    ]


def pairs_choice(gradio: Any, session: ExploreSession) -> Any:
    """The choice of a file of pairs; hidden if there are not several."""
    names = list(session.pairs)
    return gradio.Dropdown(
        names, value=names[0] if names else None, label="Pairs", visible=len(names) > 1
    )


def chosen_models(session: ExploreSession, *names: str) -> list[ExploreModel | None]:
    """The models of names on the page; none for `NO_MODEL`."""
    return [None if name == NO_MODEL else session.model(name) for name in names]


def random_pair(session: ExploreSession, name: str) -> tuple[str, str, str, str]:
    """A pair of a file of pairs: both sentences, then both languages."""
    first, second = session.pairs[name]
    place = random.randrange(len(first))  # noqa: S311
    one, other = name.split("-")
    return first[place], second[place], one, other

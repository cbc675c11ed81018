"""PPA's code-switching: a translated pair is trained on with one half in the original language.

A Spanish question and context become (question_es, context_en) and (question_en, context_es); the
two stand in the same batch, and the purely Spanish pair is not used. The label is the pair's; an
answer is that of the context's language. Rows are joined by their id, which a translated task keeps
from the original. PPA (Pan et al., 2021), section 2.3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isoglot.errors import CorpusError
from isoglot.tasks.examples import Classified, Question

if TYPE_CHECKING:
    from collections.abc import Sequence

Switched = tuple[Any, Any]
"""The two mixed examples of one translated pair."""


def switched(
    translated: Sequence[Any], originals: Sequence[Any], *, language: str, original_language: str
) -> list[Switched]:
    """The two mixed examples of every translated one: translation first, then original first.

    Raises:
        CorpusError: a row has no original, or the examples are no pairs.
    """
    by_id = {example.id: example for example in originals}
    missing = [example.id for example in translated if example.id not in by_id]
    if missing:
        raise CorpusError(
            f"code-switching joins rows by id: {len(missing)} of {len(translated)} training rows "
            f"of {language!r} (the first is {missing[0]!r}) have no original in "
            f"{original_language!r}. Train with --no-code-switch, or on a translated task."
        )
    return [_mixed(example, by_id[example.id]) for example in translated]


def _mixed(translation: Any, original: Any) -> Switched:
    if isinstance(translation, Question):
        return (
            replace(original, question=translation.question),
            replace(translation, question=original.question),
        )
    if isinstance(translation, Classified) and translation.second is not None:
        return (
            replace(translation, second=original.second),
            replace(translation, first=original.first),
        )
    raise CorpusError(
        "code-switching needs examples of two texts: questions on contexts, or two sentences. "
        "Train this task with --no-code-switch."
    )

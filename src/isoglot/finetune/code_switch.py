"""PPA's code-switching: a translated pair is trained on with one half in the original language.

A Spanish question and context become (question_es, context_en) and (question_en, context_es); the
two stand in the same batch, and the purely Spanish pair is not used. The label is the pair's; an
answer is that of the context's language. PPA (Pan et al., 2021), section 2.3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isoglot.errors import CorpusError
from isoglot.finetune.originals import with_originals
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
    pairs = with_originals(
        translated, originals, language=language, original_language=original_language
    )
    return [_mixed(translation, original) for translation, original in pairs]


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

"""What happens when a user clicks: errors of users become one sentence on the page."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError
from isoglot.explore.markup import html_text

if TYPE_CHECKING:
    from collections.abc import Callable


def sentence_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of an event that shows an `IsoglotError` on the page; no traceback is printed."""

    @wraps(function)
    def guarded(*arguments: Any) -> Any:
        import gradio

        try:
            return function(*arguments)
        except IsoglotError as error:
            # Gradio shows the message as HTML
            raise gradio.Error(
                html_text(error, 2000), duration=None, title="", print_exception=False
            ) from error

    return guarded

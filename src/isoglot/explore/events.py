"""What happens when a user opens the page or clicks.

Errors of users become one sentence on the page. An address with `?tab=errors&...` opens a tab.
"""

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


def on_page_load(function: Callable[..., Any], outputs: Any, *inputs: Any) -> None:
    """Call a function when the page is opened; call this while the page is built.

    Args:
        function: takes the parameters of the page's address, then the values of `inputs`.
        outputs: the components that get what it returns.
        inputs: components.
    """
    from gradio.context import Context

    assert Context.root_block is not None, "a page is being built"
    Context.root_block.load(_with_address(function), list(inputs), outputs)


def on_tab_open(function: Callable[..., Any], outputs: Any, *inputs: Any) -> None:
    """As `on_page_load`, when the tab that is being built is opened."""
    from gradio.context import Context

    assert Context.block is not None, "a tab is being built"
    Context.block.select(_with_address(function), list(inputs), outputs)


def _with_address(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of an event that calls another with the parameters of the page's address first."""
    import gradio

    @sentence_errors
    def event(request: Any, *values: Any) -> Any:
        return function(dict(request.query_params), *values)

    # Gradio finds the request by its type, which a postponed annotation does not give
    event.__annotations__["request"] = gradio.Request
    return event

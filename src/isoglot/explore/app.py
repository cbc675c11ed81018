"""The page: one tab for each entry of `TABS`.

A tab is a module with `build_tab(session)`, which creates Gradio components inside the tab that is
open and connects their events. To add one, write the module and one line in `TABS`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError
from isoglot.explore import batches, neighbours
from isoglot.explore import map as map_tab

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.explore.session import ExploreSession

TABS: tuple[tuple[str, Callable[[ExploreSession], None]], ...] = (
    ("Neighbours", neighbours.build_tab),
    ("Map", map_tab.build_tab),
    ("Batches", batches.build_tab),
)
"""Title and function of each tab, in the order of the page."""
_ONE_AT_A_TIME = "isoglot"


def import_gradio() -> Any:
    """The module, without telemetry, or an error that says how to install it."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    # Gradio would also make a summary of all events after each event, for a page that is off
    os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = str(10**12)
    try:
        import gradio
    except ImportError as error:
        raise IsoglotError(
            "isoglot explore needs Gradio: pip install 'isoglot[explore]'"
        ) from error
    return gradio


def build_app(session: ExploreSession) -> Any:
    """The page of a session, as a `gradio.Blocks`."""
    gradio = import_gradio()
    app = gradio.Blocks(title="Isoglot explore", analytics_enabled=False, fill_width=True)
    with app, gradio.Tabs():
        for title, build_tab in TABS:
            with gradio.Tab(title, id=title.lower()):
                build_tab(session)
    for event in app.fns.values():
        # an encoder runs for one event at a time; events of one group wait for each other
        event.concurrency_id = _ONE_AT_A_TIME
    return app

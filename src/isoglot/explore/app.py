"""The page: one tab for each entry of `TABS`.

A tab is a module with `build_tab(session)`, which creates Gradio components inside the tab that is
open and connects their events. To add one, write the module and one line in `TABS`. The address
`?tab=errors` opens the page at that tab.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError
from isoglot.explore import alignment, batches, errors, masks, neighbors
from isoglot.explore import map as map_tab
from isoglot.explore.events import on_page_load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isoglot.explore.session import ExploreSession

TABS: tuple[tuple[str, Callable[[ExploreSession], None]], ...] = (
    ("Neighbors", neighbors.build_tab),
    ("Alignment", alignment.build_tab),
    ("Masks", masks.build_tab),
    ("Map", map_tab.build_tab),
    ("Errors", errors.build_tab),
    ("Batches", batches.build_tab),
)
"""Title and function of each tab, in the order of the page."""
_ONE_AT_A_TIME = "isoglot"


def require_gradio() -> None:
    """Raise an error that says how to install Gradio, unless it is installed; imports nothing."""
    if find_spec("gradio") is None:
        raise IsoglotError("isoglot explore needs Gradio: pip install 'isoglot[explore]'")


def import_gradio() -> Any:
    """The module, without telemetry."""
    require_gradio()
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    # Gradio would also make a summary of all events after each event, for a page that is off
    os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = str(10**12)
    import gradio

    return gradio


def build_app(session: ExploreSession) -> Any:
    """The page of a session, as a `gradio.Blocks`."""
    gradio = import_gradio()
    app = gradio.Blocks(title="Isoglot explore", analytics_enabled=False, fill_width=True)
    with app:
        with gradio.Tabs() as tabs:
            for title, build_tab in TABS:
                with gradio.Tab(title, id=title.lower()):
                    build_tab(session)
        titles = [title.lower() for title, _ in TABS]

        def open_tab(query: Mapping[str, str]) -> Any:
            tab = query.get("tab", "").lower()
            return gradio.Tabs(selected=tab) if tab in titles else gradio.skip()

        on_page_load(open_tab, tabs)
    for event in app.fns.values():
        # an encoder runs for one event at a time; events of one group wait for each other
        event.concurrency_id = _ONE_AT_A_TIME
    return app

"""The tab *Errors*: examples that a model gets wrong, what it chose instead, and by how much.

A link opens the page at an example: `?tab=errors&task=retrieval&language=en-sw&item=17`. `task`,
`language` and `item` (the example's index in the test set, from 0) may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from isoglot.explore.events import on_page_load, on_tab_open, sentence_errors
from isoglot.explore.markup import html_text, note, sentence, table
from isoglot.explore.mistake_files import sources_of
from isoglot.explore.mistakes import ORDERS, find_test_set, sort_mistakes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.explore.mistakes import Mistake, Source, TestSet
    from isoglot.explore.session import ExploreSession

PAGE = 50
"""Mistakes on a page."""
_ALL = "all"
_TAB = "errors"
_MAX_ANSWERS = 5
_EMPTY = (
    "Nothing to look at. Start isoglot explore with --pairs en-sw.tsv, or with --results and a "
    "file of isoglot evaluate (--out or --save-predictions)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the tab shows: one page of the mistakes of a test set."""

    source: str
    task: str
    language: str
    direction: str = ""
    """A direction or language of the test set's mistakes; empty: all."""
    order: str = ORDERS[0]
    page: int = 0
    item: int | None = None
    """The example that a link names."""


class ErrorBrowser:
    """The mistakes of a session."""

    def __init__(self, session: ExploreSession) -> None:
        self.sources: dict[str, Source] = {}
        for source in sources_of(session):
            # a model and a file may have one name
            name = source.name if source.name not in self.sources else f"{source.name} (file)"
            self.sources[name] = source

    def first_view(self) -> View | None:
        """What is shown first; none if there is nothing."""
        for name, source in self.sources.items():
            if source.names:
                return View(source=name, task=source.names[0][0], language=source.names[0][1])
        return None

    def linked_view(self, query: Mapping[str, str]) -> View | None:
        """What a link names; none if it names no test set of this page."""
        named = {name: str(query.get(name) or "") for name in ("task", "language", "item")}
        found = find_test_set(list(self.sources.values()), named["task"], named["language"])
        if found is None:
            return None
        source = next(name for name, one in self.sources.items() if one is found[0])
        item = int(named["item"]) if named["item"].isdecimal() and len(named["item"]) < 12 else None
        return View(source=source, task=found[1][0], language=found[1][1], item=item)

    def tasks(self, source: str) -> list[str]:
        """The tasks of a source."""
        return list(dict.fromkeys(task for task, _ in self.sources[source].names))

    def languages(self, source: str, task: str) -> list[str]:
        """The languages of a task of a source."""
        return [code for name, code in self.sources[source].names if name == task]

    def test_set(self, view: View) -> TestSet:
        """The test set of a view."""
        return self.sources[view.source].test_set((view.task, view.language))

    def directions(self, view: View) -> list[str]:
        """The directions of a test set's mistakes, if there is more than one."""
        found = list(dict.fromkeys(one.language for one in self.test_set(view).mistakes))
        return found if len(found) > 1 else []

    def html(self, view: View) -> tuple[View, str]:
        """A page of mistakes, and the view with the number of that page, which may be the last.

        The example that a link names stands before them.
        """
        test_set = self.test_set(view)
        mistakes = sort_mistakes(test_set, direction=view.direction, order=view.order)
        last = max(0, (len(mistakes) - 1) // PAGE)
        view = replace(view, page=min(max(0, view.page), last))
        shown = mistakes[view.page * PAGE : (view.page + 1) * PAGE]
        parts = []
        if view.item is not None:
            linked = [one for one in test_set.mistakes if one.item == view.item]
            parts.append(_mistakes_table(linked, "linked") if linked else note(_missing(view)))
        parts.append(f'<p class="ig-count">{html_text(_count(test_set, mistakes, view.page))}</p>')
        if shown:
            parts.append(_mistakes_table(shown, "mistakes"))
        if test_set.note:
            parts.append(note(test_set.note))
        return view, "".join(parts)


def _count(test_set: TestSet, mistakes: Sequence[Mistake], page: int) -> str:
    if not mistakes:
        return f"No mistakes in {test_set.count:,} examples."
    share = 100 * len(test_set.mistakes) / max(1, test_set.count)
    said = f"{len(test_set.mistakes):,} of {test_set.count:,} examples are wrong ({share:.1f} %)"
    start, end = page * PAGE + 1, min((page + 1) * PAGE, len(mistakes))
    return f"{said}; {start:,} to {end:,} of {len(mistakes):,} shown."


def _missing(view: View) -> str:
    return f"{view.source} has example {view.item} right, or the test set has no such example."


def _mistakes_table(mistakes: Sequence[Mistake], label: str) -> str:
    """Mistakes as a table; columns that no mistake fills are left out."""
    has_chosen = any(one.chosen for one in mistakes)
    has_margin = any(one.margin is not None for one in mistakes)
    headings = ["example", "language", "text", "right"]
    headings += ["chosen"] if has_chosen else []
    headings += ["margin"] if has_margin else []
    rows = []
    for one in mistakes:
        row = [
            f"{one.item:,}",
            html_text(one.language, 40),
            sentence(one.text),
            "".join(sentence(answer) for answer in one.right[:_MAX_ANSWERS]),
        ]
        row += [sentence(one.chosen)] if has_chosen else []
        row += [_margin(one.margin)] if has_margin else []
        rows.append(row)
    return table(headings, rows, label=label, cards=True)


def _margin(margin: float | None) -> str:
    if margin is None:
        return ""
    return f'<span class="ig-score">{round(margin, 3) + 0.0:.3f}</span>'  # no -0.000


def build_tab(session: ExploreSession) -> None:
    """Create the components inside the open tab."""
    import gradio

    browser = ErrorBrowser(session)
    first = browser.first_view()
    if first is None:
        gradio.HTML(note(_EMPTY))
        return
    source, task, language, direction, order = _choices(gradio, browser, first)
    page, item = gradio.State(0), gradio.State(None)
    shown = gradio.HTML(elem_id="errors-list")
    with gradio.Row():
        back = gradio.Button("Previous", elem_id="errors-previous")
        onward = gradio.Button("Next", elem_id="errors-next")
    chosen = [source, task, language, direction, order]
    outputs = [*chosen, page, item, shown]

    @sentence_errors
    def show(view: View) -> list[Any]:
        view, html = browser.html(view)
        directions = browser.directions(view)
        return [
            gradio.Dropdown(value=view.source),
            _dropdown(gradio, browser.tasks(view.source), view.task),
            _dropdown(gradio, browser.languages(view.source, view.task), view.language),
            gradio.Dropdown(
                [_ALL, *directions], value=view.direction or _ALL, visible=bool(directions)
            ),
            view.order,
            view.page,
            view.item,
            html,
        ]

    def turn(step: int) -> Any:
        def turned(name: str, one: str, code: str, way: str, sort: str, at: int) -> list[Any]:
            view = View(
                source=name,
                task=one,
                language=code,
                direction="" if way == _ALL else way,
                order=sort,
                page=at + step if step else 0,
            )
            return list(show(_existing(browser, view)))

        return turned

    for event in (one.input for one in chosen):
        event(turn(0), [*chosen, page], outputs)
    back.click(turn(-1), [*chosen, page], outputs)
    onward.click(turn(1), [*chosen, page], outputs)

    def open_tab(query: Mapping[str, str], html: str) -> Any:
        """Show something when the tab is opened; mistakes are not computed before."""
        if html:
            return gradio.skip()
        is_linked = query.get("tab") == _TAB
        return show((browser.linked_view(query) if is_linked else None) or first)

    on_tab_open(open_tab, outputs, shown)
    on_page_load(
        lambda query: open_tab(query, "") if query.get("tab") == _TAB else gradio.skip(), outputs
    )


def _existing(browser: ErrorBrowser, view: View) -> View:
    """The view with a task and language that its source has, after another was chosen."""
    tasks = browser.tasks(view.source)
    task = view.task if view.task in tasks else tasks[0]
    languages = browser.languages(view.source, task)
    language = view.language if view.language in languages else languages[0]
    changed = replace(view, task=task, language=language)
    if changed.direction not in ("", *browser.directions(changed)):
        changed = replace(changed, direction="")
    return changed


def _choices(gradio: Any, browser: ErrorBrowser, first: View) -> list[Any]:
    """Source, task, language, direction and order."""
    names = [name for name, source in browser.sources.items() if source.names]
    with gradio.Row():
        source = gradio.Dropdown(
            names, value=first.source, label="Errors of", visible=len(names) > 1
        )
        task = _dropdown(gradio, browser.tasks(first.source), first.task, label="Task")
        language = gradio.Dropdown(
            browser.languages(first.source, first.task), value=first.language, label="Language"
        )
        direction = gradio.Dropdown([_ALL], value=_ALL, label="Direction", visible=False)
        order = gradio.Dropdown(list(ORDERS), value=first.order, label="Order")
    return [source, task, language, direction, order]


def _dropdown(gradio: Any, choices: list[str], value: str, **more: Any) -> Any:
    """A choice that is hidden where there is only one."""
    return gradio.Dropdown(choices, value=value, visible=len(choices) > 1, **more)

"""MkDocs hook: marks in a page are replaced.

`<!-- options: pretrain -->` becomes the options of that command, `<!-- page: reproduce/ppa.md -->`
that page of the repository, whose links into docs/ begin at docs/reproduce/. A figure of an
objective (`docs/figures.py`) becomes part of the page, so that it has the page's colors.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_MARK = re.compile(r"<!-- options: ([\w ]+) -->")
_PAGE = re.compile(r"<!-- page: ([\w./-]+) -->")
_FIGURE = re.compile(r"!\[[^\]]*\]\((images/objectives/[\w-]+\.svg)\)")
_ROOT = Path(__file__).parent.parent


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each mark by a table of options or a page, each figure by its SVG."""
    markdown = _FIGURE.sub(lambda mark: _figure(mark.group(1)), markdown)
    markdown = _PAGE.sub(lambda mark: _page(mark.group(1)), markdown)
    return _MARK.sub(lambda mark: _table(mark.group(1).split()), markdown)


def _page(name: str) -> str:
    return (_ROOT / name).read_text(encoding="utf-8").replace("](../docs/", "](../")


def _figure(name: str) -> str:
    svg = (_ROOT / "docs" / name).read_text(encoding="utf-8").strip()
    # on a phone the figure scrolls: its text would be too small
    on_page = 'class="ig-svg" style="min-width:620px;height:auto"'
    svg = svg.replace('class="ig-svg ig-alone"', on_page, 1)
    return f'<div style="overflow-x:auto">{svg}</div>'


def _table(path: list[str]) -> str:
    rows = ["| option | meaning | default |", "| --- | --- | --- |"]
    for parameter in _command(path).params:
        if parameter.name == "help":
            continue
        argument = parameter.param_type_name == "argument"
        names = [parameter.name.upper()] if argument else parameter.opts
        meaning = (parameter.help or "").replace("|", "\\|")
        rows.append(f"| {', '.join(f'`{n}`' for n in names)} | {meaning} | {_default(parameter)} |")
    return "\n".join(rows)


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    value = parameter.default
    if callable(value) or value in (None, False, "", [], ()):
        return ""
    return f"`{value[0] if isinstance(value, list | tuple) else value}`"


def _command(path: list[str]) -> Any:
    import typer

    from isoglot import cli

    cli.load_commands()
    command: Any = typer.main.get_command(cli.app)
    for name in path:
        command = command.commands[name]
    return command

"""MkDocs hook: `<!-- options: pretrain -->` in a page becomes the options of that command."""

from __future__ import annotations

import re
from typing import Any

_MARK = re.compile(r"<!-- options: ([\w ]+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each mark by a table of the command's arguments and options."""
    return _MARK.sub(lambda mark: _table(mark.group(1).split()), markdown)


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

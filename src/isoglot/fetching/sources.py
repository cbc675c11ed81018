"""What was fetched as settings: sources of a prepare file, dumps of `isoglot knowledge extract`.

Both files lie in the output folder and name files relative to it, so that they can be used as they
are or pasted into another file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from isoglot import yaml_text
from isoglot.atomic import write_text
from isoglot.fetching.records import all_records
from isoglot.fetching.resolve import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from isoglot.fetching.records import Record

SOURCES = "sources.yaml"
DUMPS = "dumps.yaml"
_LONGEST_NAME = 40


def prepare_sources(folder: Path, records: Iterable[Record]) -> dict[str, Any]:
    """The sources of a prepare file for records of text and translations."""
    found: dict[str, Any] = {}
    for record in records:
        if record.kind not in {"text", "pairs"} or not record.sides:
            continue
        files = in_order(record.files(folder), record.sides, record.name)
        listed = [path.relative_to(folder).as_posix() for path in files]
        settings: dict[str, Any] = {"kind": record.kind, "format": _format(record, listed)}
        if record.options:
            settings["options"] = dict(record.options)
        if record.split:
            settings["split"] = record.split
        name = _source_name(record)
        same = found.setdefault(name, {**settings, "files": {}})
        if {key: one for key, one in same.items() if key != "files"} != settings:
            name = f"{name}-{len(found)}"
            same = found.setdefault(name, {**settings, "files": {}})
        same["files"].setdefault("-".join(record.sides), []).extend(listed)
    return {"sources": found} if found else {}


def _format(record: Record, files: list[str]) -> str:
    """The format of a source; two files of lines are parallel."""
    lines = record.format in {"", "lines"}
    return "moses" if record.kind == "pairs" and lines and len(files) == 2 else record.format


def _source_name(record: Record) -> str:
    """A name for a source: that of the data without its language."""
    named = record.name.split("://")[-1]
    for language in {"-".join(record.sides), *record.sides}:
        named = re.sub(rf"[:/ ]{re.escape(language)}(?=$|[@/])", "", named)
    return re.sub(r"[^A-Za-z0-9]+", "-", named).strip("-")[-_LONGEST_NAME:].strip("-") or "data"


def dumps(folder: Path, records: Iterable[Record]) -> dict[str, Any]:
    """The settings of `isoglot knowledge extract` for records of dumps."""
    wikipedia: dict[str, list[str]] = {}
    wikidata: list[str] = []
    for record in records:
        if record.kind != "knowledge":
            continue
        files = [path.relative_to(folder).as_posix() for path in record.files(folder)]
        if record.sides:
            wikipedia.setdefault(record.sides[0], []).extend(files)
        else:
            wikidata += files
    found: dict[str, Any] = {"wikipedia": wikipedia} if wikipedia else {}
    return {**found, "wikidata": wikidata} if wikidata else found


def write_settings(folder: Path) -> dict[Path, str]:
    """Write the settings for all that was fetched into a folder; gives files and their texts."""
    records = all_records(folder)
    written = {}
    for file, data in (
        (SOURCES, prepare_sources(folder, records)),
        (DUMPS, dumps(folder, records)),
    ):
        if data:
            text = yaml_text.write(data)
            write_text(folder / file, text)
            written[folder / file] = text
    return written

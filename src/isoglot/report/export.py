"""The figures and tables of a report as files: SVG and PNG, CSV.

    FOLDER/figures/01-xnli-accuracy-by-layer.svg, .png     FOLDER/tables/01-leaderboard.csv

CSV files have all digits, and standard deviation and interval in columns of their own. PNG files
are drawn by Chromium or Chrome, in one run for all figures; without a browser they are left out.
"""

from __future__ import annotations

import base64
import csv
import io
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.atomic import replace_folder, write_bytes, write_text
from isoglot.report.inputs import ReportError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.report.tables import Number, Table

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_BROWSER_SECONDS = 120
_SCALE = 2
"""Pixels of a PNG for each unit of its SVG."""
_MAX_NAME = 60
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of text that spreadsheets would take for a formula."""
_PAGE = """<!doctype html><meta charset="utf-8"><body>{images}<script>
addEventListener("load", () => {{
  for (const image of [...document.images]) {{
    const canvas = document.createElement("canvas");
    canvas.width = {scale} * image.naturalWidth; canvas.height = {scale} * image.naturalHeight;
    const pen = canvas.getContext("2d");
    pen.fillStyle = "white"; pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    const drawn = document.createElement("pre");
    drawn.textContent = canvas.toDataURL("image/png");
    image.replaceWith(drawn);
  }}
}});
</script>"""


def write_export(
    folder: Path, figures: Sequence[tuple[str, str]], tables: Sequence[Table]
) -> tuple[int, int, int]:
    """Write (title, SVG) figures and tables below a folder; gives how many SVG, PNG and CSV files.

    The folders `figures` and `tables` in it are replaced as a whole.
    """
    pictures = draw_png([figure for _, figure in figures])
    with replace_folder(folder / "figures") as new:
        for number, (title, figure) in enumerate(figures, start=1):
            write_text(new / f"{_file_name(number, title)}.svg", figure + "\n")
        for number, picture in enumerate(pictures, start=1):
            write_bytes(new / f"{_file_name(number, figures[number - 1][0])}.png", picture)
    with replace_folder(folder / "tables") as new:
        for number, table in enumerate(tables, start=1):
            write_text(new / f"{_file_name(number, table.title)}.csv", to_csv(table))
    return len(figures), len(pictures), len(tables)


def _file_name(number: int, title: str) -> str:
    """A number, so that names differ, and the words of a title."""
    words = re.sub(r"[^\w]+", "-", title.lower()).strip("-_")
    # a name has at most 255 bytes on most file systems
    return f"{number:02d}-{words[:_MAX_NAME]}".rstrip("-")


def to_csv(table: Table) -> str:
    """A table as CSV: all digits; deviation, interval and marks in columns of their own."""
    parts = [_parts([numbers[n] for _, numbers in table.rows]) for n in range(len(table.columns))]
    headings = [table.corner]
    for column, own in zip(table.columns, parts, strict=True):
        name = f"{column.text} ({column.note})" if column.note else column.text
        headings += [name, *(f"{name}: {part}" for part in own)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_as_text(heading) for heading in headings])
    for heading, numbers in table.rows:
        row: list[object] = [_as_text(heading.text)]
        for number, own in zip(numbers, parts, strict=True):
            row += [number.value, *(_part(number, part) for part in own)]
        writer.writerow(row)
    return text.getvalue()


def _parts(numbers: Sequence[Number]) -> list[str]:
    """What the numbers of a column have besides their values."""
    names = ("sd", "low", "high", "mark")
    return [name for name in names if any(_part(number, name) for number in numbers)]


def _part(number: Number, name: str) -> float | str | None:
    if name == "sd":
        return number.sd
    if name == "mark":
        return number.mark + "bold" * number.best + "*" * number.partial
    return None if number.interval is None else number.interval[name == "high"]


def _as_text(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def find_browser() -> str | None:
    """The path of Chromium or Chrome; none where neither is installed."""
    return next((path for name in _BROWSERS if (path := shutil.which(name)) is not None), None)


def draw_png(figures: Sequence[str]) -> list[bytes]:
    """SVG figures as PNG, drawn on white by a browser; none where there is no browser."""
    browser = find_browser()
    if browser is None or not figures:
        return []
    encoded = (base64.b64encode(_sized(figure).encode()).decode() for figure in figures)
    images = "".join(f'<img src="data:image/svg+xml;base64,{text}">' for text in encoded)
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "page.html"
        page.write_text(_PAGE.format(images=images, scale=_SCALE), encoding="utf-8")
        command = [
            *(browser, "--headless", "--disable-gpu", "--dump-dom", "--virtual-time-budget=1000"),
            f"--user-data-dir={scratch}/profile",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            page.as_uri(),
        ]
        try:
            done = subprocess.run(  # noqa: S603, a browser that was found, with our own page
                command, capture_output=True, text=True, check=True, timeout=_BROWSER_SECONDS
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ReportError(
                f"{browser} could not draw PNG files ({error}). Save figures with the buttons of "
                "the page instead."
            ) from error
    found = re.findall(r"<pre>data:image/png;base64,([^<]*)</pre>", done.stdout)
    if len(found) != len(figures):
        raise ReportError(
            f"{browser} drew {len(found)} of {len(figures)} PNG files. Save figures with the "
            "buttons of the page instead."
        )
    return [base64.b64decode(picture) for picture in found]


_VIEW_BOX = re.compile(r'viewBox="0 0 (\d+) (\d+)"')


def _sized(figure: str) -> str:
    """The figure with a width and a height, which a browser needs to draw it as an image."""
    opening = figure.partition(">")[0]
    box = _VIEW_BOX.search(opening)
    if " width=" in opening or box is None:
        return figure
    return figure.replace("<svg ", f'<svg width="{box[1]}" height="{box[2]}" ', 1)

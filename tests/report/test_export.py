"""Figures and tables as files: every digit, and names that cannot do harm."""

from __future__ import annotations

import csv
import io

import pytest

from isoglot.report import export
from isoglot.report.export import to_csv, write_export
from isoglot.report.tables import Heading, Number, Table

TABLE = Table(
    title="../Über uns: 中文 / a*b",
    caption="",
    corner="model",
    columns=(Heading(text="xnli", note="accuracy"), Heading(text="aer")),
    rows=(
        (Heading(text="=1+1"), (Number(value=1 / 3, sd=0.1, mark="≈"), Number(value=-2.5))),
        (
            Heading(text='a "b", c'),
            (Number(value=2 / 3, interval=(0.5, 0.75), best=True, partial=True), Number()),
        ),
    ),
)


def test_csv_has_all_digits_and_parts_in_columns_of_their_own():
    head, first, second = csv.reader(io.StringIO(to_csv(TABLE)))
    name = "xnli (accuracy)"
    assert head == ["model", name, *(f"{name}: {p}" for p in ("sd", "low", "high", "mark")), "aer"]
    assert first == ["'=1+1", str(1 / 3), "0.1", "", "", "≈", "-2.5"]
    assert second == ['a "b", c', str(2 / 3), "", "0.5", "0.75", "bold*", ""]


def test_files_are_written_below_the_folder_and_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "find_browser", lambda: None)
    figure = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"></svg>'
    figures = [("../" + "x" * 100_000, figure), ("a", figure), ("a", figure)]
    assert write_export(tmp_path / "out", figures, [TABLE]) == (3, 0, 1)
    written = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert written == [
        f"out/figures/01-{'x' * 60}.svg",
        "out/figures/02-a.svg",
        "out/figures/03-a.svg",
        "out/tables/01-über-uns-中文-a-b.csv",
    ]
    write_export(tmp_path / "out", figures[1:2], [])
    assert [p.name for p in (tmp_path / "out").rglob("*.*")] == ["01-a.svg"]


@pytest.mark.parametrize("text", ["=1", "+1", "-x", "@a", "\tb"])
def test_a_name_is_no_formula(text):
    table = Table(title="", caption="", corner="", columns=(), rows=((Heading(text=text), ()),))
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows[1] == [f"'{text}"]

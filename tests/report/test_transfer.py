"""The figure and the table of transfer show the points' numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from isoglot.report.transfer import TransferCurves, TransferPoint, plot_transfer, transfer_rows

SVG = "{http://www.w3.org/2000/svg}"
LOSSES = TransferCurves(
    title="held-out mlm",
    unit="loss",
    points=tuple(
        TransferPoint(name=name, x=x, source=source, target=target, higher_is_better=False)
        for name, x, source, target in (
            ("meta", 20.0, 2.0, 3.5),
            ("meta", 10.0, 2.5, 4.5),
            ("meta", 20.0, 3.0, 4.0),
            ("xlm", 10.0, 5.0, 5.25),
        )
    ),
)
RETRIEVAL = TransferCurves(
    title="tatoeba, layer 3",
    unit="accuracy@1",
    points=tuple(
        TransferPoint(name="meta", x=x, source=None, target=target)
        for x, target in ((0.5, 0.1), (1, 0.4))
    ),
)


def test_a_gap_is_what_is_lost_whichever_way_is_better():
    assert LOSSES.points[0].gap == 1.5
    assert TransferPoint(name="a", x=1, source=0.9, target=0.6).gap == 0.9 - 0.6
    assert RETRIEVAL.points[0].gap is None


def test_repetitions_are_averaged():
    assert transfer_rows(LOSSES) == [
        ["meta", "10", "2.500", "4.500", "2.000"],
        ["meta", "20", "2.500 ± 0.707", "3.750 ± 0.354", "1.250 ± 0.354"],
        ["xlm", "10", "5.000", "5.250", "0.250"],
    ]
    assert transfer_rows(RETRIEVAL) == [
        ["meta", "0.5", "–", "0.100", "–"],
        ["meta", "1", "–", "0.400", "–"],
    ]


def test_a_panel_for_each_thing_there_is():
    figure = ET.fromstring(  # noqa: S314 (our own)
        plot_transfer([LOSSES, RETRIEVAL], x_label="alpha")
    )
    charts = figure.findall(f"{SVG}svg")
    places = [(chart.attrib["x"], chart.attrib["y"] == "0") for chart in charts]
    assert places == [("0", True), ("400", True), ("800", True), ("0", False)]
    labels = [{text.text for text in chart.iter(f"{SVG}text")} for chart in charts]
    for label, said in zip(
        ("source, loss", "targets, loss", "gap, loss", "targets, accuracy@1"), labels, strict=True
    ):
        assert label in said
    assert {"meta", "xlm"} <= labels[0]
    assert "0.6" in labels[3], "places between whole numbers have ticks"
    assert "10.5" not in labels[0]

"""`isoglot analyze transfer`: held-out losses of runs as a table and a figure."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def runs(workdir):
    for number, name in enumerate(("meta", "xlm-seed0", "xlm-seed1")):
        folder = workdir / name
        folder.mkdir()
        lines = [
            {"step": step, **{f"valid/mlm/{c}/perplexity": (10 + number + k) / step
                              for k, c in enumerate(("en", "de", "mean"))}}
            for step in (1, 2)
        ]  # fmt: skip
        (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return workdir


def test_heldout_losses_are_drawn_and_printed(isoglot, runs):
    said = isoglot(
        "analyze", "transfer", "meta", "xlm-seed0", "xlm-seed1", "--out", "figures/f.svg"
    )
    assert said.code == 0, said.err
    rows = [line.split() for line in said.out.splitlines() if line.startswith(("meta", "xlm"))]
    assert [row[:2] for row in rows] == [["meta", "1"], ["meta", "2"], ["xlm", "1"], ["xlm", "2"]]
    assert rows[0][2:] == ["2.303", "2.398", "0.095"]
    assert "±" in rows[2]
    figure = (runs / "figures/f.svg").read_text(encoding="utf-8")
    assert figure.count("<svg") == 4


def test_faults_are_sentences(isoglot, runs):
    for verb in ("plot", "transfer"):
        said = isoglot("analyze", verb, "meta", "--out", "f.png")
        assert said.code == 2
        assert "f.png: figures are SVG." in said.err
    said = isoglot("analyze", "transfer", "meta", "--tasks", "tatoeba")
    assert said.code == 1
    assert "has no intermediate exports" in said.err
    said = isoglot("analyze", "transfer", "meta", "--source", "sw")
    assert "a transfer gap needs 'sw'" in said.err

"""The two commands write what they say, and say what they wrote."""

from __future__ import annotations

import sys

import pytest

from isoglot.cli import main
from tests.report.generated_runs import write_model

HELD_OUT = "valid/mlm/mean/perplexity"


@pytest.fixture
def isoglot(monkeypatch, capsys, tmp_path):
    """Runs the command line in this process and an empty folder; gives its output."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["isoglot", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert int(ended.value.code or 0) == code
        said = capsys.readouterr()
        return said.out if code == 0 else said.err

    return run


@pytest.fixture
def runs(tmp_path):
    settings = {"languages": ["de", "en"], "tasks": ["xnli"]}
    for number in (1, 2):
        folder = tmp_path / f"mlm-seed{number}"
        write_model(folder, number, seeds=2, steps=20, **settings)
    return ["mlm-seed1", "mlm-seed2"]


def test_plot_lists_metrics_and_plots_one(isoglot, runs, tmp_path):
    assert HELD_OUT in isoglot("analyze", "plot", *runs).splitlines()
    said = isoglot(
        "analyze", "plot", *runs, "other=mlm-seed1", "-m", HELD_OUT, "--log", "-o", "a/b.svg"
    )
    assert said == f"{HELD_OUT} of 3 runs: a/b.svg\n"
    figure = (tmp_path / "a/b.svg").read_text(encoding="utf-8")
    assert figure.startswith("<svg")
    assert (figure.count(">mlm</text>"), figure.count(">other</text>")) == (1, 1)
    assert "has no 'mlm/los'" in isoglot("analyze", "plot", *runs, "-m", "mlm/los", code=1)


def test_report_writes_page_markdown_and_latex(isoglot, runs, tmp_path):
    said = isoglot(
        "report", *runs, "--markdown", "t.md", "--latex", "t.tex", "--title", "Two seeds"
    )
    assert [line.split()[0] for line in said.splitlines()] == ["report.html", "t.md", "t.tex"]
    assert "<h1>Two seeds</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    # the seeds of the runs and those of the fine-tuning are repetitions of one model
    assert "| mlm | " in (tmp_path / "t.md").read_text(encoding="utf-8")
    assert "4 repetitions" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert r"\toprule" in (tmp_path / "t.tex").read_text(encoding="utf-8")

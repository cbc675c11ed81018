"""The claims study from its folder to its page: some arms of every kind, all scores, on a CPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from benchmarks.claims import __main__ as program
from benchmarks.claims.table import read_table

from tests.benchmarks.claims_folder import write_work

ARMS = ("c-camlm", "queue-mean", "gc", "k-both", "meta-freeze", "u-stages", "unmt-gc")
"""One of each kind of preparation, of two runs, and of translation."""
SCORES = {name for name, kind in read_table().scores.items() if not kind.translation}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_a_folder_to_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    write_work(work, monkeypatch)
    told = ["claims", work, "--out", out, "--small", "--parallel", 1, "--trainings", 1]
    told += ["--seeds", 0, "--arms", *ARMS]
    monkeypatch.setattr(sys, "argv", list(map(str, told)))
    for number in (len(ARMS), 0):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            program.main()
        said = capsys.readouterr().out
        assert ended.value.code == 0, said
        assert f"{number} cells to run" in said
    cells = json.loads((out / "claims.json").read_text(encoding="utf-8"))["cells"]
    assert set(cells) == {f"{arm}-0" for arm in ARMS}
    for name, cell in cells.items():
        expected = {"multi30k_en_de", "multi30k_de_en", "mass_perplexity"}
        assert set(cell["scores"]) == (expected if name == "unmt-gc-0" else SCORES), name
        assert set(cell["versions"]) == set(cell["scores"])
        assert cell["steps"] == (5 if name == "unmt-gc-0" else 3)
    page = (out / "claims.md").read_text(encoding="utf-8")
    assert all(f"| {arm} |" in page for arm in ARMS)
    assert not list((work / "cells").iterdir()), "runs that were scored are removed"

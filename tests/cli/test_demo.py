"""Options of `isoglot demo`; the demo itself is tested in tests/demo."""

from __future__ import annotations

from isoglot.adaptation.run import AdaptOutcome
from isoglot.demo import compare, run


def test_seeds_belong_to_the_comparison(isoglot, workdir):
    said = isoglot("demo", "--seeds", "3")
    assert said.code == 2
    assert "only --compare has several seeds" in " ".join(said.err.split())
    assert list(workdir.iterdir()) == []


def test_each_demo_has_its_folder(isoglot, workdir, monkeypatch):
    asked: list[object] = []

    def comparison(folder, _console, *, seeds):
        asked.append((str(folder), seeds))

    def adaptation(folder, _console):
        asked.append(str(folder))
        return AdaptOutcome(out=folder, finished=False, stopped="training has stopped")

    monkeypatch.setattr(compare, "run_comparison", comparison)
    monkeypatch.setattr(run, "run_demo", adaptation)
    assert isoglot("demo", "--compare", "--seeds", "2").code == 0
    said = isoglot("demo")
    assert said.code == 130
    assert "training has stopped; the same command continues" in said.out
    isoglot("demo", "--out", "other")
    assert asked == [("demo-compare", (1, 2)), "demo", "other"]

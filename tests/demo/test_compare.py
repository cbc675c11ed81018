"""The comparison of objectives (`isoglot demo --compare`), as a newcomer runs it."""

import json
import time
from pathlib import Path

import pytest
from rich.console import Console
from transformers import AutoModelForMaskedLM, AutoTokenizer

from isoglot.demo import compare
from isoglot.demo.compare import run_comparison
from isoglot.demo.jobs import Job, JobScores, _Bars


def scores(label, seed, average, tmp_path):
    return JobScores(
        label=label,
        seed=seed,
        model=tmp_path / f"{label}-{seed}" / "model",
        num_tokens=800_400,
        by_language={"es": average + 1, "ru": average - 1},
        uncentered=average / 2,
    )


def printed(rows):
    console = Console(record=True, width=160)
    compare._print_result(rows, console, 12.3)
    return console.export_text()


def test_one_seed_is_called_one_seed_and_three_have_a_deviation(tmp_path):
    base = scores("checkpoint", 0, 8.0, tmp_path)
    labels = enumerate(compare.VARIANTS, start=1)
    one = [scores(label, 1, 10.0 * n, tmp_path) for n, label in labels]
    text = printed([base, *one])
    assert "PPA, margin over MLM: 20.0 points; by seed +20.0." in text
    assert "One random seed" in text
    assert "isoglot demo --compare --seeds 3" in text
    assert "800,000 tokens" in text
    more = [scores(row.label, 2, row.average + 2, tmp_path) for row in one]
    text = printed([base, *one, *more])
    assert "11.0 ± 1.4" in text
    assert "One random seed" not in text


def test_the_time_left_counts_the_jobs_that_wait_for_a_worker(tmp_path, monkeypatch):
    def job(name, num_steps):
        folder = tmp_path / name
        return Job(label=name, recipe="", corpus=folder, out=folder, seed=0, num_steps=num_steps)

    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    console = Console(record=True, width=160)
    jobs = [job("base", 100), *(job(name, 200) for name in "abc")]
    with _Bars(jobs, 2, console) as bars:
        bars._show("base", 1, {"mlm": 3.0})
        now[0] = 99.0
        bars._show("base", 100, {"mlm": 2.0})
    # one second a step: a and b beside each other, then c; then the report
    assert "(about 6 min 55 s left)" in console.export_text()


SIZE = {
    "languages": ("en", "es", "ar"),
    "num_sentences": 2000,
    "num_pairs": 2000,
    "num_concepts": 30,
    "max_entities": 10,
    "vocab_size": 800,
}
STEPS = ("stages.0.steps=400", "checkpoint.every_steps=400")


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> tuple[Path, list[JobScores], str]:
    """The folder, scores and output of a comparison with a quarter of the steps and few words."""
    folder = tmp_path_factory.mktemp("compared") / "demo"
    console = Console(record=True, width=160)
    rows = run_comparison(folder, console, settings=STEPS, corpus_size=SIZE)
    return folder, rows, console.export_text()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_comparison_shows_everything_and_runs_once(compared):
    folder, rows, text = compared
    assert [row.label for row in rows] == ["checkpoint", "MLM", "MLM + TLM", "PPA"]
    assert text.index("checkpoint │") < text.index("Training MLM, MLM + TLM, PPA"), "a first table"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all(f">{row.label}<" in page for row in rows)
    metrics = [row.model.parent / "metrics.jsonl" for row in rows]
    before = [file.read_bytes() for file in metrics]
    again = run_comparison(folder, Console(width=160), settings=STEPS, corpus_size=SIZE)
    assert again == rows
    assert [file.read_bytes() for file in metrics] == before, "nothing is trained again"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_order_is_that_of_the_papers_and_the_folders_open(compared):
    checkpoint, mlm, tlm, ppa = compared[1]
    assert mlm.average > checkpoint.average
    assert tlm.average - mlm.average > 5
    assert ppa.average - tlm.average > 5
    for row in (tlm, ppa):
        assert abs(row.num_tokens - mlm.num_tokens) < 0.03 * mlm.num_tokens, "equal tokens"
    for row in (mlm, ppa):
        model = AutoModelForMaskedLM.from_pretrained(row.model)
        tokenizer = AutoTokenizer.from_pretrained(row.model)
        batch = tokenizer(f"The {tokenizer.mask_token} sleeps.", return_tensors="pt")
        assert model(**batch).logits.shape[-1] == len(tokenizer)
        found = json.loads((row.model.parent / "results.json").read_text())["scores"]
        assert {score["layer"] for score in found} == {0, 1, 2, None}
        assert {score["language"] for score in found} == {"en-es", "en-ar"}

"""The printed numbers are those of the papers, and ours come from the right place."""

from statistics import fmean

import pytest
from reproduce.table import PAPERS, Row, Table, markdown, read_tables

from isoglot.results import Results, Score


@pytest.mark.parametrize("paper", PAPERS)
def test_printed_averages_are_the_means_of_the_row(paper):
    """A number that was copied wrongly moves the mean; papers round, and average more digits."""
    checked = 0
    for table in read_tables(paper):
        for row in table.rows:
            if table.columns[-1].lower() != "avg" or "-" in row.printed:
                continue
            cells = [[float(one) for one in cell.split("/")] for cell in row.printed]
            *numbers, average = cells
            if table.tasks:  # the mean over tasks of each task's mean
                found = [fmean(map(fmean, numbers))]
            else:
                found = list(map(fmean, zip(*numbers, strict=True)))
            assert found == pytest.approx(average, abs=0.15), f"{table.table}, {row.label}"
            checked += 1
    assert checked >= 3


def test_the_numbers_of_the_papers_abstracts():
    """Numbers that the papers' own text repeats."""
    printed = {
        (paper, table.table, row.label): row.printed[-1]
        for paper in PAPERS
        for table in read_tables(paper)
        for row in table.rows
    }
    assert printed["ernie-m", "Table 1", "ERNIE-M, cross-lingual transfer"] == "77.3"
    assert printed["ernie-m", "Table 1", "ERNIE-M, translate-train-all"] == "80.6"
    assert printed["xlm-k", "Table 1", "XLM-K (avg)"] == "67.1/48.9"
    assert printed["metaxlm", "Table 1", "MetaXLM"] == "55.7"
    assert printed["metaxlm", "Table 1", "+Dict"] == "59.3"
    assert printed["ppa", "Table 2", "Ours (2M), zero-shot"] == "74.3"


def score(task: str, language: str, metric: str, value: float, seed: int, scenario: str) -> Score:
    return Score(
        task=task,
        version=1,
        language=language,
        metric=metric,
        value=value,
        count=10,
        seed=seed,
        scenario=scenario,
    )


def write_results(folder, scores: list[Score]) -> None:
    folder.mkdir(parents=True)
    Results(model="m", fingerprint="f", scores=tuple(scores)).write(folder / "results.json")


def test_our_numbers_are_means_over_seeds_of_their_scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_results(
        tmp_path / "runs/a",
        [
            score("xnli", "en", "accuracy", 0.5, 0, "zero-shot from en, ppa"),
            score("xnli", "en", "accuracy", 0.7, 1, "zero-shot from en, ppa"),
            score("xnli", "de", "accuracy", 0.3, 0, "zero-shot from en, ppa"),
            score("xnli", "de", "accuracy", 0.2, 1, "zero-shot from en, ppa"),
            score("xnli", "en", "accuracy", 0.9, 0, "translate-train, ppa"),
            score("xnli", "en", "accuracy", 0.1, 0, "translate-train-all, ppa"),
        ],
    )
    rows = {
        name: Row(label=name, results="runs/a", printed=("1", "1", "1"), **settings)
        for name, settings in {
            "all": {"scenario": "zero-shot"},
            "best": {"scenario": "zero-shot", "seeds": "best"},
            "translated": {"scenario": "translate-train"},
        }.items()
    }
    table = Table(
        table="Table 1",
        title="XNLI",
        task="xnli",
        metrics=["accuracy"],
        columns=["en", "de", "Avg"],
        rows=tuple(rows.values()),
    )
    assert table.measured(rows["all"]) == ["60.0", "25.0", "42.5"]
    assert table.measured(rows["best"]) == ["70.0", "20.0", "45.0"]
    assert table.measured(rows["translated"]) == ["90.0", "-", "90.0"]
    assert "| all | the paper | 1 | 1 | 1 |\n|  | this run | 60.0" in markdown(
        [table], measured=True
    )


def test_columns_that_are_tasks_and_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_results(
        tmp_path / "runs/b-x",
        [
            score("xquad", "en", "f1", 0.6, 0, "zero-shot"),
            score("xquad", "de", "f1", 0.4, 0, "zero-shot"),
            score("xquad", "en", "exact", 0.2, 0, "zero-shot"),
            score("xquad", "de", "exact", 0.0, 0, "zero-shot"),
            score("xquad", "de-en", "f1", 1.0, 0, "zero-shot"),
            score("xnli", "en", "accuracy", 0.8, 0, "zero-shot"),
        ],
    )
    row = Row(label="b", results="runs/b", printed=("1", "1", "1"))
    table = Table(
        table="Table 1",
        title="tasks",
        columns=["XQuAD", "XNLI", "Avg"],
        tasks={"XQuAD": ["xquad", "f1", "exact"], "XNLI": ["xnli", "accuracy"]},
        results={"XQuAD": "-x", "XNLI": "-x"},
        rows=(row,),
    )
    # the mean of XQuAD is 0.3: F1 0.5 and exact match 0.1
    assert table.measured(row) == ["50.0/10.0", "80.0", "55.0"]
    missing = Row(label="c", results="runs/c", printed=("1", "1", "1"))
    assert table.measured(missing) == ["-", "-", "-"]

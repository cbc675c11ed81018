"""Which folders are repetitions of one model, and which visualizations belong to which results."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoglot.report.inputs import (
    ReportError,
    group_by_name,
    parse_named_folder,
    parse_named_folders,
    read_results,
    read_visualizations,
)
from isoglot.results import Results, Score
from isoglot.visualizations import Visualizations, visualizations_file

SCORE = Score(task="xnli", version=1, language="de", metric="accuracy", value=0.5, count=9)


def written(file: Path, fingerprint: str = "f", *, seed: int | None = None) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    score = Score(**{n: getattr(SCORE, n) for n in SCORE.__slots__} | {"seed": seed})
    Results(model="m", fingerprint=fingerprint, scores=(score,)).write(file)
    return file


def names(*arguments: object) -> dict[str, int]:
    found = group_by_name([parse_named_folder(str(one)) for one in arguments])
    return {name: len(group) for name, group in found.items()}


def test_two_models_in_folders_of_one_name_are_two_models(tmp_path):
    for place in ("a/mlm", "b/mlm", "b/x/mlm", "b/tlm"):
        written(tmp_path / place / "results.json", place)
    folders = [tmp_path / place for place in ("a/mlm", "b/mlm", "b/tlm")]
    assert names(*folders) == {"a/mlm": 1, "b/mlm": 1, "tlm": 1}
    assert names(*(folder / "results.json" for folder in folders)) == {
        "a/mlm": 1, "b/mlm": 1, "tlm": 1,
    }  # fmt: skip
    assert names(tmp_path / "b/mlm", tmp_path / "b/x/mlm") == {"b/mlm": 1, "x/mlm": 1}
    assert names(tmp_path / "a/mlm") == {"mlm": 1}
    assert names(f"mlm={tmp_path / 'a/mlm'}", tmp_path / "b/mlm") == {"mlm": 1, "b/mlm": 1}


def test_seeds_and_given_names_are_repetitions(tmp_path):
    for place in ("a/mlm-seed1", "a/mlm-seed2", "b/mlm-seed1"):
        written(tmp_path / place / "results.json", place)
    assert names(tmp_path / "a/mlm-seed1", tmp_path / "a/mlm-seed2") == {"mlm": 2}
    places = ("a/mlm-seed1", "a/mlm-seed2", "b/mlm-seed1")
    assert names(*(tmp_path / place for place in places)) == {"a/mlm": 2, "b/mlm": 1}
    assert names(f"x={tmp_path / 'a/mlm-seed1'}", f"x={tmp_path / 'b/mlm-seed1'}") == {"x": 2}
    for number in (1, 2):
        written(tmp_path / f"files/tlm-seed{number}.json", str(number))
    assert names(*(tmp_path / f"files/tlm-seed{n}.json" for n in (1, 2))) == {"tlm": 2}


def test_the_same_scores_twice_are_no_repetitions(tmp_path):
    for name in ("one", "two"):
        written(tmp_path / f"{name}.json")
    written(tmp_path / "three.json", seed=3)

    def read(*given):
        return read_results(
            group_by_name([parse_named_folder(f"x={tmp_path / g}.json") for g in given])
        )

    with pytest.raises(ReportError, match=r"one\.json and .*two\.json have the same scores"):
        read("one", "two")
    assert len(read("one", "three")["x"]) == 2, "two seeds of fine-tuning of one model"


def test_visualizations_belong_to_their_results_file(tmp_path):
    for name in ("one", "two"):
        results = written(tmp_path / f"{name}.json", name)
        Visualizations(fingerprint=name).write(visualizations_file(results))
    groups = group_by_name(
        [parse_named_folder(str(tmp_path / f"{n}.json")) for n in ("one", "two")]
    )
    found = read_visualizations(groups, read_results(groups))
    assert {name: one.fingerprint for name, one in found.items()} == {"one": "one", "two": "two"}
    standard = written(tmp_path / "run/results.json", "new")
    assert visualizations_file(standard) == tmp_path / "run/visualizations.json"
    Visualizations(fingerprint="old").write(visualizations_file(standard))
    groups = group_by_name([parse_named_folder(str(tmp_path / "run"))])
    with pytest.raises(ReportError, match="of other weights than"):
        read_visualizations(groups, read_results(groups))


def test_a_folder_of_folders_stands_for_all_in_it(tmp_path):
    for place in ("results/a/results.json", "results/b/results.json", "sw/run/metrics.jsonl"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
    (tmp_path / "results/empty").mkdir()

    def named(argument: str) -> list[tuple[str, Path]]:
        return [(one.name, one.path.relative_to(tmp_path)) for one in parse_named_folders(argument)]

    assert named(f"{tmp_path}/results") == [("a", Path("results/a")), ("b", Path("results/b"))]
    assert named(f"{tmp_path}/results/a") == [("a", Path("results/a"))]
    assert named(f"x={tmp_path}/results/a") == [("x", Path("results/a"))]
    assert named(f"{tmp_path}/sw") == [("sw", Path("sw/run"))], "what adapt writes"
    assert named(f"{tmp_path}/results/empty") == [("empty", Path("results/empty"))]

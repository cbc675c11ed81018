"""The alignment study from hand-made data to its tables: a few steps of a tiny model, on a CPU."""

from __future__ import annotations

import json
import sys
import tarfile

import pytest
from benchmarks.alignment import run, table, text
from benchmarks.alignment.cell import WAYS

from tests.benchmarks.data_folder import write_data

TINY = [
    "model.num_layers=2", "model.hidden_size=32", "model.num_heads=2",
    "batch.rows=4", "batch.micro_rows=4", "loader.num_workers=0",
]  # fmt: skip


@pytest.fixture
def say(monkeypatch, capsys):
    """Runs a command of the study in this process; gives its exit and what it printed."""

    def command(module, *arguments: object) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, arguments)])
        capsys.readouterr()
        ended: object = 0
        try:
            module.main()
        except SystemExit as error:
            ended = error.code
        return ended, capsys.readouterr().out

    return command


@pytest.mark.slow
def test_from_data_to_tables(say, tmp_path):
    work = tmp_path / "work"
    data = write_data(tmp_path / "data")
    archive = tmp_path / "packed.tar.xz"
    _, said = say(text, work, "--data", data, "--words", 600, "--workers", 1, "--pack", archive)
    assert "test sentences dropped: 2" in said
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    assert {"corpus/manifest.json", "test/ntrex/en-sw.tsv"} <= set(names)
    assert not any(name.startswith("raw") for name in names)

    steps = ["--checkpoint-steps", 3, "--steps", 2, "--set", *TINY]
    ended, said = say(
        run, work, "--recipes", "tlm", "missing", "--seeds", 7, "--parallel", 2, *steps
    )
    assert ended == "1 of 2 cells failed", said
    assert "there is no file" in said, "a failed cell says why"
    assert "missing-7            FAILED" in said
    assert {file.stem for file in (work / "results").iterdir()} == {"checkpoint-0", "tlm-7"}
    cell = json.loads((work / "results/tlm-7.json").read_text(encoding="utf-8"))
    assert (cell["recipe"], cell["seed"], cell["steps"]) == ("tlm", 7, 2)
    assert cell["tokens_per_second"] > 0
    assert cell["losses"].keys() == {"mlm", "tlm"}
    # 2 tests × 9 pairs × 3 layers × 2 directions, in each way
    assert len(cell["scores"]) == 2 * 9 * 3 * 2 * len(WAYS)
    recipe = (work / "runs/tlm-7/recipe.yaml").read_text(encoding="utf-8")
    assert "checkpoint-0/model" in recipe

    ended, said = say(run, work, "--recipes", "tlm", "--seeds", 7, *steps)
    assert ended == 0
    assert said.count("is there already") == 2

    _, said = say(table, work, "--layer", 1)
    head, _, *rows = said.splitlines()[:4]
    assert head.startswith("| recipe | ntrex, best (layer) | ntrex, layer 1 | tatoeba, best")
    assert [row.split()[1] for row in rows] == ["checkpoint", "tlm"]


def test_a_cell_that_takes_too_long_is_given_up(say, tmp_path):
    start = ["--checkpoint", tmp_path, "--recipes", "tlm", "--seeds", 0, "--limit", 0.01]
    ended, said = say(run, tmp_path, *start)
    assert ended == "1 of 1 cells failed"
    assert "it took too long" in said


def test_tables_are_means_over_seeds(tmp_path):
    def scores(values: dict[int, float]) -> list[dict[str, object]]:
        return [
            {"test": "ntrex", "layer": layer, "language": pair, "metric": metric, "value": value}
            for layer, middle in values.items()
            for pair, metric, value in (
                ("en-de", "accuracy@1 en→de", middle + 0.1),
                ("en-de", "accuracy@1 de→en", middle + 0.1),
                ("en-zh", "accuracy@1 en→zh", middle - 0.1),
                ("en-zh", "accuracy@1 zh→en", middle - 0.1),
                ("en-zh", "centered accuracy@1 zh→en", 0.99),
            )
        ]

    cells = {
        ("tlm", 0): {0: 0.2, 1: 0.5}, ("tlm", 1): {0: 0.2, 1: 0.7},
        ("mlm", 0): {0: 0.3, 1: 0.1}, ("checkpoint", 0): {0: 0.9, 1: 0.1},
    }  # fmt: skip
    for (recipe, seed), values in cells.items():
        cell = {"recipe": recipe, "seed": seed, "tokens": 2_000_000, "scores": scores(values)}
        (tmp_path / f"{recipe}-{seed}.json").write_text(json.dumps(cell), encoding="utf-8")
    lines = list(table.tables(tmp_path, layer=1))
    assert lines[2:5] == [
        "| checkpoint | 90.0 (0) | 10.0 | 1 | 2.0M |",
        "| mlm | 30.0 (0) | 10.0 | 1 | 2.0M |",
        "| tlm | 60.0 ± 14.1 (1) | 60.0 ± 14.1 | 2 | 2.0M |",
    ]
    assert "| tlm | 70.0 ± 14.1 | 50.0 ± 14.1 |" in lines, "by language, at layer 1"
    assert "| tlm | 20.0 ± 0.0 | 60.0 ± 14.1 |" in lines, "by layer"
    assert "| mlm | 99.0 (0) | 99.0 | 1 | 2.0M |" in list(
        table.tables(tmp_path, layer=1, way="centered")
    )

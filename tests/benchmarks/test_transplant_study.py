"""The transplant study from hand-made data to its tables: a few steps of tiny models, on a CPU."""

from __future__ import annotations

import json
import lzma
import sys
import tarfile

import pytest
from benchmarks.transplant_study import prepare, run, table
from benchmarks.transplant_study.cell import RECIPES

from isoglot.recipe import load_recipe
from tests.benchmarks.data_folder import write_data

TINY = [
    "model.num_layers=2", "model.hidden_size=32", "model.num_heads=2",
    "batch.rows=4", "batch.micro_rows=4", "loader.num_workers=0",
]  # fmt: skip


def command(monkeypatch, capsys, module, *arguments: object) -> tuple[object, str]:
    """Runs a command of the study in this process; gives its exit and what it printed."""
    monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, arguments)])
    capsys.readouterr()
    ended: object = 0
    try:
        module.main()
    except SystemExit as error:
        ended = error.code
    return ended, capsys.readouterr().out


@pytest.mark.slow
def test_from_data_to_tables(monkeypatch, capsys, tmp_path):
    data = write_data(tmp_path / "data")
    lexicon = data / "eval/bli/xling-eval/en-de/yacle.train.freq.5k.en-de.tsv.xz"
    lexicon.parent.mkdir(parents=True)
    with lzma.open(lexicon, "wt", encoding="utf-8") as stream:
        stream.write("rained\tregnet\nbeginning\tAnfang\n")
    archive, made = tmp_path / "packed.tar.xz", tmp_path / "made"
    sizes = ["--words", 600, "--english-words", 330, "--heldout", 0.2, "--workers", 1]
    _, said = command(monkeypatch, capsys, prepare, made, "--data", data, *sizes, "--pack", archive)
    assert "test sentences dropped:" in said
    with tarfile.open(archive) as packed:
        names = set(packed.getnames())
    assert {"english/manifest.json", "corpus/manifest.json", "dictionaries/en-de.txt"} <= names
    assert "test/tatoeba/en-sw.tsv" in names
    assert not any(name.startswith("raw") for name in names)

    work = tmp_path / "work"
    asked = ["--arms", "dict", "--seeds", 0, "--steps", 3, "--meta-steps", 2]
    # a transplanted model has the shape of its source
    shapes = [*TINY[3:], *TINY[:3]]
    ended, said = command(
        monkeypatch, capsys, run, work, "--archive", archive, *asked, "--set", *shapes
    )
    assert ended == 0, said
    cell = json.loads((work / "results/dict-0.json").read_text(encoding="utf-8"))
    assert [point["step"] for point in cell["points"]] == [0, 1, 2, 3]
    assert cell["points"][0]["losses"] == {}
    assert len(cell["points"][3]["losses"]) > 5
    assert len(cell["points"][0]["tatoeba"]["2"]) == 9
    assert cell["kinds"]["special"] == 5
    assert "| dict | 3 |" in said
    assert (work / "study.svg").read_text(encoding="utf-8").count("<svg") == 5
    ended, said = command(monkeypatch, capsys, run, work, *asked, "--set", *shapes)
    assert said.count("is there already") == 2


def test_tables_are_means_over_seeds(tmp_path):
    for arm, seed, en, de, right in (
        ("a", 0, 2.0, 3.0, 10), ("a", 1, 3.0, 5.0, 30), ("b", 0, 4.0, 4.5, 50),
    ):  # fmt: skip
        points = [
            {"step": 0, "losses": {}, "tatoeba": {"0": {"en-de": 99}, "1": {"en-de": 1}}},
            {
                "step": 5,
                "losses": {"en": en, "de": de},
                "tatoeba": {"0": {"en-de": 5}, "1": {"en-de": right}},
            },
        ]
        cell = {"arm": arm, "seed": seed, "points": points, "kinds": None, "tokens": 1_000_000}
        cell |= {"train_seconds": 2.0, "tokens_per_second": 5e5}
        (tmp_path / f"{arm}-{seed}.json").write_text(json.dumps(cell), encoding="utf-8")
    cells = table.read_cells(tmp_path)
    assert table.best_layer(cells) == "1"
    lines = list(table.tables(cells, "1"))
    assert lines[2:5] == [
        "| a | 0 |  |  |  | 1.0 ± 0.0 |",
        "| a | 5 | 2.500 ± 0.707 | 4.000 ± 1.414 | 1.500 ± 0.707 | 20.0 ± 14.1 |",
        "| b | 0 |  |  |  | 1.0 |",
    ]


@pytest.mark.parametrize("arm", ["scratch", "transplant", "dict", "kd", "freezing", "subwords"])
def test_arms_differ_in_nothing_but_their_start(arm):
    base, recipe = (load_recipe(str(RECIPES / f"{name}.yaml")) for name in ("scratch", arm))
    assert (recipe.optimizer, recipe.batch, recipe.loss) == (base.optimizer, base.batch, base.loss)
    assert recipe.stages[0].steps == base.stages[0].steps
    for setting in ("alpha", "alpha_unit", "across_documents"):
        streams = [of.stages[0].streams["text"] for of in (base, recipe)]
        assert getattr(streams[0], setting) == getattr(streams[1], setting)


def test_five_points_of_equal_distance():
    assert run.steps_of("dict", 1000, 1200)[1:] == [
        "logging.validate_every_steps=200",
        "export.every_steps=200",
    ]
    assert run.steps_of("scratch-long", 1000, 1200)[0] == "stages.0.steps=2200"
    assert run.steps_of("meta", 1000, 1200) == ["stages.0.steps=1200"]

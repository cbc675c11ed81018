"""Checkpoints of the claims: equal totals, starts of arms, fingerprints of earlier results."""

from __future__ import annotations

import json
import lzma
import math
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.cells import Deadline, ResultsFile
from benchmarks.claims import __main__ as program
from benchmarks.claims import english, train, translation
from benchmarks.claims.checkpoints import (
    TrainedCheckpoint,
    checkpoints_in,
    known_fingerprints,
    train_checkpoint,
)
from benchmarks.claims.findings import Findings
from benchmarks.claims.table import DEFAULT, SCRATCH, read_table
from benchmarks.claims.train import Setting, cell_folder, train_cell

from isoglot.recipe import load_recipe

TABLE = read_table()
META = [name for name in TABLE.arms if name.startswith("meta-")]
FACTS = {"steps": 4, "tokens": 100, "heldout_losses": {"en": 5.0}}


def setting(work: Path, **checkpoints: str) -> Setting:
    """A setting of three steps; `checkpoints` are fingerprints."""
    return Setting(
        work=work,
        checkpoints={
            name: TrainedCheckpoint(model=work / name, fingerprint=weights)
            for name, weights in checkpoints.items()
        },
        steps=3,
        stage0_steps=4,
        loader_workers=0,
        small=True,
    )


@pytest.mark.parametrize("name", META)
def test_arms_of_equal_total_tokens(name: str) -> None:
    """Rows of the arm and of the English model it uses are those of meta-scratch."""
    arm, rows = TABLE.arms[name], 0
    for used in TABLE.needs(name):
        checkpoint = TABLE.checkpoints[used]
        batch = load_recipe(str(checkpoint.file), list(checkpoint.settings)).batch
        rows += checkpoint.steps(2000) * batch.rows
    batch = load_recipe(str(arm.file), list(arm.settings)).batch
    rows += TABLE.steps(name, 500, 2000) * batch.rows
    own = {"meta-scratch-short": 500, "meta-transplant-long": 500 + 2 * 1000}
    assert rows == own.get(name, 500 + 1000) * 256


def test_meta_arms_differ_in_nothing_but_their_start() -> None:
    recipes = {
        name: load_recipe(str(of.file), list(of.settings)) for name, of in TABLE.arms.items()
    }
    base = recipes["meta-transplant"]
    for recipe in (recipes[name] for name in META):
        assert (recipe.optimizer, recipe.batch, recipe.loss) == (
            base.optimizer,
            base.batch,
            base.loss,
        )
        text, own = (of.stages[0].streams["text"] for of in (base, recipe))
        assert (text.alpha, text.alpha_unit) == (own.alpha, own.alpha_unit)
        assert recipe.logging == base.logging
        assert recipe.export.every_steps == 0


def test_what_arms_need() -> None:
    assert TABLE.needs("control") == {DEFAULT}
    assert TABLE.needs("meta-transplant") == {"english"}
    assert TABLE.needs("meta-scratch") == set(), "it only has as many steps more"
    assert TABLE.needs("meta-kd") == {"english"}, "its teacher"
    assert TABLE.arms["meta-kd"].start == SCRATCH


def test_a_first_part_and_the_rest_are_all_steps() -> None:
    part = TABLE.arms["meta-freeze"].first
    assert part is not None
    assert part.steps(500) == (125, 375)
    assert part.steps(3) == (1, 2)


def test_names_in_settings_become_folders(tmp_path: Path) -> None:
    found = setting(tmp_path, english="e").settings_of(TABLE.arms["meta-kd"], 3)
    assert f"objectives.distill.teacher={tmp_path}/english" in found
    assert "model.num_layers=2" in found, "a small model of random weights"
    found = setting(tmp_path, english="e").settings_of(TABLE.arms["meta-dict"], 3)
    assert f'transplant.dictionaries=["{tmp_path}/dictionaries/*.txt"]' in found
    assert "model.num_layers=2" not in found, "the shape is the checkpoint's"


def test_a_small_trial_has_its_own_layer_and_a_short_queue(tmp_path: Path) -> None:
    small = setting(tmp_path)
    assert "objectives.moco.layer=1" in small.settings_of(TABLE.arms["u-mid"], 3)
    told = small.settings_of(TABLE.arms["queue-mean"], 3)
    assert "objectives.moco.queue={size: 32, start: filled}" in told
    usual = replace(small, small=False)
    assert "objectives.moco.layer=4" in usual.settings_of(TABLE.arms["u-mid"], 3)
    queue = load_recipe(
        str(TABLE.arms["queue-mean"].file), usual.settings_of(TABLE.arms["queue-mean"], 3)
    )
    assert queue.objectives["moco"].queue.size == 16384  # type: ignore[attr-defined]


def study(tmp_path: Path, **others: Any) -> program.Study:
    """A call of two workers with a tiny model."""
    told = {
        "work": tmp_path,
        "out": tmp_path / "out",
        "known": [],
        "steps": 3,
        "stage0_steps": 4,
        "loader_workers": 0,
        "small": True,
        "settings": [],
        "arms": [],
        "cells": [],
    }
    return program.Study(Namespace(**told | others))


def test_what_cells_wait_for_and_what_they_cost(tmp_path: Path) -> None:
    own = study(tmp_path, steps=500, stage0_steps=2000)
    assert own.needs("control-0") == ["checkpoint-multilingual"]
    assert own.needs("gc-output-1") == ["checkpoint-multilingual", "counts-gc"]
    assert own.needs("meta-kd-0") == ["checkpoint-english"]
    assert own.needs("meta-scratch-0") == []
    assert own.needs("unmt-gc-0") == ["counts-unmt-gc"]
    assert own.cost("control-0") == own.cost("ppa-0") == 1.0, "as many tokens in smaller steps"
    assert own.cost("meta-scratch-0") == 2.0, "three times the steps, and the same scores"
    assert own.cost("unmt-mass-0") > 2.0
    assert own.cost("checkpoint-english") == own.cost("checkpoint-multilingual") / 2


def test_what_a_folder_lacks_is_told_before_anything_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("corpus/manifest.json", *(f"tests/{part}/x" for part in program.TESTS)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert program.missing_data(tmp_path, ["control", "gc", "meta-scratch"]) == []
    found = {
        name: program.missing_data(tmp_path, [name])
        for name in ("k-both", "meta-dict", "meta-kd", "unmt-gc")
    }
    assert found == {
        "k-both": ["corpus/knowledge"],
        "meta-dict": ["english-corpus/manifest.json", "dictionaries"],
        "meta-kd": ["english-corpus/manifest.json"],
        "unmt-gc": ["unmt-en-de/corpus/manifest.json", "unmt-en-de/tests/"],
    }
    given: dict[str, Any] = {"parallel": 1, "trainings": None, "archives": []}
    with pytest.raises(SystemExit, match="lacks corpus/knowledge"):
        study(tmp_path, **given).run(["k-both-0"], Deadline(seconds=60.0))
    kept = study(tmp_path, **given)._possible(["k-both-0", "control-0", "unmt-gc-1", "control-1"])
    assert kept == ["control-0", "control-1"]
    told = capsys.readouterr().out
    assert "left out for lack of corpus/knowledge: k-both\n" in told
    with pytest.raises(SystemExit, match="lacks corpus/knowledge"):
        study(tmp_path, **given, arms=["k-both", "control"])._possible(["k-both-0", "control-0"])
    monkeypatch.setattr(program, "find_spec", lambda name: None if name == "sacrebleu" else 1)
    assert program.missing_data(tmp_path, ["unmt-gc"])[-1] == "the package sacrebleu"
    assert program.missing_data(tmp_path, ["control"]) == []


def test_other_steps_than_those_of_known_cells_end_the_call(tmp_path: Path) -> None:
    old = write_results(tmp_path / "old.json", OLD, {"tlm-0": OLD_CELL})
    study(tmp_path, known=[old])
    with pytest.raises(SystemExit, match="earlier cells have 3 steps, these would have 5"):
        study(tmp_path, known=[old], steps=5)


def write_results(file: Path, about: dict[str, Any], cells: dict[str, Any]) -> Path:
    file.write_text(json.dumps({"about": about, "cells": cells}), encoding="utf-8")
    return file


OLD = {"fingerprint": "w", "stage0": FACTS, "steps": 3, "device": "cpu", "torch": "2"}
OLD_CELL = {"arm": "tlm", "seed": 0, "start": "w", "scores": {"pos": 50.0}}


def test_results_of_the_first_version_have_the_default_checkpoint(tmp_path: Path) -> None:
    old = write_results(tmp_path / "old.json", OLD, {"tlm-0": OLD_CELL})
    cell = {"arm": "meta-transplant", "seed": 0, "start": "e", "checkpoints": {"english": "e"}}
    new = write_results(
        tmp_path / "new.json",
        {"checkpoints": {"english": {"fingerprint": "e", **FACTS}}},
        {"meta-transplant-0": cell | {"scores": {"pos": 51.0}}},
    )
    results = ResultsFile(tmp_path / "claims.json", [old, new])
    assert known_fingerprints(results.about, results.cells.values()) == {
        DEFAULT: {"w"},
        "english": {"e"},
    }
    assert checkpoints_in(results.about)[DEFAULT]["tokens"] == 100
    page = Findings(results.cells, results.about).page()
    assert "checkpoint `multilingual`: 4 steps" in page
    assert "checkpoint `english`: 4 steps" in page


def test_checkpoints_of_several_files_are_all_kept(tmp_path: Path) -> None:
    files = [
        write_results(tmp_path / f"{name}.json", {"checkpoints": {name: {"fingerprint": name}}}, {})
        for name in ("english", DEFAULT)
    ]
    about = ResultsFile(tmp_path / "claims.json", files).about
    assert set(about["checkpoints"]) == {"english", DEFAULT}


@pytest.mark.parametrize("name", [DEFAULT, "english"])
def test_other_weights_than_those_of_known_cells_are_refused(tmp_path: Path, name: str) -> None:
    def prepared(weights: str) -> dict[str, Any]:
        trained = TrainedCheckpoint(model=tmp_path, fingerprint=weights)
        machine = {"device": "cpu", "torch": "2"}
        return {"trained": trained, "facts": dict(FACTS), "seconds": 1.0, "machine": machine}

    old = write_results(tmp_path / "old.json", OLD, {"tlm-0": OLD_CELL})
    own = study(tmp_path, known=[old])
    own.prepared(f"checkpoint-{name}", prepared("w"))
    assert own.setting.checkpoints[name].fingerprint == "w"
    about = ResultsFile(tmp_path / "out" / "claims.json").about
    assert checkpoints_in(about)[name]["fingerprint"] == "w"
    assert checkpoints_in(about)[DEFAULT]["fingerprint"] == "w", "of the old file"
    assert "fingerprint" not in about
    with pytest.raises(ValueError, match="would not compare"):
        own.prepared(f"checkpoint-{name}", prepared("others"))


def test_a_trained_model_whose_scores_failed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[bool] = []

    def trained(setting: Setting, name: str, seed: int, place: Path) -> tuple[Path, dict[str, Any]]:
        begun.append((place / "model").exists())
        (place / "model").touch()
        return place / "model", {"train_seconds": 1.0}

    said: list[dict[str, Any]] = [{"errors": {"translation": "no good"}}, {}]
    monkeypatch.setattr(train, "train_arm", trained)
    monkeypatch.setattr(translation, "all_scores", lambda *_, **__: {"scores": {}} | said.pop(0))
    setting = Setting(
        work=tmp_path, checkpoints={}, steps=3, stage0_steps=4, loader_workers=0, small=True
    )
    assert "errors" in train_cell(setting, "unmt-gc", 0)
    assert "errors" not in train_cell(setting, "unmt-gc", 0)
    assert begun == [False, True], "the second call has the model of the first"
    assert not (tmp_path / "cells" / "unmt-gc-0").exists()


def test_an_error_of_translating_leaves_the_perplexity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        translation, "mass_perplexity", lambda run: {"mass_perplexity": len(run.name)}
    )
    found = translation.all_scores(tmp_path / "abc" / "model", tmp_path, small=True)
    assert found["scores"] == {"mass_perplexity": 3}
    assert "Error" in found["errors"]["translation"], "there is no model"


def test_a_stopped_training_is_continued_and_a_failed_one_is_not(tmp_path: Path) -> None:
    place = tmp_path / "cells" / "tlm-0"

    def work(about: dict[str, Any], fault: BaseException | None = None) -> bool:
        """Is something of an earlier call there?"""
        with cell_folder(place, about) as folder:
            was_there = (folder / "run").exists()
            (folder / "run").touch()
            if fault is not None:
                raise fault
        return was_there

    with pytest.raises(SystemExit):
        work({"steps": 3}, SystemExit("stopped by a signal"))
    assert not work({"steps": 4}), "another training"
    with pytest.raises(SystemExit):
        work({"steps": 3}, SystemExit("stopped by a signal"))
    assert work({"steps": 3})
    assert not place.exists(), "it has been scored"
    with pytest.raises(ValueError, match="not finite"):
        work({"steps": 3}, ValueError("the loss is not finite"))
    assert not place.exists()


def meta_cells(weights: str = "e") -> dict[str, Any]:
    """Three seeds of a transplanted arm, another that starts there, and one from random weights."""
    found: dict[str, Any] = {}
    for seed in range(3):
        for arm, start, gain in (
            ("meta-transplant", {"english": "e"}, 2.0),
            ("meta-dict", {"english": weights}, 4.0),
            ("meta-scratch", {}, 0.0),
        ):
            found[f"{arm}-{seed}"] = {
                "arm": arm,
                "seed": seed,
                "start": start.get("english", SCRATCH),
                "checkpoints": start,
                "scores": {"pos": 50 + seed + gain, "perplexity": 90 + seed - gain},
            }
    return found


def test_arms_of_other_starts_compare_and_those_of_other_weights_do_not() -> None:
    scratch, words = (
        {"meta-transplant": 1, "meta-scratch": -1},
        {"meta-dict": 1, "meta-transplant": -1},
    )
    same, other = (Findings(meta_cells(weights), {}) for weights in ("e", "others"))
    for findings in (same, other):
        found = findings.difference(scratch, "perplexity")
        assert found is not None
        assert found.by_seed == (2.0, 2.0, 2.0), "lower is better"
    found = same.difference(words, "pos")
    assert found is not None
    assert found.by_seed == (2.0, 2.0, 2.0)
    assert other.difference(words, "pos") is None


def test_a_score_that_cells_lack_is_left_out() -> None:
    cells = meta_cells()
    del cells["meta-scratch-1"]["scores"]["perplexity"]
    findings = Findings(cells, {})
    contrast = {"meta-transplant": 1, "meta-scratch": -1}
    assert findings.difference(contrast, "ntrex") is None
    found = findings.difference(contrast, "perplexity")
    assert found is not None
    assert len(found.by_seed) == 2
    assert findings.test_verdict(contrast) == "holds", "parts of speech have three seeds"
    assert "| meta-scratch |" in findings.page()


def write_lexicon(data: Path, pair: str, part: str, rows: list[str]) -> None:
    file = data / "eval/bli/xling-eval" / pair / f"yacle.{part}.{pair}.tsv.xz"
    file.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(file, "wt", encoding="utf-8") as stream:
        stream.writelines(f"{row}\n" for row in rows)


def test_dictionaries_have_no_word_that_is_scored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(english, "LEXICONS", ("en-de",))
    write_lexicon(tmp_path, "en-de", "test.freq.2k", ["house\tHaus"])
    write_lexicon(tmp_path, "en-de", "train.freq.500", ["of\tvon"])
    rows = ["of\taus", "home\thaus", "House\tHeim", "rain\tRegen", "haus\thouse"]
    write_lexicon(tmp_path, "en-de", "train.freq.5k", rows)
    assert english.write_dictionaries(tmp_path, tmp_path) == {"en-de": 2}
    written = (tmp_path / "dictionaries/en-de.txt").read_text(encoding="utf-8")
    assert written.split() == ["rain", "Regen", "haus", "house"]


def prepare_corpora(work: Path) -> None:
    """Text of two languages with a common vocabulary, and English with its own."""
    from isoglot.corpus.pipeline.run import prepare
    from isoglot.recipe import load_prepare

    people, acts = ("Anna", "Boris", "Chen", "Dora"), ("reads", "sells", "paints", "finds")
    for code, told in (
        ("en", "{} {} the {} house of a friend."),
        ("de", "{} {} ein {} Haus heute."),
    ):
        lines = [
            told.format(who, act, number)
            for who in people
            for act in acts
            for number in range(100, 160)
        ]
        file = work / "raw" / "text" / f"{code}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines), encoding="utf-8")
    file = work / "prepare.yaml"
    file.write_text(
        "sources: {text: {kind: text, format: lines, files: {en: [raw/text/en.txt], de: "
        "[raw/text/de.txt]}}}\ntokenizer: {vocab_size: 330}\nheldout_share: 0.2\n",
        encoding="utf-8",
    )
    prepare(load_prepare(file), work / "corpus", base=work, workers=1)
    english.prepare_english(work, vocabulary=310, heldout=0.2)
    (work / "dictionaries").mkdir()
    (work / "dictionaries" / "en-de.txt").write_text(
        "house\tHaus\na\tein\nhouse\ta\n", encoding="utf-8"
    )


def english_counts(corpus: Path) -> dict[str, Any]:
    """What a preparation says of its English lines."""
    manifest = json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = manifest["sources"]["text"]["counts"]["en"]
    return found


@pytest.mark.slow
def test_cells_from_an_english_checkpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tiny models; other scores than perplexity need tests that are not here."""
    prepare_corpora(tmp_path)
    counts = [english_counts(tmp_path / name) for name in ("corpus", "english-corpus")]
    assert counts[0] == counts[1], "the same lines are held out"
    assert counts[0]["heldout"] > 100
    trained, facts = train_checkpoint("english", tmp_path, 4, 0, small=True)
    assert facts["steps"] == 2
    assert list(facts["heldout_losses"]) == ["en"]
    again, _ = train_checkpoint("english", tmp_path, 4, 0, small=True)
    assert again == trained, "it is there already"
    monkeypatch.setattr("benchmarks.claims.scores.all_scores", lambda *_, **__: {"scores": {}})
    cells = Setting(
        work=tmp_path,
        checkpoints={"english": trained},
        steps=3,
        stage0_steps=4,
        loader_workers=0,
        small=True,
    )
    found = {name: train_cell(cells, name, 0) for name in META}
    steps = {name: cell["steps"] for name, cell in found.items()}
    assert steps.pop("meta-scratch") == steps.pop("meta-transplant-long") == 3 + 2
    assert set(steps.values()) == {3}
    for name, cell in found.items():
        assert cell["checkpoints"] == (
            {} if "scratch" in name else {"english": trained.fingerprint}
        )
        assert 1 < cell["scores"]["perplexity"] < math.exp(8)
    assert found["meta-kd"]["start"] == SCRATCH
    perplexities = {cell["scores"]["perplexity"] for cell in found.values()}
    assert len(perplexities) == len(META), "every arm is another training"

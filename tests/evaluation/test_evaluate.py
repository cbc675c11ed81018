"""Evaluations of a model folder: what is scored, skipped, refused and written."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from typing import ClassVar

import pytest

from isoglot import __version__
from isoglot.errors import CorpusError, IsoglotError
from isoglot.evaluation.embed import embed
from isoglot.evaluation.evaluate import evaluate, evaluate_tasks
from isoglot.evaluation.settings import FeatureConfig
from isoglot.model_results import (
    add_scores,
    current_commit,
    existing_results,
)
from isoglot.results import Results, ResultsError, Score
from isoglot.tasks.bitext import UserPairs
from isoglot.tasks.layouts import Layout
from tests.tiny_corpus import words

embedding, retrieval = (
    import_module(f"isoglot.evaluation.{name}") for name in ("embed", "retrieval")
)
SETTINGS = FeatureConfig()


def test_cells_are_scored_and_kept(folder, data, tmp_path):
    out = tmp_path / "results.json"
    told: list[tuple[str, int, int | None]] = []
    names = ["tatoeba", "alignment", "bucc"]
    results = evaluate_tasks(
        folder, names, data, SETTINGS, out=out, progress=lambda *said: told.append(said)
    )
    assert Results.read(out) == results
    assert told == [
        ("tatoeba", 0, 2), ("tatoeba", 1, 2), ("tatoeba", 2, 2),
        ("alignment", 0, 1), ("alignment", 1, 1), ("bucc", 0, 1), ("bucc", 1, 1),
    ]  # fmt: skip
    cells = {(score.task, score.language) for score in results.scores}
    assert cells == {
        ("tatoeba", "de-en"), ("tatoeba", "sw-en"), ("alignment", "de-en"), ("bucc", "de-en"),
    }  # fmt: skip
    for task, layers in (("tatoeba", {0, 1, 2, 3, None}), ("alignment", {0, 1, 2, 3})):
        assert {score.layer for score in results.scores if score.task == task} == layers
    assert {len(score.data or "") for score in results.scores} == {16}
    aligned = [s for s in results.scores if s.metric == "aer"]
    assert [(s.value, s.higher_is_better, s.count) for s in aligned] == [(0.0, False, 5)] * 4


def test_retrieval_has_both_directions_and_their_mean(folder, data, tmp_path):
    results = evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=tmp_path / "r.json",
                             languages=["sw"])  # fmt: skip
    found = {s.metric: s.value for s in results.scores if s.layer == 2}
    assert set(found) == {"accuracy@1", "accuracy@1 sw→en", "accuracy@1 en→sw"}
    there, back = found["accuracy@1 sw→en"], found["accuracy@1 en→sw"]
    assert found["accuracy@1"] == pytest.approx((there + back) / 2)
    assert {s.language for s in results.scores} == {"sw-en"}


def test_all_true_pairs_are_mined_where_sides_are_equal(folder, data, tmp_path):
    results = evaluate_tasks(folder, ["bucc"], data, SETTINGS, out=tmp_path / "r.json")
    recall = [s.value for s in results.scores if s.metric == "recall"]
    assert recall[1:] == [1.0] * 3, "the best threshold takes them all"
    assert recall[0] < 1, "the first token's embedding says nothing of the sentence"


def test_the_threshold_of_mining_is_that_of_the_dev_part(folder, data, tmp_path, monkeypatch):
    place = data / "bucc2018/de-en"
    for code in ("de", "en"):
        rows = "\n".join(f"{code}-{n}\t{word}" for n, word in enumerate(words("aa")[9:13]))
        (place / f"de-en.sample.{code}").write_text(rows, encoding="utf-8")
    (place / "de-en.sample.gold").write_text("de-0\ten-0", encoding="utf-8")
    asked: list[int] = []

    def threshold(pairs, *, num_gold):
        asked.append(num_gold)
        return float("inf")

    monkeypatch.setattr("isoglot.evaluation.mining.best_threshold", threshold)
    results = evaluate_tasks(folder, ["bucc"], data, SETTINGS, out=tmp_path / "r.json")
    assert asked == [1] * 4, "one gold pair on dev, six on test; four layers"
    assert {s.value for s in results.scores if s.metric == "recall"} == {0.0}


@pytest.mark.parametrize(
    "settings",
    [
        FeatureConfig(),
        FeatureConfig(pooling="mean"),
        FeatureConfig(center=True, margin=True),
    ],
)
def test_layers_read_one_by_one_are_those_read_at_once(
    folder, data, tmp_path, monkeypatch, settings
):
    names = ["bucc", "tatoeba"]
    whole = evaluate_tasks(folder, names, data, settings, out=tmp_path / "a.json")
    passes: list[int] = []

    def counted(*arguments, layers, **options):
        passes.append(len(layers))
        return embed(*arguments, layers=layers, **options)

    monkeypatch.setattr(retrieval, "embed", counted)
    monkeypatch.setattr(embedding, "_MAX_VECTOR_NUMBERS", 1)
    assert evaluate_tasks(folder, names, data, settings, out=tmp_path / "b.json") == whole
    assert passes == [1] * (4 * 2 * 3), "four layers of two sides of three parts"


def test_an_empty_file_is_named(folder, data, tmp_path):
    (data / "tatoeba/swh-eng.tsv").write_text("", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"no examples of tatoeba in .*swh-eng\.tsv"):
        evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=tmp_path / "r.json")


def test_a_named_set_of_languages(folder, data, tmp_path):
    out = tmp_path / "r.json"
    results = evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out, languages=["tatoeba-36"])
    assert {s.language for s in results.scores} == {"de-en", "sw-en"}
    with pytest.raises(IsoglotError, match="did you mean 'tatoeba-36'"):
        evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out, languages=["tatoeba36"])


def test_what_is_scored_later_says_nothing_of_what_was_scored_before(
    folder, data, tmp_path, monkeypatch
):
    out = tmp_path / "r.json"
    before = Score(
        task="xnli", version=1, language="de", metric="accuracy", value=0.5, count=9, seed=0,
        commit="c0", selection="all-dev",
    )  # fmt: skip
    mark = evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out, languages=["sw"])
    replace(mark, scores=(before,)).write(out)
    monkeypatch.setattr("isoglot.model_results.current_commit", lambda: "c1")
    first, *others = evaluate_tasks(
        folder, ["tatoeba"], data, SETTINGS, out=out, languages=["sw"]
    ).scores
    assert first == before
    assert {(s.commit, s.selection) for s in others} == {("c1", None)}


def test_finished_cells_are_not_scored_again(folder, data, tmp_path, monkeypatch):
    out = tmp_path / "results.json"
    first = evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out, languages=["sw"])
    marked = replace(first, scores=tuple(replace(s, value=0.123) for s in first.scores))
    marked.write(out)
    both = evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out)
    assert both.scores[: len(first.scores)] == marked.scores
    assert {s.language for s in both.scores} == {"sw-en", "de-en"}

    def refuse(folder):
        raise AssertionError("nothing is left to be scored")

    monkeypatch.setattr("isoglot.evaluation.loading.load_for_scoring", refuse)
    assert evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out) == both


def test_another_way_of_reading_is_another_cell(folder, data, tmp_path):
    out = tmp_path / "results.json"
    evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out, languages=["sw"])
    unusual = FeatureConfig(margin=True, center=True, num_neighbors=3)
    results = evaluate_tasks(folder, ["tatoeba"], data, unusual, out=out, languages=["sw"])
    assert {s.scenario for s in results.scores} == {
        None, "centered, by margin, num_neighbors=3",
    }  # fmt: skip


def test_results_of_another_model_are_not_mixed_in(folder, data, tmp_path):
    out = tmp_path / "results.json"
    Results(model="other", fingerprint="f", scores=()).write(out)
    with pytest.raises(ResultsError, match="scores of another model, other"):
        evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out)


def test_what_cannot_be_scored(folder, data, tmp_path):
    out = tmp_path / "results.json"
    with pytest.raises(IsoglotError, match="did you mean 'tatoeba'"):
        evaluate_tasks(folder, ["tatoebas"], data, SETTINGS, out=out)
    with pytest.raises(IsoglotError, match="xnli has to be fine-tuned"):
        evaluate_tasks(folder, ["xnli"], data, SETTINGS, out=out)
    with pytest.raises(CorpusError, match="has no files of muse"):
        evaluate_tasks(folder, ["tatoeba", "muse"], data, SETTINGS, out=out)
    with pytest.raises(CorpusError, match="tatoeba only in de-en, sw-en"):
        evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out, languages=["fr"])
    assert not out.exists(), "all is checked before anything is scored"


class OwnTask(UserPairs):
    """A task that is not in the package."""

    name = "own"
    layouts: ClassVar = (Layout("tatoeba/{language}-{other}.tsv", split="test"),)


def test_tasks_of_your_own_with_pairs_and_without_a_file(folder, data, tmp_path):
    pairs = tmp_path / "aa-bb.tsv"
    pairs.write_text("ka\tlo\nlo\tka\n", encoding="utf-8")
    own = f"{__name__}:OwnTask"
    results = evaluate(folder.parent, [own], data, pairs=[pairs], languages=["sw", "aa-bb"])
    assert {(s.task, s.language) for s in results.scores} == {
        ("own", "sw-en"), ("retrieval", "aa-bb"),
    }  # fmt: skip
    with pytest.raises(IsoglotError, match="nothing to score"):
        evaluate(folder)


def test_languages_that_no_task_has_are_told_once(folder, data):
    told: list[str] = []
    tasks = ["tatoeba", "alignment"]
    found = evaluate(folder, tasks, data, languages=["sw", "de", "yo"], note=told.append)
    assert {score.language for score in found.scores} == {"de-en", "sw-en"}
    assert [said for said in told if "no data" in said] == [
        "there are no data of yo, only of de-en, sw-en."
    ]
    with pytest.raises(IsoglotError, match="'xx' is the code of no language"):
        evaluate(folder, tasks, data, languages=["sw", "xx"])


def test_languages_choose_files_of_pairs_too(folder, tmp_path):
    files = [tmp_path / f"{name}.tsv" for name in ("deu-eng", "en-sw", "de-fr", "en-be-tarask")]
    for file in files:
        file.write_text("ka\tlo\nlo\tka\n", encoding="utf-8")

    def scored(*languages: str) -> set[str]:
        found = evaluate(folder, pairs=files, languages=languages or None)
        return {score.language for score in found.scores}

    assert scored() == {"de-en", "en-sw", "de-fr", "en-be_tarask"}
    assert scored("de") == scored("deu") == {"de-en"}
    assert scored("de", "fra") == {"de-en", "de-fr"}
    # one file and one language need no list
    alone = evaluate(folder, pairs=str(files[1]), languages="sw")
    assert {score.language for score in alone.scores} == {"en-sw"}
    assert scored("be-tarask", "sw-en") == {"en-be_tarask", "en-sw"}
    with pytest.raises(CorpusError, match=r"none of the files of pairs .*deu-eng\.tsv"):
        scored("tr")


def test_data_in_several_folders(folder, data, tmp_path):
    other = tmp_path / "other"
    (other / "tatoeba").mkdir(parents=True)
    (other / "tatoeba/por-eng.tsv").write_text("ka\tlo\nlo\tka\n", encoding="utf-8")
    for languages in (["por", "deu"], ["pt", "de"]):
        results = evaluate(folder, "tatoeba", [data, other], languages=languages)
        assert {score.language for score in results.scores} == {"pt-en", "de-en"}
    with pytest.raises(CorpusError, match="nowhere: there is no such folder"):
        evaluate(folder, "tatoeba", [data, tmp_path / "nowhere"])


def test_tasks_that_need_training_are_fine_tuned(folder, data, tmp_path, monkeypatch):
    score = Score(task="xnli", version=1, language="sw", metric="accuracy", value=0.5, count=2)
    requests = []

    def finetune_tasks(folder, tasks, data, request, *, out, progress, note):
        requests.append((tasks, request.scenario.targets))
        return add_scores(existing_results(folder, out), [score], out)

    monkeypatch.setattr("isoglot.finetuning.finetune.finetune_tasks", finetune_tasks)
    out = tmp_path / "results.json"
    results = evaluate(folder, ["xnli", "tatoeba"], data, languages=["sw"], out=out)
    assert requests == [(["xnli"], ("sw",))]
    assert {s.task for s in results.scores} == {"xnli", "tatoeba"}
    assert Results.read(out) == results


def test_the_results_file(folder, corpus, tmp_path):
    pairs = corpus.folder.parent / "raw/pairs/aa-bb.tsv"
    results = evaluate(folder, pairs=[pairs], features=FeatureConfig(limit=7))
    results.write(tmp_path / "new/results.json")
    content = json.loads((tmp_path / "new/results.json").read_text(encoding="utf-8"))
    assert list(content) == [
        "schema", "isoglot", "model", "fingerprint", "scores", "averages",
    ]  # fmt: skip
    assert content["schema"] == 5
    assert content["isoglot"] == __version__
    assert content["model"] == str(folder)
    assert len(content["scores"]) == 3 * 5, (
        "two directions, their mean; three layers, embeddings, exported vectors"
    )
    assert content["scores"][1] == {
        "task": "retrieval",
        "version": 2,
        "language": "aa-bb",
        "metric": "accuracy@1 aa→bb",
        "value": results.scores[1].value,
        "count": 7,
        "higher_is_better": True,
        "low": results.scores[1].low,
        "high": results.scores[1].high,
        "chance": None,
        "layer": 0,
        "seed": None,
        "scenario": None,
        "selection": None,
        "epoch": None,
        "halves": list(results.scores[1].halves or ()),
        "outcomes": None,
        "data": results.scores[1].data,
        "commit": current_commit(),
    }
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["results.json"]

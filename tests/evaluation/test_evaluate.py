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
from isoglot.evaluation.evaluate import SCORERS, evaluate, evaluate_tasks
from isoglot.evaluation.settings import FeatureConfig
from isoglot.model_results import (
    add_scores,
    current_commit,
    existing_results,
)
from isoglot.results import Results, ResultsError, Score
from isoglot.tasks import FINE_TUNED_KINDS, all_tasks
from isoglot.tasks.bitext import UserPairs
from isoglot.tasks.layouts import Layout
from tests.tiny_corpus import words

embedding, retrieval = (
    import_module(f"isoglot.evaluation.{name}") for name in ("embed", "retrieval")
)
SETTINGS = FeatureConfig()


@pytest.fixture
def data(tmp_path):
    """Tatoeba in two languages, a word alignment and the start of a BUCC."""
    folder = tmp_path / "data"
    (folder / "tatoeba").mkdir(parents=True)
    for code, shift in (("deu", 0), ("swh", 3)):
        first, second = words("aa")[shift : shift + 20], words("bb")[shift : shift + 20]
        rows = "\n".join(f"{a} {b}\t{b} {a}" for a, b in zip(first, second, strict=True))
        (folder / f"tatoeba/{code}-eng.tsv").write_text(rows, encoding="utf-8")
    place = folder / "xlm-align/de-en"
    place.mkdir(parents=True)
    (place / "test.de").write_text("\n".join(words("aa")[:5]), encoding="utf-8")
    (place / "test.en").write_text("\n".join(words("aa")[:5]), encoding="utf-8")
    (place / "alignv2.txt").write_text("\n".join(f"{n} 1 1 S" for n in range(5)), encoding="utf-8")
    place = folder / "bucc2018/de-en"
    place.mkdir(parents=True)
    for code in ("de", "en"):
        rows = "\n".join(f"{code}-{n}\t{word}" for n, word in enumerate(words("aa")[:9]))
        (place / f"de-en.training.{code}").write_text(rows, encoding="utf-8")
    gold = "\n".join(f"de-{n}\ten-{n}" for n in range(6))
    (place / "de-en.training.gold").write_text(gold, encoding="utf-8")
    return folder


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
    assert {score.layer for score in results.scores} == {0, 1, 2, 3}
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


def test_the_threshold_of_mining_is_that_of_the_dev_part(folder, data, tmp_path):
    "On the sample nothing is a translation, so that nothing may be taken from the test part."
    place = data / "bucc2018/de-en"
    for code in ("de", "en"):
        rows = "\n".join(f"{code}-{n}\t{word}" for n, word in enumerate(words("aa")[:9]))
        (place / f"de-en.sample.{code}").write_text(rows, encoding="utf-8")
    (place / "de-en.sample.gold").write_text("", encoding="utf-8")
    results = evaluate_tasks(folder, ["bucc"], data, SETTINGS, out=tmp_path / "r.json")
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
        None, "centred, by margin, num_neighbors=3",
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


def test_every_kind_of_task_has_a_scorer():
    assert {task.kind for task in all_tasks()} == FINE_TUNED_KINDS | set(SCORERS)
    for place in SCORERS.values():
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(f"isoglot.evaluation.{module}"), function))


class OwnTask(UserPairs):
    """A task that is not in the package."""

    name = "own"
    layouts: ClassVar = (Layout("tatoeba/{language}-{other}.tsv", split="test"),)


def test_tasks_of_your_own_with_pairs_and_without_a_file(folder, data, tmp_path):
    pairs = tmp_path / "aa-bb.tsv"
    pairs.write_text("ka\tlo\nlo\tka\n", encoding="utf-8")
    own = f"{__name__}:OwnTask"
    results = evaluate(folder.parent, [own], data, pairs=[pairs], languages=["sw"])
    assert {(s.task, s.language) for s in results.scores} == {
        ("own", "sw-en"), ("retrieval", "aa-bb"),
    }  # fmt: skip
    with pytest.raises(IsoglotError, match="nothing to score"):
        evaluate(folder)


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
    assert content["schema"] == 4
    assert content["isoglot"] == __version__
    assert content["model"] == str(folder)
    assert len(content["scores"]) == 3 * 4, "two directions, their mean; three layers, embeddings"
    assert content["scores"][1] == {
        "task": "retrieval",
        "version": 1,
        "language": "aa-bb",
        "metric": "accuracy@1 aa→bb",
        "value": results.scores[1].value,
        "count": 7,
        "higher_is_better": True,
        "layer": 0,
        "seed": None,
        "scenario": None,
        "selection": None,
        "epoch": None,
        "commit": current_commit(),
    }
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["results.json"]

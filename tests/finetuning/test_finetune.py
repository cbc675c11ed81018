from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification

from isoglot.averaging import source_language
from isoglot.errors import CorpusError, ModelError, RecipeError
from isoglot.finetuning import finetune
from isoglot.finetuning.plan import FinetunePlan
from isoglot.finetuning.settings import FinetuneRequest, ScenarioConfig
from isoglot.models.loading import load_masked_lm
from isoglot.tasks.testbed import WorldSizes
from tests.finetuning.tasks import DevOnlyTask, OwnTask, PairTask, TwoLanguageTask, finetuned

FAST = {"epochs": 1, "batch_size": 4, "learning_rate": 1e-3, "selection": "last"}


def request(
    name="zero-shot", *, sources=("aa",), targets=None, seeds=(0,), **changes
) -> FinetuneRequest:
    return FinetuneRequest(
        scenario=ScenarioConfig(name=name, sources=sources, targets=targets),
        protocol="testbed",
        changes={**FAST, **changes},
        seeds=seeds,
    )


def cells(runs):
    return [[(s.language, s.seed, s.scenario) for s in scores] for scores in runs]


def test_a_training_for_each_plan_and_seed(folder, tmp_path):
    runs = list(finetuned(folder, PairTask(), tmp_path, request(seeds=(3, 4))))
    label = (
        "zero-shot from aa, testbed, batch_size=4, epochs=1, learning_rate=0.001, selection=last"
    )
    assert cells(runs) == [[(code, seed, label) for code in ("aa", "bb", "cc")] for seed in (3, 4)]
    assert {s.selection for scores in runs for s in scores} == {"last"}
    assert all(s.count == PairTask.number and s.metric == "accuracy" for r in runs for s in r)


def test_every_direction_of_transfer(folder, tmp_path):
    runs = finetuned(
        folder, PairTask(), tmp_path, request(sources=("aa", "cc"), targets=("aa", "cc"))
    )
    found = {(source_language(s.scenario), s.language) for scores in runs for s in scores}
    assert found == {(a, b) for a in ("aa", "cc") for b in ("aa", "cc")}


def test_finished_trainings_are_not_run_again(folder, tmp_path):
    task = PairTask()
    (first,) = finetuned(folder, task, tmp_path, request())
    again = finetuned(folder, task, tmp_path, request(seeds=(0, 1)), finished=first)
    assert [scores[0].seed for scores in again] == [1]
    other_version = [replace(score, version=2) for score in first]
    assert list(finetuned(folder, task, tmp_path, request(), finished=other_version))


def test_a_model_to_keep_is_trained_though_its_scores_exist(folder, tmp_path):
    task, place = PairTask(), tmp_path / "kept"
    (first,) = finetuned(folder, task, tmp_path, request())
    assert list(finetuned(folder, task, tmp_path, request(), finished=first, save_models=place))
    assert len(list(place.iterdir())) == 1
    assert not list(finetuned(folder, task, tmp_path, request(), finished=first, save_models=place))


def test_a_seed_gives_the_same_weights_twice_and_another_seed_others(folder, tmp_path):
    def weights(seed: int, place: str) -> torch.Tensor:
        list(
            finetuned(
                folder, PairTask(), tmp_path, request(seeds=(seed,)), save_models=tmp_path / place
            )
        )
        (kept,) = (tmp_path / place).iterdir()
        model = AutoModelForSequenceClassification.from_pretrained(kept)
        return torch.cat([weight.flatten() for weight in model.parameters()])

    one, same, other = weights(0, "a"), weights(0, "b"), weights(1, "c")
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_kept_model_is_the_tasks_and_its_encoder_opens_as_before(folder, tmp_path):
    list(finetuned(folder, PairTask(), tmp_path, request(), save_models=tmp_path / "kept"))
    (kept,) = (tmp_path / "kept").iterdir()
    tuned = AutoModelForSequenceClassification.from_pretrained(kept)
    encoder, info = AutoModelForMaskedLM.from_pretrained(kept / "encoder", output_loading_info=True)
    assert not info["missing_keys"]
    before = AutoModelForMaskedLM.from_pretrained(folder)
    tuned_layers = dict(tuned.base_model.encoder.named_parameters())
    for name, weight in encoder.base_model.encoder.named_parameters():
        assert torch.equal(weight, tuned_layers[name])
    changed = before.get_input_embeddings().weight != encoder.get_input_embeddings().weight
    assert changed.any()
    assert torch.equal(before.lm_head.dense.weight, encoder.lm_head.dense.weight)
    with pytest.raises(ModelError, match="exists"):
        list(finetuned(folder, PairTask(), tmp_path, request(), save_models=tmp_path / "kept"))


@pytest.mark.parametrize(
    ("selection", "judged"), [("source-dev", {"aa"}), ("all-dev", {"aa", "bb", "cc"})]
)
def test_the_selection_rule_looks_at_its_dev_parts_and_no_others(
    folder, tmp_path, selection, judged
):
    task = PairTask()
    list(finetuned(folder, task, tmp_path, request(epochs=2, selection=selection)))
    on_dev = [language for language, split in task.asked if split == "dev"]
    assert set(on_dev) == judged
    assert len(on_dev) == 2 * len(judged)
    assert task.asked[-1][1] == "test"


@pytest.mark.parametrize(
    ("judged", "chosen"), [([0.1, 0.9, 0.3], 2), ([0.1, 0.2, 0.3], 3), (None, 3)]
)
def test_scores_say_which_epoch_they_are_of(folder, tmp_path, monkeypatch, judged, chosen):
    coming = iter(judged or ())
    judge = None if judged is None else lambda: next(coming)
    monkeypatch.setattr(finetune._Finetuner, "_dev_score", lambda *_: judge)
    (scores,) = finetuned(folder, PairTask(), tmp_path, request(epochs=3))
    assert {score.epoch for score in scores} == {chosen}


def test_pairs_of_languages_are_scored_and_judge_nothing(folder, tmp_path):
    task = TwoLanguageTask()
    (scores,) = finetuned(folder, task, tmp_path, request(selection="all-dev"))
    assert {score.language for score in scores} == {"aa", "bb", "cc", "aa-bb"}
    assert {code for code, split in task.asked if split == "dev"} == {"aa", "bb", "cc"}


def test_a_dev_part_never_both_chooses_and_scores(folder, tmp_path):
    with pytest.raises(CorpusError, match="--selection last"):
        list(finetuned(folder, DevOnlyTask(), tmp_path, request(selection="source-dev")))
    with pytest.raises(CorpusError, match="--selection last"):  # nor under the task's own name
        FinetunePlan(DevOnlyTask(), tmp_path, request(selection="source-dev"), DevOnlyTask())
    assert list(finetuned(folder, DevOnlyTask(), tmp_path, request()))


def test_training_data_of_another_task(folder, tmp_path):
    (scores,) = finetuned(
        folder, DevOnlyTask(), tmp_path, request(selection="source-dev"), train_task=PairTask()
    )
    assert {score.task for score in scores} == {"dev-only"}


def test_code_switched_training_says_so(folder, tmp_path):
    (scores,) = finetuned(
        folder, PairTask(), tmp_path, request("translate-train-all", code_switch=True)
    )
    assert {str(score.scenario).split(", t")[0] for score in scores} == {
        "translate-train-all, code-switched"
    }
    (plain,) = finetuned(folder, PairTask(), tmp_path, request("translate-train-all"))
    assert {str(score.scenario).split(", t")[0] for score in plain} == {"translate-train-all"}


def test_what_is_no_translation_is_refused_as_one_and_pooled_as_own(folder, tmp_path):
    with pytest.raises(CorpusError, match="not translations of rows of 'aa'"):
        list(finetuned(folder, OwnTask(), tmp_path, request("translate-train")))
    assert len(list(finetuned(folder, OwnTask(), tmp_path, request("supervised")))) == 3
    assert len(list(finetuned(folder, OwnTask(), tmp_path, request("pooled")))) == 1


def test_progress_reaches_its_end(folder, tmp_path):
    told: list[tuple[str, int, int | None]] = []
    list(
        finetuned(
            folder,
            PairTask(),
            tmp_path,
            request(gradient_accumulation_steps=2),
            progress=lambda *news: told.append(news),
        )
    )
    name = "pairs zero-shot from aa seed 0"
    assert told == [
        *((name, done, 3) for done in (1, 2, 3)),
        *((f"{name}, scoring", done, 3) for done in (0, 1, 2, 3)),
    ]


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(ModelError, match=str(tmp_path)):
        list(finetuned(tmp_path, PairTask(), tmp_path, request()))


def test_a_bare_encoder_is_kept_without_a_head(folder, tmp_path):
    """A random one beside it would look as if it could be probed."""
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare)
    AutoModel.from_pretrained(folder).save_pretrained(bare)
    for start, complete in ((folder, True), (bare, False)):
        place = tmp_path / f"kept-{complete}"
        list(finetuned(start, PairTask(), tmp_path, request(), save_models=place))
        (kept,) = place.iterdir()
        missing = load_masked_lm(str(kept / "encoder"), dropout=None).missing
        assert (not missing) == complete


def test_new_weights_and_files_that_are_not_read_are_told(folder, tmp_path):
    place = tmp_path / "nli/xnli"
    place.mkdir(parents=True)
    rows = "".join(f"kalo\tmi\t{label}\n" for label in ("neutral", "entailment"))
    for split in ("train", "dev", "test"):
        (place / f"en.{split}.tsv").write_text(f"premise\thypo\tlabel\n{rows}", encoding="utf-8")
    (place / "hr.test.json").touch()
    said: list[str] = []
    settings = {"epochs": 1, "selection": "last"}
    finetune.finetune(
        folder, ["xnli"], tmp_path, protocol="testbed", settings=settings, seeds=2, note=said.append
    )
    assert [note.split(":")[0] for note in said] == ["There, and not read as xnli", str(folder)]
    assert "classifier.dense, classifier.out_proj newly initialized" in said[1]


def test_bf16_on_a_cpu_is_tried_before_training_and_advised(folder, tmp_path, monkeypatch):
    def refuse() -> float:
        raise RecipeError("precision: bf16 ended a test process with SIGILL on this CPU.")

    monkeypatch.setattr("isoglot.models.cpu_precision.bf16_speedup", refuse)
    monkeypatch.setattr("isoglot.models.cpu_precision.bf16_instructions", lambda: "amx_bf16")
    monkeypatch.setattr("isoglot.models.cpu_precision._MIN_WEIGHTS", 0)
    with pytest.raises(RecipeError, match="SIGILL"):
        list(finetuned(folder, PairTask(), tmp_path, request(precision="bf16")))
    said: list[str] = []
    list(finetuned(folder, PairTask(), tmp_path, request(), note=said.append))
    assert sum("--set precision=bf16" in note for note in said) == 1


def test_the_public_function_returns_scores_and_keeps_them_in_a_file(folder, tmp_path, monkeypatch):
    sizes = WorldSizes(train=32, dev=8, test=20)
    monkeypatch.setattr("isoglot.tasks.testbed.WorldSizes", lambda: sizes)
    options: dict[str, Any] = {
        "protocol": "testbed",
        "languages": ["en", "sw"],
        "settings": {"epochs": 1, "selection": "last"},
    }
    results = finetune.finetune(folder, ["testbed-pos"], tmp_path, seeds=[3], **options)
    assert {(s.task, s.language, s.seed) for s in results.scores} == {
        ("testbed-pos", "en", 3),
        ("testbed-pos", "sw", 3),
    }
    assert not list(tmp_path.iterdir())
    out = tmp_path / "results.json"
    again = finetune.finetune(folder, ["testbed-pos"], tmp_path, seeds=[3], out=out, **options)
    assert [s.value for s in again.scores] == [s.value for s in results.scores]
    written = out.stat().st_mtime_ns
    assert finetune.finetune(folder, ["testbed-pos"], tmp_path, seeds=[3], out=out, **options)
    assert out.stat().st_mtime_ns == written

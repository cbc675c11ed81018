"""A sharded model is built with weights by the first process alone, and all get its weights.

Two gloo processes build and shard a model. What they hold is compared with the model that one
process builds, bit for bit, and the memory of their tensors is counted on the way.
"""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from typing_extensions import override

from isoglot.batching.counter_rng import key_of
from isoglot.batching.planner import BatchConfig
from isoglot.corpus import Corpus
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.base import ObjectiveModule, TokenPrediction
from isoglot.objectives.mlm import MLM
from isoglot.pretraining.build import RunRequest, build_run, build_train_module
from isoglot.pretraining.config import PretrainConfig, objectives_of
from isoglot.pretraining.processes.distributed import DistributedConfig, share_module
from isoglot.pretraining.processes.initial_weights import _layout
from isoglot.pretraining.stage_data import with_corpus_defaults
from tests.pretraining import driver
from tests.pretraining.estimates.test_memory_estimate import LiveBytes
from tests.pretraining.groups import Group

if TYPE_CHECKING:
    from accelerate import Accelerator

DEEP = ModelConfig(
    size="tiny", num_layers=8, hidden_size=64, num_heads=2, max_positions=96, dropout=0.1
)
ON_FIRST = ("scratch", "folder", "contrast", "rotary", "albert")
EVERYWHERE = ("reads weights", "keeps tensors", "untied")
BATCH = BatchConfig(rows=4, micro_rows=2, row_length=96)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadsWeights(MLM):
    """An objective that reads numbers of the encoder while its module is built."""

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        words = encoder.model.get_input_embeddings().weight.detach()
        assert float(words.abs().sum()) > 0
        return TokenPrediction()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepsTensors(MLM):
    """An objective whose module keeps a tensor that is no buffer."""

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        module = TokenPrediction()
        module.kept = {"some": [torch.ones(3)]}  # type: ignore[assignment]
        return module


def config_of(case: str, folder: Path) -> PretrainConfig:
    plain = replace(driver.config(model=DEEP), distributed=DistributedConfig(strategy="fsdp"))
    plain = replace(plain, batch=BATCH)
    match case:
        case "folder" | "untied":
            return replace(plain, model=ModelConfig(init_from=str(folder / f"{case}-model")))
        case "rotary":
            return replace(plain, model=replace(DEEP, size="modern-tiny"))
        case "albert":
            return replace(plain, model=replace(DEEP, size="albert"))
        case "contrast":
            contrast = replace(driver.contrast(), model=DEEP, batch=BATCH)
            return replace(contrast, distributed=plain.distributed)
        case "reads weights":
            return replace(plain, objectives={"mlm": ReadsWeights()})
        case "keeps tensors":
            return replace(plain, objectives={"mlm": KeepsTensors()})
    return plain


class RealBytes(LiveBytes):
    """The same without tensors of the meta device, which have no memory."""

    @override
    def add(self, tensor: Tensor) -> None:
        if not tensor.is_meta and not isinstance(tensor, DTensor):
            super().add(tensor)


def shard_all(accelerator: Accelerator, corpus: Path, folder: Path) -> None:
    """On each process: every case, one after the other."""
    torch.set_num_threads(1)
    opened = Corpus.open(corpus, verify="never")
    for case in (*ON_FIRST, *EVERYWHERE):
        found = shard(accelerator, config_of(case, folder), opened, folder / case)
        file = folder / f"{case}-{accelerator.process_index}.json"
        file.write_text(json.dumps(found), encoding="utf-8")


def shard(
    accelerator: Accelerator, config: PretrainConfig, opened: Corpus, run: Path
) -> dict[str, Any]:
    """Build and shard, and compare with the model of one process; gives what was counted."""
    said = io.StringIO()
    with RealBytes() as counter:
        console = Console(file=said, width=10_000)
        request = RunRequest(
            recipe=config,
            corpus=opened,
            folder=run,
            name="run",
            console=console,
            accelerator=accelerator,
        )
        module = build_run(request).module
        on_meta = [weight.is_meta for weight in module.parameters()]
        share_module(module, config.distributed, accelerator)
    random = torch.get_rng_state()
    expected = built_alone(config, opened)
    found: dict[str, Any] = {
        "on_meta": sum(on_meta) / len(on_meta),
        "peak": counter.peak,
        "whole": sum(one.nbytes for one in (*expected.parameters(), *expected.buffers())),
        "held": sum(_local(one).nbytes for one in (*module.parameters(), *module.buffers())),
        "random": torch.equal(random, torch.get_rng_state()),
        "said": said.getvalue(),
    }
    assert_equal(module, expected)
    return found


def built_alone(config: PretrainConfig, corpus: Corpus) -> nn.Module:
    """The module of one process; torch's random state is as after its building."""
    torch.manual_seed(key_of(config.seed, "weights") >> 1)
    config = with_corpus_defaults(config, corpus)
    objectives = {name: one.prepare(corpus) for name, one in objectives_of(config).items()}
    return build_train_module(config.model, objectives, corpus, row_length=96)


def assert_equal(module: nn.Module, expected: nn.Module) -> None:
    """The same weights and buffers under the same names, tied where the others are."""
    mine, theirs = _named(module), _named(expected)
    assert list(mine) == list(theirs)
    for name, tensor in theirs.items():
        found = mine[name]
        whole = found.full_tensor() if isinstance(found, DTensor) else found
        assert whole.dtype == tensor.dtype, name
        assert torch.equal(whole, tensor), name
        assert found.requires_grad == tensor.requires_grad, name
    for one in mine:
        for other in mine:
            assert (mine[one] is mine[other]) == (theirs[one] is theirs[other]), (one, other)


def _named(module: nn.Module) -> dict[str, Tensor]:
    named = module.named_parameters(remove_duplicate=False)
    return {**dict(named), **dict(module.named_buffers(remove_duplicate=False))}


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def save_model(corpus: Corpus, folder: Path, *, untied: bool) -> None:
    """A model folder whose weights are drawn otherwise than those of a new model."""
    encoder = Encoder.build(DEEP, corpus.vocabulary)
    with torch.no_grad():
        for weight in encoder.model.parameters():
            weight.normal_()
    encoder.model.save_pretrained(folder)
    if untied:  # transformers trusts the file, which has both, and not the config
        file = folder / "model.safetensors"
        weights = load_file(file)
        words = next(name for name in weights if name.endswith("word_embeddings.weight"))
        weights["lm_head.decoder.weight"] = weights[words].flip(0).contiguous()
        save_file(weights, file, metadata={"format": "pt"})
    shutil.copytree(corpus.tokenizer_folder, folder, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def counted(corpus, tmp_path_factory) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """What both processes have counted, by case."""
    folder = tmp_path_factory.mktemp("initial")
    for name in ("folder", "untied"):
        save_model(corpus, folder / f"{name}-model", untied=name == "untied")
    group = Group(shard_all, folder, corpus.folder, folder)
    assert group.end() == [0, 0], group.said(0) + group.said(1)

    def read(case: str, rank: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((folder / f"{case}-{rank}.json").read_text())
        return found

    return {case: (read(case, 0), read(case, 1)) for case in (*ON_FIRST, *EVERYWHERE)}


@pytest.mark.parametrize("case", ON_FIRST)
def test_only_the_first_process_holds_all_initial_weights(case, counted):
    first, second = counted[case]
    assert (first["on_meta"], second["on_meta"]) == (0, 1)
    assert first["random"]
    assert second["random"]
    assert first["peak"] >= first["whole"]
    assert second["held"] < 0.6 * second["whole"]
    if case != "albert":  # its one layer is most of the model, and whole for a moment
        assert second["peak"] < 0.7 * second["whole"]
    assert "host memory" not in first["said"]


@pytest.mark.parametrize("case", EVERYWHERE)
def test_a_module_that_needs_numbers_is_built_whole_by_every_process(case, counted):
    first, second = counted[case]
    assert (first["on_meta"], second["on_meta"]) == (0, 0)
    assert first["random"]
    assert second["random"]
    assert second["peak"] >= second["whole"]
    assert "every process first holds all weights" in first["said"]


def test_what_an_lm_head_found_out_with_numbers_is_compared(corpus):
    """A process without numbers assumes that a head ends with the product; the first one knows."""
    encoder = Encoder.build(DEEP, corpus.vocabulary)
    with torch.device("meta"):
        assumed = Encoder.build(DEEP, corpus.vocabulary)
    assert _layout(assumed) == _layout(encoder)
    encoder.lm_head.ends_with_output_embeddings = False
    assert _layout(assumed) != _layout(encoder)

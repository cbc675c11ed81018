"""Retrieval on held-out pairs: against sentences encoded one by one and compared by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.moco import MoCo
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.config import LoggingConfig, StageConfig
from isoglot.pretraining.monitoring.heldout_retrieval import HeldoutRetrieval, accuracy_both_ways
from isoglot.pretraining.train_module import TrainModule


@pytest.fixture(scope="module")
def encoder(corpus):
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=96)
    return Encoder.build(settings, corpus.vocabulary).eval()


def make(corpus, stream, objectives, examples=200):
    context = SimpleNamespace(
        corpus=corpus,
        objectives=objectives,
        known_objectives=objectives,
        accelerator=Accelerator(cpu=True),
        config=SimpleNamespace(
            batch=BatchConfig(rows=3, micro_rows=3, row_length=96),
            logging=LoggingConfig(validate_examples=examples),
        ),
    )
    stage = StageConfig(steps=1, streams={"mine": stream})
    return HeldoutRetrieval(context, stage)  # type: ignore[arg-type]


def by_hand(encoder, corpus, languages, pooling):
    """One sentence at a time through the plain model, in float64 after it."""
    table, vocabulary = corpus.table("pairs", languages, "heldout"), corpus.vocabulary
    sides = []
    for side in ("first", "second"):
        vectors = []
        for row in range(table.num_rows):
            ids = [vocabulary.cls, *table.ids(side, row).tolist(), vocabulary.sep]
            with torch.no_grad():
                states = encoder.model.base_model(torch.tensor([ids])).last_hidden_state[0]
            vector = states[0] if pooling == "cls" else states.mean(dim=0)
            vectors.append((vector / vector.norm()).double().numpy())
        sides.append(np.array(vectors))
    cosines = sides[0] @ sides[1].T
    there = [cosines[row].argmax() == row for row in range(len(cosines))]
    back = [cosines[:, row].argmax() == row for row in range(len(cosines))]
    return (sum(there) + sum(back)) / (2 * len(cosines))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_it_is_the_accuracy_of_sentences_encoded_alone(corpus, encoder, pooling):
    moco = MoCo(queue=QueueConfig(size=16), pooling=pooling)
    stream = ParallelStream(objectives=("moco",), order="shuffled", mixup=True)
    found = make(corpus, stream, {"moco": moco})(TrainModule(encoder, {}, corpus))
    expected = {code: by_hand(encoder, corpus, code, pooling) for code in ("aa-bb", "aa-cc")}
    for code, value in expected.items():
        assert found.pop(f"valid/mine/{code}/retrieval") == pytest.approx(value, abs=1e-9)
    mean = sum(expected.values()) / 2
    rows = [corpus.table("pairs", code, "heldout").num_rows for code in expected]
    assert found.pop("valid/mine/pairs") == sum(rows)
    assert found == {"valid/mine/mean/retrieval": pytest.approx(mean, abs=1e-9)}


def test_recipes_without_contrast_and_few_examples(corpus, encoder):
    module = TrainModule(encoder, {}, corpus)
    stream = ParallelStream(objectives=("tlm",), languages=("aa-cc",))
    found = make(corpus, stream, {"tlm": TLM()})(module)
    expected = by_hand(encoder, corpus, "aa-cc", "mean")
    assert found["valid/mine/aa-cc/retrieval"] == pytest.approx(expected, abs=1e-9)
    few = make(corpus, replace(stream, overlong="drop"), {"tlm": TLM()}, examples=2)(module)
    assert few["valid/mine/aa-cc/retrieval"] in (0.0, 0.25, 0.5, 0.75, 1.0)


def test_both_directions_count_and_ties_are_guesses():
    first = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert accuracy_both_ways(first, first * torch.tensor([[3.0], [0.5], [2.0]])) == 1.0
    # from the first side all are found; back, the second is nearest to the third
    second = torch.tensor([[1.0, 0.0], [0.6, 1.0], [1.0, 1.1]])
    forward = [(row @ (second / second.norm(dim=1, keepdim=True)).T).argmax() for row in first]
    assert [int(index) for index in forward] == [0, 1, 2]
    assert accuracy_both_ways(first, second) == pytest.approx((3 / 3 + 2 / 3) / 2)
    same = torch.ones(4, 2)
    assert accuracy_both_ways(same, same) == pytest.approx(1 / 4)

"""Which number of rows at a time is tried next, and which is taken."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.errors import IsoglotError
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.entailment import ObjectEntailment
from isoglot.objectives.entity import EntityPrediction
from isoglot.objectives.mlm import MLM
from isoglot.objectives.moco import MoCo
from isoglot.pretraining.estimates.measuring import first_rows
from isoglot.pretraining.estimates.micro_rows import (
    DoesNotFitError,
    Search,
    SizeTrial,
    encoded_twice,
    in_one_piece,
    possible_sizes,
    split_sensitive,
)


class Machine:
    """Speeds by size; sizes above a limit do not fit."""

    def __init__(self, speed, limit=10**9, bytes_per_row=1):
        self.speed, self.limit, self.bytes_per_row, self.tried = speed, limit, bytes_per_row, []

    def __call__(self, size):
        self.tried.append(size)
        if size > self.limit:
            return None
        return SizeTrial(
            micro_rows=size,
            tokens_per_second=self.speed(size),
            peak_bytes=100 + size * self.bytes_per_row,
        )


def search(machine, rows, **settings):
    return Search(sizes=possible_sizes(rows, 1), run=machine, **{"seconds": 1e9, **settings})


H200 = {48: 500_000, 64: 534_000, 96: 544_171, 128: 520_000, 192: 477_220, 384: 400_000}


def h200(size):
    return H200.get(size, 8000 * size if size < 48 else 450_000)


def test_the_fastest_is_taken_not_the_largest():
    machine = Machine(h200)
    found = search(machine, 384).best(64)
    assert found.number == 96
    assert machine.tried[:3] == [64, 192, 96]
    assert 384 not in machine.tried
    assert "96: 544,171" in found.reason


def test_a_size_that_does_not_fit_ends_the_way_up():
    machine = Machine(lambda size: 1000 * size, limit=20)
    found = search(machine, 64).best(8)
    assert found.number == 16
    assert machine.tried == [8, 32, 16]
    assert "32 rows do not fit the memory" in found.reason


def test_a_first_size_that_does_not_fit_is_halved_until_one_fits():
    machine = Machine(lambda size: 1000 * size, limit=3)
    assert search(machine, 64).best(32).number == 2
    assert max(machine.tried) == 32
    assert [size for size in machine.tried if size > 3] == [32, 16, 8, 4]


def test_where_smaller_is_faster_smaller_sizes_are_tried():
    machine = Machine(lambda size: 1000 / size)
    assert search(machine, 64).best(16).number == 1


def test_of_sizes_as_fast_the_smallest_is_taken():
    machine = Machine(lambda size: {8: 99.5, 16: 100.0, 32: 99.0}.get(size, 50.0))
    assert search(machine, 32).best(8).number == 8


def test_a_size_whose_memory_is_predicted_not_to_fit_is_not_tried():
    machine = Machine(lambda size: 1000 * size, bytes_per_row=100)
    found = search(machine, 64, max_bytes=100 + 20 * 100).best(4)
    assert found.number == 16
    assert machine.tried == [4, 16, 8]


def test_without_any_size_that_fits_an_error_says_so():
    with pytest.raises(DoesNotFitError, match="not even 1 row") as caught:
        search(Machine(h200, limit=0), 8).best(4)
    assert caught.value.largest == 0


def test_no_new_size_is_tried_after_the_time():
    machine, times = Machine(lambda size: 1000 * size), iter([0, 1, 2, 11, 12, 13, 14, 15, 16])
    found = search(machine, 1024, seconds=10, clock=lambda: next(times)).best(4)
    assert machine.tried == [4, 16, 64]
    assert found.number == 64


def test_a_small_model_on_a_gpu_reaches_large_micro_batches_with_few_trials():
    """An H200, 6 layers of width 384: 2.54M tokens/s with 256 rows, 2.90M with 1,024."""
    speeds = {128: 2_300_000, 256: 2_537_972, 512: 2_750_000, 1024: 2_898_675}
    machine = Machine(lambda size: speeds.get(size, 10_000 * size))
    assert search(machine, 1024).best(128).number == 1024
    assert machine.tried == [128, 512, 1024]


@given(
    rows=st.integers(1, 400),
    first=st.integers(1, 64),
    fixed=st.floats(0.1, 200),
    quadratic=st.floats(0, 0.5),
    limit=st.integers(1, 400),
)
def test_the_choice_fits_and_is_within_a_tenth_of_the_best(rows, first, fixed, quadratic, limit):
    def speed(size):
        return size / (fixed + size + quadratic * size * size)

    machine = Machine(speed, limit)
    found = search(machine, rows).best(first)
    fitting = [size for size in possible_sizes(rows, 1) if size <= limit]
    assert found.number in fitting
    # a step that has only few divisors has neighbors far apart
    assert speed(found.number) >= 0.9 * max(map(speed, fitting))


def test_sizes_divide_the_part_of_each_process():
    assert possible_sizes(24, 2) == [1, 2, 3, 4, 6, 12]
    assert possible_sizes(24, 2, smallest=3) == [3, 4, 6, 12]
    with pytest.raises(IsoglotError, match="multiple of 5"):
        possible_sizes(24, 5)
    with pytest.raises(IsoglotError, match="6 or more"):
        possible_sizes(4, 2, smallest=3)


@pytest.mark.parametrize("negatives", ["step", "micro_batch"])
def test_objectives_that_compare_the_examples_of_a_micro_batch_are_known(negatives):
    queue = QueueConfig(size=10)
    objectives = {
        "mlm": MLM(),
        "momentum": MoCo(queue=queue, negatives=negatives),
        "in-batch": MoCo(in_batch_negatives=True, negatives=negatives),
        "entity": EntityPrediction(negatives=negatives),
        "contrast": ObjectEntailment(negatives=negatives),
        "classify": ObjectEntailment(loss="classify", negatives=negatives),
    }
    expected = ["in-batch", "entity", "contrast"] if negatives == "micro_batch" else []
    assert split_sensitive(objectives) == expected


def test_with_such_an_objective_a_step_stays_in_one_piece():
    machine = Machine(h200)
    found = in_one_piece(search(machine, 64), ["moco"])
    assert found.number == 64
    assert machine.tried == [64]
    assert "moco compares the examples" in found.reason


def test_a_piece_that_does_not_fit_is_refused_with_the_largest_that_does():
    with pytest.raises(
        DoesNotFitError, match=r"another split would change the loss.*64.*16 do"
    ) as e:
        in_one_piece(search(Machine(h200, limit=20), 64), ["moco"])
    assert e.value.largest == 16
    assert pickle.loads(pickle.dumps(e.value)).largest == 16  # processes exchange it


def test_objectives_that_compare_a_whole_step_encode_its_parts_twice():
    in_batch = MoCo(key_encoder="shared", in_batch_negatives=True, queue=QueueConfig(size=0))
    assert encoded_twice({"mlm": MLM(), "moco": in_batch})
    assert not encoded_twice({"moco": replace(in_batch, negatives="micro_batch")})
    assert not encoded_twice({"mlm": MLM(), "moco": MoCo()})  # a queue: nothing is compared


@pytest.mark.parametrize(
    ("whole", "on_gpu", "twice", "first"),
    [
        (256, True, True, 256),
        (8192, True, True, 1024),  # too large to begin with
        (256, True, False, 128),
        (256, False, True, 2),
    ],
)
def test_a_gpu_begins_with_a_whole_step_where_parts_are_encoded_twice(whole, on_gpu, twice, first):
    assert first_rows(256, whole, on_gpu=on_gpu, twice=twice) == first


def test_a_whole_step_that_fits_is_tried_first_and_then_half_of_it():
    machine = Machine(lambda size: 900 if size == 256 else 600)
    assert search(machine, 256).best(256).number == 256
    assert machine.tried[:2] == [256, 128]

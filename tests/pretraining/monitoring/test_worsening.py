"""The warning of contrast that gets worse: what it is given for, and that noise does not."""

import random

import pytest

from isoglot.pretraining.monitoring.worsening import WorseningWriter
from isoglot.pretraining.monitoring.writers import Record

CONTRAST = ["moco"]


def records(
    losses: list[float],
    retrieval: list[float],
    *,
    noise: float = 0.02,
    pairs: int = 400,
    steps: int = 20,
    seed: int = 0,
) -> list[Record]:
    """Steps and validations: the level of moco's loss before each validation, and its retrieval."""
    chance, found, step = random.Random(seed), list[Record](), 0
    for level, share in zip(losses, retrieval, strict=True):
        for _ in range(steps):
            step += 1
            loss = chance.gauss(level, noise)
            found.append({"step": step, "stage": 0, "seconds": 1.0, "moco/loss": loss})
            found[-1]["mlm/loss"] = 2.0 * step  # rises, and is no contrast
        found.append(
            {
                "step": step,
                "stage": 0,
                "valid/parallel/mean/retrieval": share,
                "valid/parallel/pairs": pairs,
            }
        )
    return found


def warnings_of(given: list[Record], earlier: list[Record] | None = None) -> list[str]:
    said: list[str] = []
    writer = WorseningWriter(said.append, CONTRAST, earlier or [])
    for record in given:
        writer.write(record)
    writer.close()
    return said


FLAT = [0.5] * 8
GOOD = [0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6]


def test_a_loss_above_its_lowest_for_three_validations_is_told_once():
    (said,) = warnings_of(records([2.0, 1.0, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7], GOOD))
    assert said.startswith("the training loss of moco is above its lowest for 3 validations: ")
    assert "until step 40, then" in said
    assert "(step 100)" in said


def test_retrieval_below_its_best_for_three_validations_is_told_once():
    shares = [0.5, 0.6, 0.45, 0.44, 0.46, 0.4, 0.3, 0.3]
    (said,) = warnings_of(records([1.0] * 8, shares))
    assert "60.0 % at step 40, then 45.0 %, 44.0 %, 46.0 % (step 100)" in said
    # the same shares of few pairs may be chance
    assert not warnings_of(records([1.0] * 8, shares[:5] + [0.5] * 3, pairs=40))


@pytest.mark.parametrize(
    ("losses", "shares"),
    [
        ([1.0] * 8, FLAT),
        ([2.0, 1.8, 1.7, 1.6, 1.5, 1.45, 1.44, 1.43], GOOD),  # falls
        ([1.0, 1.5, 1.0, 1.5, 1.0, 1.5, 1.0, 1.5], FLAT),  # never three in a row
        ([1.0, 1.02, 1.03, 1.04, 1.04, 1.04, 1.04, 1.04], FLAT),  # less than 5 %
        ([1.0] * 8, [0.6, 0.57, 0.56, 0.55, 0.56, 0.55, 0.56, 0.55]),  # within the error
        ([1.0] * 8, [0.6, 0.4, 0.4, 0.6, 0.4, 0.4, 0.58, 0.4]),
    ],
)
def test_what_is_not_told(losses, shares):
    assert not warnings_of(records(losses, shares))


def test_noise_around_a_constant_is_hardly_ever_told():
    """A hundred runs of fifty validations: fresh pairs each time, a loss that varies by half."""
    told = 0
    for seed in range(100):
        chance = random.Random(seed)
        hits = [sum(chance.random() < 0.6 for _ in range(200)) / 200 for _ in range(50)]
        made = records([1.0] * 50, hits, noise=0.5, pairs=200, seed=seed)
        told += len(warnings_of(made))
    assert told <= 5


def test_a_resumed_run_goes_on_counting_and_does_not_tell_again():
    whole = records([1.0] * 8, [0.5, 0.6, 0.45, 0.44, 0.46, 0.4, 0.3, 0.3])
    cut = 20 * 4 + 4  # two bad validations before it
    assert len(warnings_of(whole[cut:], whole[:cut])) == 1
    assert not warnings_of(whole[cut + 42 :], whole[: cut + 42])

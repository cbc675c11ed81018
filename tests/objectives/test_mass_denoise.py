"""MASS, token by token: what the encoder reads, what the decoder is given and must write."""

import numpy as np
import pytest

from isoglot.errors import RecipeError
from isoglot.objectives.denoise import Denoise
from isoglot.objectives.mass import MASS, UNSEEN
from isoglot.types import IGNORE, Text
from tests.batching.fakes import VOCABULARY

MASK, END, EN = VOCABULARY.mask, VOCABULARY.sep, VOCABULARY.language_token(1)
IDS = np.array([11, 12, 13, 14, 15, 16, 17], np.int32)
"""With its end a sentence of eight tokens, of which four are hidden."""


def built(objective, ids=IDS, seed=0, longest=None):
    text = Text(ids=ids, sentences=np.zeros_like(ids), language=1)
    rng = np.random.default_rng(seed)
    if longest is None:
        return objective.build(text, VOCABULARY, rng)
    return objective.build_padded(text, VOCABULARY, rng, longest)


def test_a_fragment_at_the_start():
    read, written = built(MASS(at_start=1, at_end=0, mask_replace_prob=1, random_replace_prob=0))
    assert read.ids.tolist() == [EN, MASK, MASK, MASK, MASK, 15, 16, 17, END]
    assert read.targets.tolist() == [IGNORE, 11, 12, 13, 14, *[IGNORE] * 4]
    assert read.positions.tolist() == list(range(9))
    assert read.markers[UNSEEN].tolist() == [1, 2, 3, 4]
    assert written.ids.tolist() == [EN, 11, 12, 13]
    assert written.targets.tolist() == [11, 12, 13, 14]
    assert written.positions.tolist() == [0, 1, 2, 3]


def test_a_fragment_at_the_end_has_the_end():
    read, written = built(MASS(at_start=0, at_end=1, mask_replace_prob=1, random_replace_prob=0))
    assert read.ids.tolist() == [EN, 11, 12, 13, 14, MASK, MASK, MASK, MASK]
    assert written.ids.tolist() == [EN, 14, 15, 16, 17]
    assert written.targets.tolist() == [IGNORE, 15, 16, 17, END]
    assert written.positions.tolist() == [0, 4, 5, 6, 7]


def test_a_fragment_in_the_middle():
    objective = MASS(at_start=0, at_end=0, mask_replace_prob=1, random_replace_prob=0)
    read, written = next(
        made
        for made in (built(objective, seed=n) for n in range(50))
        if made[0].ids[2] == 12 and made[0].ids[3] == MASK
    )
    assert read.ids.tolist() == [EN, 11, 12, MASK, MASK, MASK, MASK, 17, END]
    assert written.ids.tolist() == [EN, 12, 13, 14, 15]
    assert written.targets.tolist() == [IGNORE, 13, 14, 15, 16]
    assert written.positions.tolist() == [0, 2, 3, 4, 5]
    assert set(written.languages.tolist()) == {1}


def test_the_decoder_may_look_at_what_was_kept_or_replaced():
    kept, _ = built(MASS(mask_replace_prob=0, random_replace_prob=0))
    assert kept.ids.tolist() == [EN, *IDS, END]
    assert (kept.targets != IGNORE).sum() == 4
    assert len(kept.markers[UNSEEN]) == 0
    replaced, _ = built(MASS(mask_replace_prob=0, random_replace_prob=1))
    hidden = replaced.targets != IGNORE
    assert (replaced.ids[hidden] != replaced.targets[hidden]).any()
    assert not np.isin(replaced.ids[hidden], VOCABULARY.special).any()
    assert len(replaced.markers[UNSEEN]) == 0


def test_where_fragments_are_and_what_is_shown():
    starts, shown = np.zeros(3), np.zeros(3)
    ids = np.arange(100, 139, dtype=np.int32)
    for seed in range(2000):
        read, _ = built(MASS(), ids, seed)
        hidden = np.flatnonzero(read.targets != IGNORE)
        assert np.array_equal(hidden, np.arange(hidden[0], hidden[0] + 20)), "one fragment, half"
        starts += [hidden[0] == 1, hidden[-1] == 40, 1 < hidden[0] < 21]
        same = read.ids[hidden] == read.targets[hidden]
        masked = read.ids[hidden] == MASK
        shown += [masked.sum(), same.sum(), (~masked & ~same).sum()]
    # a fragment that is anywhere is at either edge once in 21 times
    edge = 0.2 + 0.6 / 21
    assert starts / 2000 == pytest.approx([edge, edge, 0.6 * 19 / 21], abs=0.03)
    assert shown / shown.sum() == pytest.approx([0.8, 0.1, 0.1], abs=0.01)


def test_a_fragment_as_long_as_the_batch_says():
    """MASS's code takes half of the padded length for all sentences of a batch."""
    objective = MASS(length="batch")
    for longest, hidden in ((9, 4), (10, 5), (13, 6), (40, 8)):
        read, written = built(objective, longest=longest)
        assert (read.targets != IGNORE).sum() == (written.targets != IGNORE).sum() == hidden
        ((most_read, most_written),) = objective.lengths(np.array([[len(IDS)]]))
        assert len(read) <= most_read
        assert len(written) <= most_written


def test_the_shortest_sentence():
    for seed in range(10):
        read, written = built(MASS(), IDS[:1], seed)
        assert (read.targets != IGNORE).sum() == 1
        assert (written.targets != IGNORE).sum() == 1


@pytest.mark.parametrize("kind", [MASS, Denoise])
def test_its_model_half_has_its_smoothing(kind):
    assert kind(label_smoothing=0.1).build_module(None, None).label_smoothing == 0.1
    assert kind().build_module(None, None).label_smoothing == 0


def test_shares_that_cannot_be():
    with pytest.raises(RecipeError, match="rate must be above 0"):
        MASS(rate=0)
    with pytest.raises(RecipeError, match="add up"):
        MASS(at_start=0.7, at_end=0.7)


def test_denoising_without_noise():
    read, written = built(
        Denoise(max_shuffle_distance=0, word_dropout_prob=0, word_blanking_prob=0)
    )
    assert read.ids.tolist() == [EN, *IDS, END]
    assert written.ids.tolist() == [EN, *IDS]
    assert written.targets.tolist() == [*IDS, END]


def words_of(ids):
    starts = VOCABULARY.word_starts[ids]
    starts[0] = True
    return [word.tolist() for word in np.split(ids, np.flatnonzero(starts)[1:])]


def test_denoising_moves_whole_words_three_places_at_most():
    ids = np.arange(30, 120, dtype=np.int32)
    words = words_of(ids.copy())
    moved = 0
    for seed in range(50):
        noisy = Denoise(word_dropout_prob=0, word_blanking_prob=0).add_noise(
            ids, VOCABULARY, np.random.default_rng(seed)
        )
        found = words_of(noisy.copy())
        assert sorted(found) == sorted(words)
        far = [abs(place - words.index(word)) for place, word in enumerate(found)]
        assert max(far) <= 3
        moved += sum(far)
    assert moved


def test_denoising_drops_and_blanks_a_tenth_of_the_words():
    ids = np.arange(30, 330, dtype=np.int32)
    dropped = blanked = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        noisy = Denoise(max_shuffle_distance=0).add_noise(ids, VOCABULARY, rng)
        dropped += len(ids) - len(noisy)
        blanked += (noisy == MASK).sum()
    assert dropped / (60 * len(ids)) == pytest.approx(0.1, abs=0.02)
    assert blanked / (60 * len(ids)) == pytest.approx(0.09, abs=0.02)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        left = Denoise(word_dropout_prob=0.99, word_blanking_prob=0).add_noise(
            ids[:1], VOCABULARY, rng
        )
        assert left.tolist() == [30], "one word stays"


def test_the_weight_of_denoising_falls():
    objective = Denoise(weight=2.0)
    weights = [objective.weight_at(step) for step in (0, 50_000, 100_000, 200_000, 300_000, 10**6)]
    assert weights == pytest.approx([2, 1.1, 0.2, 0.1, 0, 0])
    with pytest.raises(RecipeError, match=r"denoise\.weight_schedule"):
        Denoise(weight_schedule=((5, 1.0), (5, 0.0)))

"""Examples that are not read: every reason counted once, with the setting that would keep them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isoglot.batching.dropped import DropCounter, Dropped, Limit, describe_dropped
from isoglot.batching.loader import open_streams
from isoglot.batching.mixture import OpenStream
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.objectives.camlm import CAMLM
from isoglot.objectives.mlm import MLM
from isoglot.objectives.tlm import TLM
from tests.batching.fakes import FakeSlice

OBJECTIVES = {"mlm": MLM(), "tlm": TLM(), "camlm": CAMLM()}


def count_dropped(limits: list[Limit]) -> tuple[Dropped, ...]:
    """What limits drop from examples that are given all at once."""
    counter = DropCounter()
    counter.add(limits)
    return counter.result()


def opened(corpus, stream, row_length) -> OpenStream:
    (found,) = open_streams(corpus, {stream.kind: stream}, OBJECTIVES, row_length=row_length)
    return found


def test_an_example_counts_for_the_first_limit_that_drops_it():
    lengths = np.array([5, 9, 9, 1, 2], np.int32)
    limits = [
        Limit(lengths <= 8, "are long", "row", lengths),
        Limit(lengths >= 2, "are short", "least"),
        Limit(np.array([True, False, True, False, True]), "are odd", "other"),
        Limit(lengths < 100, "are endless", "never", lengths),
    ]
    assert count_dropped(limits) == (
        Dropped(reason="are long", setting="row", count=2, enough=9),
        Dropped(reason="are short", setting="least", count=1),
    )


def test_the_value_that_would_keep_99_percent():
    lengths = np.arange(1, 1001, dtype=np.int32)
    (found,) = count_dropped([Limit(lengths <= 500, "are long", "most", lengths)])
    assert found.count == 500
    assert found.enough == 991
    assert np.mean(lengths <= found.enough) >= 0.99 > np.mean(lengths <= found.enough - 2)


def test_no_value_is_proposed_where_99_percent_are_kept():
    lengths = np.arange(1, 1001, dtype=np.int32)
    for limit, proposed in ((989, 991), (990, None), (998, None)):
        (found,) = count_dropped([Limit(lengths <= limit, "are long", "most", lengths)])
        assert (found.count, found.enough) == (1000 - limit, proposed)


def test_every_reason_of_pairs_is_counted(corpus):
    table = corpus.table("pairs", "aa-bb", "train")
    sizes = np.stack([table.lengths("first"), table.lengths("second")], axis=1)
    sums, row = sizes.sum(axis=1), int(np.percentile(TLM().lengths(sizes), 80))
    stream = ParallelStream(objectives=("tlm",), languages=("aa-bb",), min_tokens=6, max_tokens=20)
    (part,) = opened(corpus, stream, row).slices
    long = TLM().lengths(sizes).max(axis=1) > row
    middle = ~long & (sums > 20)
    short = ~long & ~middle & (sizes.min(axis=1) < 6)
    assert min(long.sum(), middle.sum(), short.sum()) > 0
    assert {one.setting: one.count for one in part.dropped} == {
        "batch.row_length": long.sum(),
        "the stream's max_tokens": middle.sum(),
        "the stream's min_tokens": short.sum(),
    }
    assert part.num_dropped + part.num_examples == len(sizes)
    (note,) = describe_dropped([opened(corpus, stream, row)])
    dropped = part.num_dropped
    assert f"parallel: {dropped} of {len(sizes)} examples are dropped (" in note.text
    enough = int(np.percentile(sums, 99, method="higher"))
    assert (
        f"{middle.sum()} have more than 20 tokens in both sides "
        f"(the stream's max_tokens, {enough} would keep 99 %)" in note.text
    )
    assert f"{long.sum()} do not fit a row of {row} tokens (batch.row_length, " in note.text
    assert f"{short.sum()} have a side of fewer than 6 tokens (the stream's m" in note.text
    assert note.is_warning
    # with the values that are proposed, 99 % stay
    kept = replace(stream, min_tokens=1, max_tokens=enough)
    (part,) = opened(corpus, kept, 256).slices
    assert part.num_examples >= 0.99 * len(sizes)


def test_every_reason_of_sentences_is_counted(corpus):
    lengths = corpus.table("text", "aa", "train").lengths("ids")
    row, most = (int(np.percentile(lengths, percent)) for percent in (80, 50))
    stream = TextStream(objectives=("mlm",), unit="sentence", languages=("aa",), max_tokens=most)
    (part,) = opened(corpus, stream, row).slices
    long = MLM().lengths(lengths[:, None]).max(axis=1) > row
    assert long.any()
    assert {one.setting: one.count for one in part.dropped} == {
        "batch.row_length": long.sum(),
        "the stream's max_tokens": (~long & (lengths > most)).sum(),
    }
    assert part.num_dropped + part.num_examples == len(lengths)
    # blocks are cut, not dropped
    assert (
        opened(corpus, TextStream(objectives=("mlm",), max_tokens=12), 20).slices[0].dropped == ()
    )


def slices(*counts: tuple[int, int]) -> list[FakeSlice]:
    """Slices of (examples, dropped ones)."""
    found = []
    for number, (examples, dropped) in enumerate(counts):
        one = FakeSlice(f"l{number}", [3] * examples)
        if dropped:
            one.dropped = (
                Dropped(reason="are long", setting="most", count=dropped, enough=number),
            )
        found.append(one)
    return found


def noted(parts: list[FakeSlice]) -> list[tuple[str, bool]]:
    stream = OpenStream(
        config=TextStream(objectives=("mlm",)),
        slices=tuple(one for one in parts if one.num_examples),
        objectives=(),
        unread=tuple(one for one in parts if not one.num_examples),
    )
    return [(note.text, note.is_warning) for note in describe_dropped([stream])]


def test_a_tenth_is_a_note_and_more_is_a_warning():
    assert noted(slices((5, 0))) == []
    assert noted(slices((90, 10))) == [
        (
            "text: 10 of 100 examples are dropped (10 %): 10 are long (most, 0 would keep 99 %).",
            False,
        )
    ]
    ((text, is_warning),) = noted(slices((89, 11), (900, 0), (1, 1)))
    assert "text: 12 of 1,002 examples are dropped (1 %)" in text
    assert "12 are long (most, 2 would keep 99 %)." in text
    assert text.endswith(" More than 10 %: fake/l2 (50 %), fake/l0 (11 %).")
    assert not is_warning
    assert noted(slices((89, 11)))[0][1]
    # a language that is lost altogether is a warning however small it is
    ((text, is_warning),) = noted(slices((9999, 0), (0, 1)))
    assert "(0.01 %)" in text
    assert "fake/l1 (100 %)" in text
    assert is_warning


def test_many_languages_are_counted_and_not_all_named():
    ((text, _),) = noted(slices(*[(1, 1)] * 14))
    assert text.count("(50 %)") == 1 + 10
    assert text.endswith(" and 4 more.")


@pytest.mark.parametrize("objective", ["camlm", "tlm"])
def test_a_stream_reads_what_fits_other_objectives_too(corpus, objective):
    """A control reads exactly the pairs of what it controls."""
    stream = ParallelStream(objectives=(objective,))
    of_recipe = opened(corpus, stream, 24).slices
    control = replace(stream, objectives=("mlm",), must_fit=(objective,))
    of_control = opened(corpus, control, 24).slices
    alone = opened(corpus, replace(control, must_fit=()), 24).slices
    for one, other, free in zip(of_recipe, of_control, alone, strict=True):
        assert one.num_examples == other.num_examples
        numbers = np.arange(one.num_examples)
        rows = [each.kept.rows(numbers) for each in (one, other)]  # type: ignore[attr-defined]
        assert np.array_equal(*rows)
        assert free.num_examples > one.num_examples
    # text is cut into the same blocks
    text = TextStream(objectives=("mlm",))
    limited = replace(text, must_fit=("mlm",))
    assert opened(corpus, text, 24).slices[0].num_examples == (
        opened(corpus, limited, 24).slices[0].num_examples
    )

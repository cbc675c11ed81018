from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.batching.loader import open_streams
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.batching.streams.blocks import find_blocks
from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.run import prepare
from isoglot.errors import CorpusError
from isoglot.objectives.mlm import MLM
from isoglot.objectives.tlm import TLM
from tests.tiny_corpus import config as prepare_config
from tests.tiny_corpus import write_raw

MAKERS = {"mlm": MLM(), "tlm": TLM()}


def opened(corpus, config, row_length=64, split="train"):
    return open_streams(corpus, {config.kind: config}, MAKERS, row_length=row_length, split=split)[
        0
    ]


def lengths_of(examples):
    number = examples.num_examples
    return examples.sizes(np.arange(number), np.zeros(number))[:, 0]


def rows_of(examples):
    """The rows of the table that a slice of pairs reads."""
    return examples.kept.rows(np.arange(examples.num_examples))


def of_any_text(test):
    """Sentences of any lengths, in documents of any size."""
    given_text = given(
        lengths=st.lists(st.integers(0, 50), min_size=1, max_size=60),
        breaks=st.lists(st.booleans(), min_size=60, max_size=60),
        limit=st.integers(5, 40),
        separator=st.integers(0, 1),
    )
    return settings(max_examples=150, deadline=None)(given_text(test))


@of_any_text
def test_blocks_hold_every_token_once_and_keep_sentences_whole(lengths, breaks, limit, separator):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    documents = np.cumsum(breaks[: len(lengths)]).astype(np.int32)
    starts, stops, sizes = find_blocks(offsets, documents, limit, separator, True)
    covered = [token for a, b in zip(starts, stops, strict=True) for token in range(a, b)]
    assert covered == list(range(offsets[-1]))
    for start, stop, size in zip(starts, stops, sizes, strict=True):
        inside = [i for i in range(len(lengths)) if offsets[i] < stop and offsets[i + 1] > start]
        inside = [i for i in inside if lengths[i]]
        assert len({documents[i] for i in inside}) == 1
        assert size == stop - start + separator * (len(inside) - 1) <= limit
        if len(inside) > 1:
            first, last = inside[0], inside[-1]
            # only the tail of a sentence too long for any block may open a block of several
            assert offsets[first] == start or lengths[first] > limit
            assert offsets[last + 1] == stop


@of_any_text
def test_blocks_cut_anywhere_hold_every_token_once_and_are_full(lengths, breaks, limit, separator):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    documents = np.cumsum(breaks[: len(lengths)]).astype(np.int32)
    starts, stops, sizes = find_blocks(offsets, documents, limit, separator, False)
    covered = [token for a, b in zip(starts, stops, strict=True) for token in range(a, b)]
    assert covered == list(range(offsets[-1]))
    of_token = np.repeat(documents, lengths)
    for start, stop, size in zip(starts, stops, sizes, strict=True):
        assert len(set(of_token[start:stop])) == 1
        borders = sum(start < offset < stop for offset in set(offsets.tolist()))
        assert size == stop - start + separator * borders <= limit
        ends_a_document = stop == offsets[-1] or of_token[stop] != of_token[stop - 1]
        # a separator needs a token after it
        assert ends_a_document or size == limit or (stop in offsets and size + separator == limit)


def test_text_cut_anywhere_is_the_text(corpus):
    stream = opened(corpus, TextStream(objectives=("mlm",), unit="tokens", across_documents=True))
    whole = opened(corpus, TextStream(objectives=("mlm",), across_documents=True))
    for examples, other in zip(stream.slices, whole.slices, strict=True):
        read, expected = (
            np.concatenate([each.example(i, 0.0).ids for i in range(each.num_examples)])
            for each in (examples, other)
        )
        assert np.array_equal(read, expected)
        assert examples.num_examples <= other.num_examples
        assert set(lengths_of(examples)[:-1]) == {62}, (
            "a row of 64 holds 62 and the two at the edges"
        )


def test_a_stream_of_text_reads_what_was_prepared(corpus):
    stream = opened(corpus, TextStream(objectives=("mlm",), languages=("aa",)))
    (examples,) = stream.slices
    table = corpus.table("text", "aa", "train")
    read = np.concatenate([examples.example(i, 0.0).ids for i in range(examples.num_examples)])
    assert np.array_equal(read, np.concatenate([s.values("ids") for s in table.shards]))
    assert examples.num_dropped == 0


def test_separators_stand_between_sentences_and_are_counted(corpus):
    plain = opened(corpus, TextStream(objectives=("mlm",), max_tokens=60)).slices[0]
    config = TextStream(objectives=("mlm",), max_tokens=60, separators=True)
    examples = opened(corpus, config).slices[0]
    sep = corpus.vocabulary.sep
    found = 0
    for index in range(examples.num_examples):
        example = examples.example(index, 0.0)
        assert len(example.ids) == len(example.sentences) == lengths_of(examples)[index]
        assert (np.diff(example.sentences) >= 0).all()
        places = np.flatnonzero(example.ids == sep)
        assert len(places) == example.sentences[-1]
        assert (np.diff(example.sentences)[places] == 1).all(), "a separator ends its sentence"
        found += len(places)
    assert found > 0
    assert examples.num_tokens - found == plain.num_tokens


def test_single_sentences(corpus):
    config = TextStream(objectives=("mlm",), unit="sentence", languages=("bb",))
    examples = opened(corpus, config, row_length=256).slices[0]
    table = corpus.table("text", "bb", "train")
    assert examples.num_examples == table.num_rows
    example = examples.example(3, 0.0)
    assert np.array_equal(example.ids, table.ids("ids", 3))
    assert not example.sentences.any()
    assert example.language == corpus.languages.index("bb")


def test_pairs_are_swapped_together_or_not_at_all(corpus):
    config = ParallelStream(objectives=("tlm",), languages=("aa-cc",), order="shuffled")
    examples = opened(corpus, config, row_length=256).slices[0]
    table = corpus.table("pairs", "aa-cc", "train")
    swapped = 0
    for index in range(examples.num_examples):
        uniform = np.random.default_rng(index).random()
        pair = examples.example(index, uniform)
        size = examples.sizes(np.array([index]), np.array([uniform]))[0]
        assert size.tolist() == [len(pair.first), len(pair.second)]
        sides = {
            pair.first_language: pair.first.tolist(),
            pair.second_language: pair.second.tolist(),
        }
        assert sides == {
            corpus.languages.index("aa"): table.ids("first", index).tolist(),
            corpus.languages.index("cc"): table.ids("second", index).tolist(),
        }
        swapped += pair.first_language == corpus.languages.index("cc")
    assert 0.3 < swapped / examples.num_examples < 0.7


def test_pairs_too_long_for_a_row_are_left_out_and_counted(corpus):
    config = ParallelStream(objectives=("tlm",), languages=("aa-bb",))
    examples = opened(corpus, config, row_length=30).slices[0]
    table = corpus.table("pairs", "aa-bb", "train")
    total = table.lengths("first") + table.lengths("second") + 4
    assert examples.num_dropped == (total > 30).sum() > 0
    assert examples.num_examples + examples.num_dropped == table.num_rows
    number = examples.num_examples
    sizes = examples.sizes(np.arange(number), np.ones(number)).sum(axis=1) + 4
    assert sizes.max() <= 30


def test_no_space_for_a_sequence_names_the_file_the_row_and_the_fix(corpus):
    config = ParallelStream(objectives=("tlm",), languages=("aa-bb",), overlong="error")
    table = corpus.table("pairs", "aa-bb", "train")
    lengths = table.lengths("first") + table.lengths("second")
    worst = int(lengths.argmax())
    with pytest.raises(CorpusError) as caught:
        opened(corpus, config, row_length=30)
    message = str(caught.value)
    assert f"pairs/aa-bb/train-00000.arrow, row {worst}" in message
    assert f"{lengths[worst] + 4} tokens and a row has 30" in message
    assert "overlong: drop" in message
    # nothing left at all is an error whatever the setting
    with pytest.raises(CorpusError, match=r"Raise batch\.row_length"):
        opened(corpus, ParallelStream(objectives=("tlm",), languages=("aa-bb",)), row_length=6)


def test_unknown_sources_and_languages_are_named(corpus):
    with pytest.raises(CorpusError, match="did you mean 'text'"):
        opened(corpus, TextStream(objectives=("mlm",), sources=("texts",)))
    with pytest.raises(CorpusError, match="did you mean 'aa-cc'"):
        opened(corpus, ParallelStream(objectives=("tlm",), languages=("aa-cd",)))


def test_short_and_long_pairs_are_left_out_and_then_the_first_are_taken(corpus):
    table = corpus.table("pairs", "aa-bb", "train")
    first, second = table.lengths("first"), table.lengths("second")
    good = (np.minimum(first, second) >= 6) & (first + second <= 30)
    config = ParallelStream(objectives=("tlm",), languages=("aa-bb",), min_tokens=6, max_tokens=30)
    (examples,) = opened(corpus, config, row_length=256).slices
    assert rows_of(examples).tolist() == np.flatnonzero(good).tolist()
    assert (examples.num_examples, examples.num_dropped) == (good.sum(), (~good).sum())
    (examples,) = opened(corpus, replace(config, max_pairs=5), row_length=256).slices
    rows = rows_of(examples)
    assert rows.tolist() == np.flatnonzero(good)[:5].tolist()
    assert examples.num_dropped == (~good[: rows[-1]]).sum(), "what comes after was not looked at"
    assert examples.num_tokens == (first + second)[rows].sum()


@pytest.mark.parametrize("shorter", ["first", "second"])
def test_a_pair_is_short_if_either_side_is(corpus, shorter):
    """Kept while its shorter side is long enough, whichever that is, and no longer."""
    table = corpus.table("pairs", "aa-cc", "train")
    less, more = table.lengths(shorter), np.maximum(table.lengths("first"), table.lengths("second"))
    row = int(np.where(less < more, more, more.max() + 1).argmin())
    for least in range(int(less[row]), int(more[row]) + 1):
        config = ParallelStream(objectives=("tlm",), languages=("aa-cc",), min_tokens=least)
        (examples,) = opened(corpus, config, row_length=256).slices
        assert (row in rows_of(examples)) == (least == less[row])


def test_the_first_are_counted_over_the_sources_of_a_language(tmp_path):
    write_raw(tmp_path / "raw")
    plain = prepare_config()
    sources = {name: replace(plain.sources["pairs"]) for name in ("one", "two")}
    prepare(
        replace(plain, sources={**plain.sources, **sources}), tmp_path / "c", base=tmp_path / "raw"
    )
    corpus = Corpus.open(tmp_path / "c")
    number = corpus.table("one", "aa-bb", "train").num_rows
    for wanted, expected in ((number + 7, [number, 7]), (9, [9])):
        config = ParallelStream(
            objectives=("tlm",), sources=("one", "two"), languages=("aa-bb",), max_pairs=wanted
        )
        parts = opened(corpus, config, row_length=256).slices
        assert [examples.num_examples for examples in parts] == expected


@pytest.mark.parametrize("order", ["fixed", "shuffled"])
def test_two_pairs_run_together_in_every_order(corpus, order):
    """Eight ways where sides are shuffled, four where they are not."""
    config = ParallelStream(objectives=("tlm",), languages=("aa-cc",), order=order, mixup=True)
    (examples,) = opened(corpus, config, row_length=64).slices
    table = corpus.table("pairs", "aa-cc", "train")
    rows = rows_of(examples)
    known = {
        side: {tuple(table.ids(side, int(row))): number for number, row in enumerate(rows)}
        for side in ("first", "second")
    }
    ways = set()
    uniforms = np.random.default_rng(0).random(200)
    for index, uniform in zip(np.arange(200) % examples.num_examples, uniforms, strict=True):
        pair = examples.example(int(index), float(uniform))
        sizes = examples.sizes(np.array([index]), np.array([uniform]))[0]
        assert sizes.tolist() == [len(pair.first), len(pair.second)]
        swapped = pair.first_language == corpus.languages.index("cc")
        sides = (pair.second, pair.first) if swapped else (pair.first, pair.second)
        partners, turned = set(), []
        for name, ids in zip(("first", "second"), sides, strict=True):
            own = table.ids(name, int(rows[index])).tolist()
            after = ids[: len(own)].tolist() == own
            rest = ids[len(own) :] if after else ids[: -len(own)]
            assert after or ids[-len(own) :].tolist() == own
            partners.add(known[name][tuple(rest)])
            turned.append(not after)
        ways.add((swapped, *turned))
        assert len(partners) == 1, "both sides have the same second pair"
        assert partners != {index}
    assert len(ways) == (8 if order == "shuffled" else 4)


def test_two_pairs_always_fit_into_a_row(corpus):
    config = ParallelStream(objectives=("tlm",), order="shuffled", mixup=True, languages=("aa-bb",))
    (examples,) = opened(corpus, config, row_length=64).slices
    assert examples.num_dropped
    rng = np.random.default_rng(1)
    indices = rng.integers(examples.num_examples, size=3000)
    sizes = examples.sizes(indices, rng.random(3000))
    assert (TLM().lengths(sizes) <= 64).all()


def test_a_limit_above_the_row_does_not_make_blocks_longer_than_a_row(corpus):
    free = opened(corpus, TextStream(objectives=("mlm",))).slices[0]
    wide = opened(corpus, TextStream(objectives=("mlm",), max_tokens=10_000)).slices[0]
    narrow = opened(corpus, TextStream(objectives=("mlm",), max_tokens=20)).slices[0]

    def lengths(one):
        return one.sizes(np.arange(one.num_examples), np.zeros(one.num_examples))

    assert np.array_equal(lengths(wide), lengths(free))
    assert lengths(narrow).max() <= 20 < lengths(free).max()

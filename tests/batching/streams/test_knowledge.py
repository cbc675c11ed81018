"""Streams of knowledge: contexts, the choice of a description, what is dropped, and resuming."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from isoglot.batching.dropped import describe_dropped
from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import DescriptionStream, MentionStream, TripleStream
from isoglot.errors import CorpusError, RecipeError
from isoglot.objectives import all_objectives
from isoglot.types import Cursor
from tests.tiny_knowledge import DESCRIBED

MAKERS = {objective.name: objective() for objective in all_objectives()}
MENTIONS = MentionStream(objectives=("entity",))
TRIPLES = TripleStream(objectives=("entailment",))


def opened(corpus, stream, row_length=64, **changes):
    (found,) = open_streams(
        corpus, {"it": replace(stream, **changes)}, MAKERS, row_length=row_length
    )
    return {examples.language: examples for examples in found.slices}


def draws(examples, times=1):
    rng = np.random.default_rng(0)
    for index in np.tile(np.arange(examples.num_examples), times):
        uniform = float(rng.random())
        yield int(index), uniform, examples.example(int(index), uniform)


@pytest.mark.parametrize("stream", [MENTIONS, TRIPLES, DescriptionStream(objectives=("mlm",))])
def test_sizes_are_known_without_reading(knowing, stream):
    """One by one or all at once, the same description is chosen."""
    for examples in opened(knowing, stream, max_tokens=9).values():
        found = list(draws(examples, 3))
        indices = np.array([index for index, _, _ in found])
        sizes = examples.sizes(indices, np.array([uniform for _, uniform, _ in found]))
        if stream.kind == "mentions":
            read = [[len(e.context), len(e.description)] for _, _, e in found]
        elif stream.kind == "triples":
            read = [[len(e.subject), len(e.object)] for _, _, e in found]
        else:
            read = [[len(e.ids)] for _, _, e in found]
        assert sizes.tolist() == read
        assert sizes.max() <= 9


@pytest.mark.parametrize("limit", [3, 12, 40, 254])
def test_a_context_is_the_page_around_the_name(knowing, limit):
    """Whole sentences where they fit; the name is where it was; no other page."""
    knowledge = knowing.knowledge
    for language, examples in opened(knowing, MENTIONS, 300, max_tokens=limit).items():
        mentions, sentences = examples.mentions, examples.sentences
        pages, offsets = sentences["page"], sentences.offsets("tokens")
        for index, _, example in draws(examples):
            row = int(examples.rows(np.array([index]))[0])
            sentence, start, end = (int(mentions[n][row]) for n in ("sentence", "start", "end"))
            name = sentences.tokens("tokens", sentence)[start:end]
            assert example.context[example.start : example.end].tolist() == name.tolist()
            assert example.entity == mentions["entity"][row]
            own = np.flatnonzero(pages == pages[sentence])
            page = sentences["tokens"][offsets[own[0]] : offsets[own[-1] + 1]]
            assert len(example.context) <= limit
            if len(page) <= limit:
                assert example.context.tolist() == page.tolist()
            texts = [sentences.tokens("tokens", int(r)).tolist() for r in own]
            lengths = Counter(example.sentences.tolist())
            inside = [
                example.context[example.sentences == number].tolist() for number in sorted(lengths)
            ]
            own_number = int(example.sentences[example.start])
            for number, text in enumerate(inside):
                if number != own_number:
                    assert text in texts, "neighbors are whole"
            if len(texts[sentence - own[0]]) * 2 <= limit:
                assert inside[own_number] == texts[sentence - own[0]]
        assert knowledge.languages[examples.own] == language


@pytest.mark.parametrize("how", ["other", "same", "any"])
def test_the_language_of_a_description_is_drawn_as_asked(knowing, how):
    for language, examples in opened(knowing, MENTIONS, description=how).items():
        for _, _, example in draws(examples, 3):
            drawn = knowing.languages[example.description_language]
            assert example.entity in DESCRIBED[drawn]
            wanted = knowing.knowledge.descriptions(drawn)[example.entity]
            assert example.description.tolist() == wanted[:62].tolist()
            if how != "any":
                assert (drawn == language) == (how == "same")
        number = {"other": 2, "same": 1, "any": 3}[how]
        if language == "aa" or how == "any":
            assert shares(examples, entity=2) == pytest.approx([1 / number] * number), "all alike"


def shares(examples, entity):
    """How often each language is drawn for an entity, over evenly spread uniforms."""
    uniforms = np.arange(6000) / 6000
    chosen = examples.sampler(np.full(6000, entity, np.int32), examples.own, uniforms)
    _, counts = np.unique(chosen, return_counts=True)
    return (counts / 6000).tolist()


def test_alpha_draws_languages_with_many_descriptions_more_often(knowing):
    examples = opened(knowing, MENTIONS, description_alpha=2.0)["cc"]
    aa, bb = (len(DESCRIBED[code]) ** 2 for code in ("aa", "bb"))
    assert shares(examples, entity=2) == pytest.approx([aa / (aa + bb), bb / (aa + bb)], abs=1e-3)


def test_what_has_no_description_in_another_language_is_dropped_and_counted(knowing):
    parts = opened(knowing, MENTIONS)
    for language, examples in parts.items():
        others = {e for code, some in DESCRIBED.items() if code != language for e in some}
        entities = knowing.knowledge.mentions(language, "train")["entity"].tolist()
        assert examples.num_dropped == sum(entity not in others for entity in entities) > 0
        assert examples.num_examples + examples.num_dropped == len(entities)
    streams = open_streams(knowing, {"mentions": MENTIONS}, MAKERS, row_length=64)
    (note,) = describe_dropped(streams)
    dropped = sum(one.num_dropped for one in streams[0].slices)
    assert f"{dropped} have an entity without a usable description (the stream's desc" in note.text
    same = opened(knowing, MENTIONS, description="same")
    assert same["cc"].num_examples < parts["cc"].num_examples


def test_languages_that_the_corpus_lacks_are_left_out(knowing):
    some: dict[str, Any] = {
        "languages": ("aar", "zh-min-nan"),
        "description_languages": ("bb", "dd"),
    }
    asked = replace(MENTIONS, **some)
    assert asked.missing_languages(knowing) == ("zh-min-nan", "dd")
    parts, expected = (
        opened(knowing, MENTIONS, **changes)["aa"]
        for changes in (some, {"languages": ("aa",), "description_languages": ("bb",)})
    )
    assert parts.num_examples == expected.num_examples
    numbers = np.arange(parts.num_examples)
    assert parts.rows(numbers).tolist() == expected.rows(numbers).tolist()
    assert parts.sampler.weights.tolist() == expected.sampler.weights.tolist()


def test_knowledge_in_languages_without_text_is_left_out(knowing, monkeypatch):
    monkeypatch.setattr(type(knowing), "languages", ("aa", "cc"))
    assert set(opened(knowing, MENTIONS)) == {"aa", "cc"}
    assert MENTIONS.missing_languages(knowing) == ("bb",)
    named = replace(MENTIONS, languages=("aa", "bb", "cc"))
    assert set(opened(knowing, named)) == {"aa", "cc"}
    assert named.missing_languages(knowing) == ("bb",)


def test_only_the_languages_asked_for_are_read(knowing):
    parts = opened(knowing, MENTIONS, languages=("aa", "bb"), description_languages=("bb", "cc"))
    assert set(parts) == {"aa", "bb"}
    for language, examples in parts.items():
        drawn = {knowing.languages[e.description_language] for _, _, e in draws(examples)}
        assert drawn <= {"bb", "cc"} - {language}
    with pytest.raises(CorpusError, match=r"has none of its languages \(dd\)"):
        opened(knowing, MENTIONS, languages=("dd",))
    with pytest.raises(CorpusError, match=r"has none of its description_languages \(dd\)"):
        opened(knowing, MENTIONS, description_languages=("dd",))
    with pytest.raises(RecipeError, match="there is one for knowledge"):
        replace(MENTIONS, sources=("text",))


def test_a_triple_is_drawn_in_every_language_of_its_subject(knowing):
    knowledge = knowing.knowledge
    triples = knowledge.triples("train")
    rows = list(zip(*(triples[n].tolist() for n in ("subject", "relation", "object")), strict=True))
    for language, examples in opened(knowing, TRIPLES).items():
        others = {e for code, some in DESCRIBED.items() if code != language for e in some}
        own = [row for row in rows if row[0] in DESCRIBED[language]]
        wanted = [row for row in own if row[2] in others]
        assert examples.num_examples == len(wanted)
        assert examples.num_dropped == len(own) - len(wanted)
        for (_, _, example), (subject, relation, thing) in zip(
            draws(examples), wanted, strict=True
        ):
            assert (example.relation, example.object_entity) == (relation, thing)
            assert example.subject.tolist() == knowledge.descriptions(language)[subject].tolist()
            assert example.object_language != example.subject_language
            drawn = knowing.languages[example.object_language]
            assert example.object.tolist() == knowledge.descriptions(drawn)[thing].tolist()
            assert thing in example.known_objects
            assert example.known_objects.tolist() == knowledge.objects(subject, relation).tolist()


def test_batches_go_on_from_any_cursor_bit_for_bit(knowing):
    streams = open_streams(knowing, {"m": MENTIONS, "t": TRIPLES}, MAKERS, row_length=48)
    shape = BatchConfig(rows=6, micro_rows=3, row_length=48)
    loader = Loader(knowing, streams, shape, seed=3)
    steps = loader.steps(Cursor())
    whole = [next(steps) for _ in range(5)]
    cursor = whole[1][0].cursor
    assert cursor is not None
    again = Loader(knowing, streams, shape, seed=3).steps(cursor)
    for expected in whole[2:]:
        for one, other in zip(next(again), expected, strict=True):
            assert one.rows.ids.equal(other.rows.ids)
            assert one.cursor == other.cursor
            for objective, labels in one.labels.items():
                assert all(v.equal(other.labels[objective][n]) for n, v in labels.items())
    halves = [Loader(knowing, streams, shape, seed=3, rank=r, world=2) for r in (0, 1)]
    shared = [next(half.steps(Cursor()))[0] for half in halves]
    for one, other in zip(shared, whole[0], strict=True):
        assert one.rows.ids.equal(other.rows.ids)


def test_a_stream_of_knowledge_has_a_fingerprint_of_its_own(knowing, corpus):
    assert MENTIONS.fingerprint(knowing) == TRIPLES.fingerprint(knowing)
    assert MENTIONS.fingerprint(knowing) != knowing.fingerprint == corpus.fingerprint
    with pytest.raises(CorpusError, match="Run isoglot knowledge link"):
        opened(corpus, MENTIONS)

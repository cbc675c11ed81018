"""Figures of batches: the stored ones are drawn again; masks, tokens and counts are the batch's."""

from __future__ import annotations

import importlib.util
import re
from itertools import product
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from transformers import AutoTokenizer

from isoglot.batching.loader import Loader, open_streams
from isoglot.corpus import Corpus
from isoglot.explore.batch_figure import regressed_pairs, sequence_mask
from isoglot.explore.drawn_batch import attention, cross_attention, decode_batch
from isoglot.objectives.cooccurrence import Cooccurrence
from isoglot.types import IGNORE, Cursor, MaskRule, Seq2SeqBatch
from tests.explore.drawing import DOCS, FIGURES, OBJECTIVES, drawn_figure, open_figure


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Corpus:
    """The corpus of the figures, generated and prepared here."""
    return FIGURES.make_corpus(tmp_path_factory.mktemp("figures"))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_stored_figure_is_the_one_that_is_drawn(world, name):
    stored = (DOCS / f"images/objectives/{name}.svg").read_text(encoding="utf-8")
    assert FIGURES.draw(name, world) == stored, "python docs/figures.py draws the figures again"
    assert ET.fromstring(stored).tag.endswith("svg")  # noqa: S314 (our own file)


def test_pages_have_the_figures_in_their_own_colors():
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    page = hooks.on_page_markdown((DOCS / "objectives.md").read_text(encoding="utf-8"))
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg" class="ig-svg" ') == len(OBJECTIVES)
    assert 'class="ig-svg ig-alone"' not in page
    for name in OBJECTIVES:
        assert f"images/objectives/{name}.svg" not in page


def test_every_objective_has_a_figure():
    from isoglot.objectives import all_objectives

    assert {kind.name for kind in all_objectives()} == set(OBJECTIVES)
    files = {file.stem for file in (DOCS / "images/objectives").iterdir()}
    assert files == {*OBJECTIVES, "packing"}


def test_the_stored_row_is_the_one_that_is_drawn(world):
    stored = (DOCS / "images/objectives/packing.svg").read_text(encoding="utf-8")
    assert FIGURES.draw_packing(world) == stored, "python docs/figures.py draws the figures again"


def may_attend(rule: int, query: int, key: int) -> bool:
    """Who attends to whom inside a sequence, in words: roles are 0 for the sentence, 1 a slot."""
    if rule == MaskRule.FULL:
        return True
    if rule == MaskRule.TRANSLATE:  # slots see slots, the sentence does not see them
        return key == 0 or query == 1
    return key == 0  # generate: nobody sees a slot


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_drawn_mask_is_the_rule(world, name):
    _, drawn = drawn_figure(name, world)
    rules = set()
    for row in [*drawn.rows[:2], *[row for row in drawn.rows if row.part != "main"][:2]]:
        fields = {key: tensor[row.number].tolist() for key, tensor in row.rows.tensors().items()}
        allowed = attention(row)
        for query, key in product(range(row.length), repeat=2):
            same = fields["sequences"][query] == fields["sequences"][key] >= 0
            rule, roles = fields["rules"][query], fields["roles"]
            expected = (same and may_attend(rule, roles[query], roles[key])) or query == key
            if row.part == "decoder":
                expected = expected and key <= query
            assert bool(allowed[query, key]) == expected, (row.title, query, key)
            rules.add(rule)
    restricted = {"camlm": MaskRule.TRANSLATE, "btmlm": MaskRule.GENERATE}
    assert restricted.get(name, MaskRule.FULL) in rules


@pytest.mark.parametrize("name", ["camlm", "btmlm", "mass"])
def test_the_squares_of_a_figure_are_the_mask(world, name):
    _, drawn = drawn_figure(name, world)
    row = next(row for row in reversed(drawn.rows) if row.sequences)
    one = row.sequences[0]
    block = sequence_mask(row, one, color="#000000", title="")
    squares = [
        [tuple(map(float, place)) for place in re.findall(r"M([\d.]+) ([\d.]+)h13.5", path)]
        for path in re.findall(r'<path [^>]*d="([^"]*)"', block.body)
    ]
    left, top = min(x for line in squares for x, _ in line), squares[0][0][1]
    found = np.zeros((len(one.tokens),) * 2, np.bool_)
    for x, y in (place for line in squares for place in line):
        found[round((y - top) / 15), round((x - left) / 15)] = True
    expected = attention(row, one.start, one.start + len(one.tokens))
    assert np.array_equal(found, expected)
    assert not expected.all()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_token_has_the_text_of_its_tokenizer(world, name):
    _, drawn = drawn_figure(name, world)
    own = AutoTokenizer.from_pretrained(world.tokenizer_folder)
    teacher = AutoTokenizer.from_pretrained(world.folder.parent / "teacher")
    shown = 0
    for row in drawn.rows:
        tokenizer = teacher if (row.part, row.objective) == ("auxiliary", "distill") else own
        ids = row.rows.ids[row.number].tolist()
        inside = (row.rows.sequences[row.number] >= 0).tolist()
        assert sum(inside) == row.length - row.padding
        for one in row.sequences:
            for place, token in enumerate(one.tokens, one.start):
                language = ids[place] - len(own)
                written = tokenizer.convert_ids_to_tokens(ids[place])
                expected = f"<{world.languages[language]}>" if language >= 0 else written
                assert token.text == expected
                assert inside[place]
                shown += 1
    assert shown >= drawn.batch.num_tokens


@pytest.mark.parametrize("name", OBJECTIVES)
def test_drawn_targets_are_those_that_the_losses_count(world, name):
    stage, drawn = drawn_figure(name, world)
    for objective, number in drawn.batch.num_targets.items():
        own = [
            (row.part, token)
            for row in drawn.rows
            for one in row.sequences
            if one.objective == objective
            for token in one.tokens
        ]
        settings = stage.objectives[objective]
        if objective == "cooccurrence":
            assert number == drawn.batch.num_targets["mlm"] > 0
            continue
        if settings.target_marker is None:
            part = "decoder" if settings.uses_decoder else "main"
            counted = [token for where, token in own if where == part and token.target is not None]
        else:
            tokens = [t for row in drawn.rows for one in row.sequences for t in one.tokens]
            name_of = settings.target_marker
            counted = [t for t in tokens if any(m.startswith(f"{name_of} ") for m in t.markers)]
        assert len(counted) == number > 0, objective


def test_targets_and_kinds_of_tokens(world):
    """A slow look at the sequences that an objective has built, place by place."""
    for name in ("mlm", "camlm", "mass"):
        stage = open_figure(name, world)
        built = stage.micro_batch()
        drawn = decode_batch(built, stage)
        tokenizer = AutoTokenizer.from_pretrained(world.tokenizer_folder)
        seen = {one.number: one for row in drawn.rows for one in row.sequences}
        for number, placed in enumerate(built.placed):
            one, sequence = seen[number], placed.sequence
            for place, token in enumerate(one.tokens):
                target, given = int(sequence.targets[place]), int(sequence.ids[place])
                if target == IGNORE:
                    assert token.target is None
                    assert token.kind in ("token", "special")
                    continue
                assert token.target == tokenizer.convert_ids_to_tokens(target)
                if placed.is_decoder:
                    assert token.kind in ("token", "special")
                elif sequence.roles[place]:
                    assert token.kind == "slot"
                elif given == world.vocabulary.mask:
                    assert token.kind == "masked"
                else:
                    assert token.kind == ("kept" if given == target else "replaced")


def test_the_decoder_does_not_attend_to_masked_tokens(world):
    _, drawn = drawn_figure("mass", world)
    assert isinstance(drawn.batch, Seq2SeqBatch)
    row = next(row for row in drawn.rows if row.part == "decoder")
    allowed, source = cross_attention(drawn, row)
    ids = drawn.batch.rows.ids[source.number]
    inside = drawn.batch.rows.sequences[source.number] >= 0
    expected = (inside & (ids != world.vocabulary.mask)).tolist()
    assert allowed.tolist() == [expected] * len(row.sequences[0].tokens)
    assert False in expected


def test_pairs_of_cooccurrence_are_masked_tokens_and_their_neighbors(world):
    stage, drawn = drawn_figure("cooccurrence", world)
    settings = stage.objectives["cooccurrence"]
    assert isinstance(settings, Cooccurrence)
    row = drawn.rows[0]
    for one in row.sequences:
        found = regressed_pairs(drawn, row, one, settings, world.vocabulary)
        for mine, other in product(range(len(one.tokens)), repeat=2):
            is_target = one.tokens[mine].target is not None
            near = 0 < abs(mine - other) <= settings.pairs.window
            ordinary = one.tokens[other].kind != "special"
            assert found[mine, other] == (is_target and near and ordinary)


@pytest.mark.parametrize("name", ["camlm", "mass", "distill"])
def test_batches_are_those_of_training(world, name):
    stage = open_figure(name, world)
    config = FIGURES.recipe_of(FIGURES.DRAWINGS[name], world)
    streams = open_streams(world, config.stages[0].streams, stage.objectives, row_length=64)
    steps = Loader(world, streams, config.batch).steps(Cursor())
    for step in (1, 2):
        for number, batch in enumerate(next(steps)):
            mine = stage.micro_batch(step, number).batch
            assert mine.rows.ids.equal(batch.rows.ids)
            assert mine.targets.equal(batch.targets)
            assert mine.rows.rules.equal(batch.rows.rules)
    steps.close()  # type: ignore[attr-defined] # the thread that plans ahead

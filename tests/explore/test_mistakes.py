"""Mistakes: those that `isoglot evaluate` counts, the sentence chosen instead, files, links."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import isoglot
from isoglot.errors import IsoglotError
from isoglot.explore.errors import PAGE, ErrorBrowser, View
from isoglot.explore.mistake_files import read_predictions, sources_of
from isoglot.explore.mistakes import (
    ORDERS,
    Mistake,
    Source,
    TestSet,
    find_test_set,
    retrieval_mistakes,
    sort_mistakes,
)
from isoglot.explore.session import open_session
from isoglot.intervals import unpack_outcomes
from tests.evaluation.tiny_tokenizers import LINES, make_tokenizer, save_model

if TYPE_CHECKING:
    from pathlib import Path

WORDS = sorted({word for line in LINES for word in line.split()})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A random model, pairs of random words, and a results file of both."""
    place: Path = tmp_path_factory.mktemp("mistakes")
    save_model(make_tokenizer("wordpiece"), place / "model")
    rng = np.random.default_rng(0)
    lines = [
        [" ".join(rng.choice(WORDS, size=4)) for _ in range(2)] + ["" if n % 3 else " friend"]
        for n in range(130)
    ]
    text = "".join(f"{one}\t{one if more else two}{more}\n" for one, two, more in lines)
    (place / "en-sw.tsv").write_text(text + "the fox\tthe dog\nthe lazy\tthe dog\n", "utf-8")
    isoglot.evaluate(place / "model", pairs=[place / "en-sw.tsv"], out=place / "results.json")
    return place


@pytest.fixture(scope="module")
def session(folder):
    return open_session(
        [f"mine={folder / 'model'}"],
        pairs=[folder / "en-sw.tsv"],
        results=[folder / "results.json"],
        device="cpu",
    )


def test_mistakes_are_those_that_evaluate_counts(session, folder):
    """By number in each direction, and example by example in the outcomes of the results file."""
    found = retrieval_mistakes(session.models[0], "en-sw", session.pairs["en-sw"])
    scores = {
        score.metric: score
        for score in isoglot.Results.read(folder / "results.json").scores
        if score.layer is None
    }
    number = len(session.pairs["en-sw"][0])
    assert found.count == 2 * number == 264
    for direction in ("en→sw", "sw→en"):
        wrong = [one for one in found.mistakes if one.language == direction]
        score = scores[f"accuracy@1 {direction}"]
        assert len(wrong) == round((1 - score.value) * number)
        assert 20 < len(wrong) < 120
    values = unpack_outcomes(
        next(s.outcomes for s in isoglot.Results.read(folder / "results.json").scores if s.outcomes)
    )
    wrong_once = {one.item for one in found.mistakes}
    assert wrong_once == set(np.flatnonzero(values < 1).tolist())


def test_choice_and_margin_are_those_of_the_nearest_sentence(session):
    """One sentence at a time through the plain model; the mean of all its states."""
    model, (first, second) = session.models[0], session.pairs["en-sw"]

    def vector(text: str) -> torch.Tensor:
        encoded = model.tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            return model.encoder.model.base_model(input_ids=encoded).last_hidden_state[0].mean(0)

    sides = [torch.stack([vector(text) for text in side]) for side in (first, second)]
    expected = []
    for side, direction in ((0, "en→sw"), (1, "sw→en")):
        for item, query in enumerate(sides[side]):
            cosines = F.cosine_similarity(query, sides[1 - side], dim=-1)
            best = int(cosines.argmax())
            others = session.pairs["en-sw"][1 - side]
            if others[best] != others[item]:
                margin = float(cosines[best] - cosines[item])
                expected.append((direction, item, others[item], others[best], margin))
    found = retrieval_mistakes(model, "en-sw", session.pairs["en-sw"]).mistakes
    assert [(m.language, m.item, m.right[0], m.chosen) for m in found] == [e[:4] for e in expected]
    assert [m.margin for m in found] == pytest.approx([e[4] for e in expected], abs=1e-5)
    assert all(m.margin is not None and m.margin > 0 for m in found)
    assert all(m.text == session.pairs["en-sw"][m.language != "en→sw"][m.item] for m in found)


def test_a_results_file_has_the_numbers_and_the_texts_of_the_pairs(session, folder):
    model, file = sources_of(session)
    assert (model.name, file.name) == ("mine", "results.json")
    name = ("retrieval", "en-sw")
    assert model.names == file.names == (name,)
    found = file.test_set(name)
    assert {one.item for one in found.mistakes} == {
        one.item for one in model.test_set(name).mistakes
    }
    first, second = session.pairs["en-sw"]
    assert all((m.text, m.right) == (first[m.item], (second[m.item],)) for m in found.mistakes)
    bare = open_session([folder / "model"], results=[folder / "results.json"], device="cpu")
    (only,) = sources_of(bare)
    assert only.test_set(name).mistakes[0].text == ""
    assert "not their texts" in only.test_set(name).note


def test_texts_of_a_tasks_file(folder, tmp_path):
    """Tatoeba in a folder of tasks' files: outcomes get texts, and the model is searched again."""
    (tmp_path / "tatoeba").mkdir()
    lines = (folder / "en-sw.tsv").read_text("utf-8").splitlines(keepends=True)[:60]
    swapped = ["\t".join(reversed(line.rstrip("\n").split("\t"))) + "\n" for line in lines]
    (tmp_path / "tatoeba" / "sw-en.tsv").write_text("".join(swapped), "utf-8")
    out = tmp_path / "results.json"
    isoglot.evaluate(folder / "model", ["tatoeba"], tmp_path, out=out)
    session = open_session(
        [f"mine={folder / 'model'}"], results=[out], data=[tmp_path], device="cpu"
    )
    model, file = sources_of(session)
    name = ("tatoeba", "sw-en")
    assert model.names == file.names == (name,)
    said = {(one.item, one.text) for one in file.test_set(name).mistakes}
    mine = {(m.item, m.text) for m in model.test_set(name).mistakes if m.language == "sw→en"}
    assert mine <= said
    assert {item for item, _ in said} == {m.item for m in model.test_set(name).mistakes}


def prediction(**changes):
    row: dict[str, object] = {
        "task": "mlama",
        "language": "sw",
        "id": "1",
        "prompt": "Paris ni [Y]",
        "typed": "",
    }
    row |= {"answers": ["mji"], "predicted": "mto", "is_correct": False}
    return json.dumps(row | changes)


def test_a_predictions_file(tmp_path):
    file = tmp_path / "mine.jsonl"
    rows = [
        prediction(is_correct=True),
        prediction(margin=0.5, prompt="<b>[Y]"),
        prediction(language="fr"),
        prediction(),
    ]
    file.write_text("\n".join(rows), "utf-8")
    found = read_predictions(file)
    assert {name: (one.count, len(one.mistakes)) for name, one in found.items()} == {
        ("mlama", "sw"): (3, 2),
        ("mlama", "fr"): (1, 1),
    }
    assert found["mlama", "sw"].mistakes[0] == Mistake(
        item=1, language="sw", text="<b>[Y]", right=("mji",), chosen="mto", margin=0.5
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (prediction(answers="mji"), "line 1: is not a prediction"),
        (prediction(margin="x"), "line 1: is not a prediction"),
        (prediction() + "\n{", "line 2: is not JSON"),
        ("[]", "line 1: is not a JSON object"),
        ("", "has no predictions"),
        ('{"schema": 99}', "is not a prediction"),
    ],
)
def test_damaged_files_are_one_sentence(folder, tmp_path, content, said):
    file = tmp_path / "mine.jsonl"
    file.write_text(content, "utf-8")
    session = open_session([folder / "model"], results=[file], device="cpu")
    with pytest.raises(IsoglotError, match=said):
        sources_of(session)


def numbered(count, **changes):
    return TestSet(
        count=1000,
        mistakes=tuple(
            Mistake(item=3 * n, language="en→sw" if n % 2 else "sw→en", text=f"text {n}",
                    right=("r",), chosen="c", margin=(n * 37 % 101) / 100, **changes)
            for n in range(count)
        ),
    )  # fmt: skip


def test_orders():
    found = numbered(101)
    without = Mistake(item=1, language="sw→en", text="")
    found = TestSet(count=1000, mistakes=(without, *found.mistakes))
    down = [one.margin for one in sort_mistakes(found)]
    assert down == [*[n / 100 for n in range(100, -1, -1)], None]
    up = [one.margin for one in sort_mistakes(found, order=ORDERS[1])]
    assert up == [*[n / 100 for n in range(101)], None]
    items = [one.item for one in sort_mistakes(found, order=ORDERS[2])]
    assert items == sorted([1, *range(0, 303, 3)])
    assert {one.language for one in sort_mistakes(found, direction="en→sw")} == {"en→sw"}


def browser_of(count):
    found = ErrorBrowser.__new__(ErrorBrowser)
    names = (("retrieval", "en-sw"), ("tatoeba", "sw-en"), ("mlama", "zh_Hant"))
    found.sources = {"mine": Source("mine", names, lambda _: numbered(count))}
    return found


def test_pages_of_fifty():
    browser, base = browser_of(120), View(source="mine", task="retrieval", language="en-sw")
    seen = []
    for page in range(3):
        view, html = browser.html(replace(base, page=page))
        assert view.page == page
        seen.append(html.count("<tr>") - 1)
    assert seen == [PAGE, PAGE, 20]
    assert (
        "120 of 1,000 examples are wrong (12.0 %); 51 to 100 of 120"
        in browser.html(replace(base, page=1))[1]
    )
    for page, shown in ((-1, 0), (99, 2)):
        assert browser.html(replace(base, page=page))[0].page == shown
    assert browser.html(base)[0] == base
    assert browser_of(0).html(base)[1].count("No mistakes in 1,000 examples") == 1


@pytest.mark.parametrize(
    ("query", "name", "item"),
    [
        ({"task": "retrieval", "language": "en-sw", "item": "17"}, ("retrieval", "en-sw"), 17),
        ({"language": "sw", "item": "3"}, ("retrieval", "en-sw"), 3),
        ({"task": "tatoeba", "language": "swa"}, ("tatoeba", "sw-en"), None),
        ({"task": "tatoeba", "language": "en-sw"}, ("tatoeba", "sw-en"), None),
        ({"task": "mlama", "language": "zh-Hant"}, ("mlama", "zh_Hant"), None),
        ({"task": "mlama", "item": "<script>"}, ("mlama", "zh_Hant"), None),
        ({"item": "9" * 5000}, ("retrieval", "en-sw"), None),
        ({"task": "nosuch"}, None, None),
        ({"language": "fr"}, None, None),
    ],
)
def test_links_find_their_test_set(query, name, item):
    view = browser_of(1).linked_view(query)
    assert (view and (view.task, view.language)) == name
    assert (view and view.item) == item


def test_a_linked_example_stands_first():
    browser = browser_of(120)
    for item in (0, 3 * 7, 3 * 119):
        view, html = browser.html(browser.linked_view({"task": "retrieval", "item": str(item)}))
        linked, listed = html.split('aria-label="mistakes"')
        assert f'<td data-heading="example">{item:,}</td>' in linked.split('aria-label="linked"')[1]
        assert linked.count("<tr>") == 2
        assert listed.count("<tr>") == 1 + PAGE
        assert view.page == 0
    _, html = browser.html(browser.linked_view({"task": "retrieval", "item": "1"}))
    assert "has example 1 right, or the test set has no such example" in html
    assert 'aria-label="linked"' not in html


def test_test_sets_are_read_once_and_by_name():
    read = []

    def counted(name):
        read.append(name)
        return numbered(1)

    source = Source("x", (("a", "b"),), counted)
    assert source.test_set(("a", "b")) is source.test_set(("a", "b"))
    assert read == [("a", "b")]
    with pytest.raises(IsoglotError, match="x has no test set of a in c"):
        source.test_set(("a", "c"))
    assert find_test_set([source], "", "") == (source, ("a", "b"))

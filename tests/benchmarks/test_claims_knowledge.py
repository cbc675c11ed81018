"""Knowledge of the claims: X-FACTR's notation, the split of facts, tables, linking, the score."""

from __future__ import annotations

import json
import lzma
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import torch
from benchmarks.alignment.cell import train
from benchmarks.claims import facts as facts_module
from benchmarks.claims import knowledge
from benchmarks.claims.checkpoints import SMALL
from benchmarks.claims.facts import Names, accuracies, chance, cloze_states, fact_scores
from benchmarks.claims.knowledge import (
    check_tables,
    part_of,
    scorable_facts,
    write_knowledge,
    write_tables,
    write_tests,
)
from benchmarks.claims.table import read_table
from benchmarks.claims.xfactr import Fact, Template, World, read_world, usual_name
from transformers import AutoTokenizer

from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import CorpusError
from isoglot.evaluation.embed import encode_in_batches
from isoglot.evaluation.loading import load_for_scoring
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.recipe import load_recipe

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus import Corpus

CITIES, COUNTRIES = 60, 6
TEMPLATES = {
    "en": {"P17": "[X] is located in [Y] .", "P1376": "[X] is the capital of [Y] ."},
    "fr": {
        "P17": "[X] est [situé;X-Gender=MASC|située;X-Gender=FEM] [PREPLOC;Y] [Y] .",
        "P1376": "[X] est la capitale [PREPDEF;Y] [Y] .",
    },
}


def hand_made_facts() -> list[Fact]:
    """Sixty cities in six countries; the first six are capitals."""
    found = [Fact(f"Q{100 + n}", "P17", f"Q{n % COUNTRIES + 1}") for n in range(CITIES)]
    return found + [Fact(f"Q{100 + n}", "P1376", f"Q{n + 1}") for n in range(COUNTRIES)]


def name_of(entity: str, language: str) -> str:
    number = int(entity[1:])
    kind = "Town" if number >= 100 else "Land"
    letters = "".join(chr(ord("a") + int(digit)) for digit in str(number))
    return f"{kind if language == 'en' else kind[::-1]}{letters}"


def world() -> World:
    made = hand_made_facts()
    entities = {entity for fact in made for entity in fact.pair}
    return World(
        tuple(made),
        {code: {one: name_of(one, code) for one in entities} for code in TEMPLATES},
        {
            code: {name: Template.parse(text) for name, text in of.items()}
            for code, of in TEMPLATES.items()
        },
    )


def write_pack(data: Path) -> None:
    """The same facts as files of the data folder, and what must be left out of them."""

    def write(name: str, lines: list[str]) -> None:
        file = data / "eval" / "lama" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with lzma.open(file, "wt", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in lines)

    made = hand_made_facts()
    entities = sorted({entity for fact in made for entity in fact.pair})
    rows = [
        {"sub_uri": s, "predicate_id": r, "obj_uri": o,
         "sub_label": name_of(s, "en"), "obj_label": name_of(o, "en")}
        for s, r, o in [*made, made[0], Fact("Q100", "P17", "Q999"), Fact("Q100", "P9", "Q1")]
    ]  # fmt: skip
    write("xfactr_mtrexf.jsonl.xz", list(map(json.dumps, rows)))
    for code, of in TEMPLATES.items():
        name = "TREx-relations" if code == "en" else f"relations.{code}"
        told = [json.dumps({"relation": r, "template": t}) for r, t in of.items()]
        write(f"xfactr_templates/{name}.jsonl.xz", told)
        names = [f"{one}\t{name_of(one, code)}" for one in entities]
        write(f"xfactr_aliases/{code}.tsv.xz", [*names, "Q999\tnowhere"] if code == "en" else names)
    write("xfactr_aliases/zh.tsv.xz", ["Q1\tname without templates"])


@pytest.mark.parametrize(
    ("template", "sentence", "spans"),
    [
        ("[X] is a [Y] .", "Ann is a poet.", {"subject": (0, 3), "object": (9, 13)}),
        ("[Y] sở hữu [X] .", "poet sở hữu Ann.", {"object": (0, 4), "subject": (12, 15)}),
        ("[X.Nom] [был;X-Gender=MASC|была;X-Gender=FEM]  в [Y.Ess] . ", "Ann был в poet.", None),
        ("La [a;b] [PREPDEF;X] [X] est  [ARTDEF;Y] [Y]", "La a de Ann est poet.", None),
        ("[X.Gen] dili [Y;be] .", "Ann dili poet.", None),
    ],
)
def test_templates(template: str, sentence: str, spans: Any) -> None:
    text, found = Template.parse(template).fill("Ann", "poet")
    assert text == sentence
    assert spans is None or found == spans
    assert {slot: text[a:b] for slot, (a, b) in found.items()} == {
        "subject": "Ann",
        "object": "poet",
    }


def test_a_template_needs_both_names() -> None:
    with pytest.raises(AssertionError, match="not one place"):
        Template.parse("[X] is .")


def test_usual_names() -> None:
    assert usual_name(["CA", "CAN", "Canadá"], "Canada", (), "es") == "Canadá"
    assert usual_name(["Canada", "Канада"], "Canada", (), "ru") == "Канада"
    assert usual_name(["Germanie", "Allemagne"], "Germany", {"Allemagne"}, "fr") == "Allemagne"
    assert usual_name(["КГБ", "KGB"], "KGB", (), "fr") == "KGB"
    assert usual_name(["Мачтет, Григорий", "Григорий Мачтет"], "Grigori Machtet", (), "ru") == (
        "Григорий Мачтет"
    )


def test_reading_keeps_what_has_names_and_templates_everywhere(tmp_path: Path) -> None:
    write_pack(tmp_path)
    found = read_world(tmp_path)
    assert found.languages == ("en", "fr")
    assert list(found.facts) == hand_made_facts()
    assert found.tell(Fact("Q100", "P1376", "Q1"), "fr") == (
        f"{name_of('Q100', 'fr')} est la capitale de {name_of('Q1', 'fr')}."
    )


def test_all_facts_of_two_entities_are_in_one_part() -> None:
    parts = {fact: part_of(fact) for fact in hand_made_facts()}
    for fact, part in parts.items():
        assert part_of(Fact(fact.object, "P36", fact.subject)) == part
    many = [part_of(Fact(f"Q{n}", "P1", f"Q{n + 9}")) for n in range(20_000)]
    assert many.count("test") / len(many) == pytest.approx(0.10, abs=0.01)
    assert many.count("dev") / len(many) == pytest.approx(0.05, abs=0.01)


def test_tables_tell_training_facts_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge, "HELDOUT_SHARE", 0.0)
    made = world()
    heldout = [fact for fact in made.facts if fact.pair == ("Q1", "Q100")]
    train = [fact for fact in made.facts if fact not in heldout]
    counts = write_tables(made, train, tmp_path / "tables")
    assert len(heldout) == 2
    assert counts["facts"] == len(train)
    check_tables(made, heldout, tmp_path / "tables")
    file = tmp_path / "tables" / "wikipedia" / "fr" / "sentences-00000.parquet"
    told = [row["text"] for row in pq.read_table(file).to_pylist()]
    assert made.tell(train[-1], "fr") in told
    assert not {made.tell(fact, "fr") for fact in heldout} & set(told)
    for row in pq.read_table(file).to_pylist():
        for one in row["links"]:
            assert row["text"][one["start"] : one["end"]] == name_of(one["target"], "fr")


def test_a_held_out_fact_in_the_tables_is_refused(tmp_path: Path) -> None:
    made = world()
    write_tables(made, made.facts, tmp_path / "tables")
    with pytest.raises(CorpusError, match="is a claim"):
        check_tables(made, made.facts[:1], tmp_path / "tables")
    # a claim of the training facts alone, and the held-out one on a page
    others = tmp_path / "others"
    write_tables(made, made.facts[1:CITIES], others)
    (others / "wikidata" / "claims-00000.parquet").replace(
        tmp_path / "tables" / "wikidata" / "claims-00000.parquet"
    )
    with pytest.raises(CorpusError, match="is told"):
        check_tables(made, made.facts[:1], tmp_path / "tables")


def test_what_gives_an_object_away_is_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "MIN_CANDIDATES", COUNTRIES)
    made = world()
    first, second, *train = made.facts
    assert scorable_facts(made, [first, second], train) == ([first, second], {})
    made.names["fr"][first.subject] = f"Nouvelle {made.names['fr'][first.object]}"
    kept, dropped = scorable_facts(made, [first, second], train)
    assert (kept, dropped) == ([second], {"object in the subject's name": 1})
    # another city of the same name, in the same country
    twin = next(fact for fact in train if fact.object == second.object)
    made.names["en"][twin.subject] = made.names["en"][second.subject]
    assert scorable_facts(made, [second], train)[1] == {"told of entities of the same names": 1}
    monkeypatch.setattr(knowledge, "MIN_CANDIDATES", COUNTRIES + 1)
    assert scorable_facts(made, [second], train)[1] == {"relation with few objects": 1}


class Vectors:
    """Instead of an encoder: texts have the vectors that a test gives them."""

    def __init__(self, by_text: dict[str, list[float]]) -> None:
        self.by_text = by_text

    def names(self, _: Any, __: Any, names: list[str], ___: str) -> torch.Tensor:
        found = torch.tensor([self.by_text[name] for name in names])
        return torch.stack([torch.zeros_like(found), found])

    def clozes(self, _: Any, __: Any, clozes: list[str], ___: str) -> dict[str, torch.Tensor]:
        found = torch.tensor([self.by_text[cloze] for cloze in clozes])
        layers = torch.stack([torch.zeros_like(found), found])
        return {"mean": torch.zeros_like(layers), "mask": layers}


def test_the_score_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cities, two of which are near their countries; one country is a known other object."""
    made = world()
    asked = [fact for fact in made.facts if fact.relation == "P17"][:4]
    known = (*made.facts, Fact(asked[0].subject, "P17", "Q2"))
    told = World(known, made.names, made.templates)
    for part in ("dev", "test"):
        write_tests(told, {"dev": asked, "test": asked}, tmp_path / "facts")
        assert len((tmp_path / "facts" / f"{part}.jsonl").read_text("utf-8").splitlines()) == 4
    places = {f"Q{n + 1}": torch.eye(COUNTRIES)[n].tolist() for n in range(COUNTRIES)}
    nearest = {"Q100": "Q2", "Q101": "Q2", "Q102": "Q3", "Q103": "Q6"}
    vectors = {
        made.names[code][one]: vector for code in TEMPLATES for one, vector in places.items()
    }
    for fact in asked:
        for code in TEMPLATES:
            template = made.templates[code]["P17"]
            cloze = template.fill(made.names[code][fact.subject], "[Y]")[0]
            second = places["Q1"] if fact.subject == "Q100" else [0.0] * COUNTRIES
            first = places[nearest[fact.subject]]
            vectors[cloze] = [a + 0.9 * b for a, b in zip(first, second, strict=True)]
    stand_in = Vectors(vectors)
    monkeypatch.setattr(facts_module, "name_states", stand_in.names)
    monkeypatch.setattr(facts_module, "cloze_states", stand_in.clozes)
    names = Names(None, None, tmp_path / "facts")
    found = accuracies(None, None, names, tmp_path / "facts" / "test.jsonl")
    # Q100 is nearest to Q2, which is another known object of it: Q1 comes next
    assert found["mask", 1] == [75.0, 75.0]
    assert chance(names, tmp_path / "facts" / "test.jsonl") == pytest.approx(
        100 * (3 / 6 + 1 / 5) / 4
    )
    assert fact_scores(None, None, tmp_path)["details"]["facts chosen"] == "mask, layer 1"
    assert fact_scores(None, None, tmp_path / "elsewhere") == {"details": {}}


def test_arms_differ_in_their_knowledge_alone() -> None:
    arms = read_table().arms
    recipes = {
        name: load_recipe(str(arm.file), list(arm.settings))
        for name, arm in arms.items()
        if name.startswith("k-") and name != "k-contrast"  # a mixture
    }
    assert len(recipes) == 5
    text = {str(recipe.stages[0].streams["text"]) for recipe in recipes.values()}
    assert len(text) == 1
    for recipe in recipes.values():
        shares = [stream.share for stream in recipe.stages[0].streams.values()]
        assert sum(shares) == 1
        assert recipe.optimizer == recipes["k-none"].optimizer
        assert recipe.loss == recipes["k-none"].loss
    assert recipes["k-mep"].objectives == recipes["k-same-language"].objectives


def test_states_of_clozes_and_names(corpus: Corpus) -> None:
    """Both poolings, against one text at a time through the encoder."""
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=2, hidden_size=32, num_heads=2)
    encoder = Encoder.build(settings, corpus.vocabulary).eval()
    tokenizer = AutoTokenizer.from_pretrained(corpus.tokenizer_folder)
    clozes = ["ka lo [Y].", "[Y] mi tu se ra.", "no [Y] pe."]
    found = cloze_states(encoder, tokenizer, clozes, "aa")
    for row, cloze in enumerate(clozes):
        ids = tokenizer(cloze.replace("[Y]", tokenizer.mask_token))["input_ids"]
        (place,) = (n for n, one in enumerate(ids) if one == tokenizer.mask_token_id)
        ((_, _, states),) = encode_in_batches(encoder, [ids], tokenizer.pad_token_id)
        assert states.layers is not None
        for layer, hidden in enumerate(states.layers):
            torch.testing.assert_close(found["mask"][layer, row], hidden[0, place].detach())
            torch.testing.assert_close(found["mean"][layer, row], hidden[0].mean(dim=0).detach())


def prepare_text(work: Path) -> None:
    """WORK/corpus of sentences about the hand-made world, for the vocabulary of its names."""
    made = world()
    for code in TEMPLATES:
        lines = [made.tell(fact, code) for fact in made.facts]
        file = work / "raw" / f"{code}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines), encoding="utf-8")
    config = PrepareConfig(
        sources={
            "text": SourceConfig(
                kind="text",
                format="lines",
                files={code: (f"raw/{code}.txt",) for code in TEMPLATES},
            )
        },
        tokenizer=TokenizerConfig(vocab_size=200, byte_fallback=False),
        heldout_share=0.05,
    )
    prepare(config, work / "corpus", base=work)


@pytest.mark.slow
def test_from_facts_to_scored_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pack(tmp_path / "data")
    prepare_text(tmp_path)
    monkeypatch.setattr(knowledge, "MIN_CANDIDATES", 3)
    monkeypatch.setattr(knowledge, "HELDOUT_SHARE", 0.2)
    counts = write_knowledge(tmp_path / "data", tmp_path)
    assert counts["dev"] > 0
    assert counts["test"] > 0
    assert counts["linked"]["mentions"]["fr"] > 0
    small = ["stages.0.steps=2", *SMALL, "model.num_layers=1", "model.hidden_size=32"]
    more = ["model.num_heads=2", "batch.row_length=64"]
    for name in ("k-none", "k-both", "k-same-language"):
        file = str(read_table().arms[name].file)
        model, told = train(tmp_path, file, 0, None, [*small, *more])
        assert set(told["losses"]) >= {"k-none": {"mlm"}}.get(name, {"mlm", "entity"})
        found = fact_scores(*load_for_scoring(model), tmp_path / "tests")
        assert 0 <= found["facts"] <= 100


@pytest.mark.slow
def test_no_held_out_fact_of_the_real_ones_is_told(data_folder: Path, tmp_path: Path) -> None:
    real = read_world(data_folder)
    assert real.languages == ("en", "es", "fr", "ru", "tr", "vi")
    parts = {part: [f for f in real.facts if part_of(f) == part] for part in ("train", "test")}
    tested, _ = scorable_facts(real, parts["test"], parts["train"])
    assert len(tested) > 500
    write_tables(real, parts["train"], tmp_path / "tables")
    check_tables(real, tested, tmp_path / "tables")
    with pytest.raises(CorpusError, match="held-out fact"):
        check_tables(real, [*tested, parts["train"][0]], tmp_path / "tables")

"""Original formats that the data pack does not have, on rows written for it (fixtures/)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isoglot.tasks import all_tasks, find_task
from isoglot.tasks.examples import (
    BitextEntry,
    LabeledText,
    LexiconEntry,
    MultipleChoice,
    SentencePair,
    TaggedSentence,
)
from isoglot.tasks.unread import unread_files

FOLDER = Path(__file__).parent / "fixtures"


def read(name, language, split):
    task = find_task(name)
    return task.read(task.find_split(FOLDER, language, split))


def test_every_fixture_belongs_to_a_task():
    used = {path for kind in all_tasks() for part in kind().splits(FOLDER) for path in part.files}
    beside = {".eng", ".en", ".gold", ".md"}
    others = {p for p in FOLDER.rglob("*") if p.is_file()} - used
    named = {path.name for path in others if path.suffix not in beside}
    assert named == {"relations.jsonl", "align.txt"}
    assert {file for kind in all_tasks() for file in unread_files(kind(), FOLDER)} == set()


def test_xnli():
    assert read("xnli", "de", "dev") == [
        LabeledText(
            id="1", first="Die Katze schläft.", second="Ein Tier schläft.", label="entailment"
        ),
        LabeledText(
            id="2", first="Die Katze schläft.", second="Die Katze rennt.", label="contradiction"
        ),
    ]
    assert [e.label for e in read("xnli", "sw", "dev")] == ["neutral"]
    assert [e.label for e in read("xnli", "de", "train")] == ["contradiction", "entailment"]


def test_xnli_in_csv_and_a_tab_inside_quotes():
    assert read("xnli", "hr", "test") == [
        LabeledText(
            id="1", first="Mačka, kaže, spava.", second="Životinja\nspava.", label="entailment"
        ),
        LabeledText(id="2", first="Mačka spava.", second="Mačka trči.", label="contradiction"),
    ]
    quoted, plain = read("xnli", "de", "test")
    assert (quoted.first, quoted.second) == ("Die Katze\tschläft.", "Ein Tier schläft.")
    assert (plain.first, plain.second) == ('"Sie" sagt', 'nichts"'), "quotes as they are"


def test_sick_in_portuguese():
    assert [(e.id, e.label) for e in read("sick", "pt", "train")] == [("1", "entailment")]
    assert [(e.id, e.first) for e in read("sick", "pt", "test")] == [("2", "Um gato dorme")]


def test_masakhaner_2_is_a_task_of_its_own():
    assert read("masakhaner2", "tn", "test")[0].tags == ("B-LOC", "O", "B-DATE")
    assert "tn" not in {part.language for part in find_task("masakhaner").splits(FOLDER)}


def test_word_alignment_with_sure_links_alone():
    (pair,) = read("alignment", "de-en", "test")
    assert pair.sure == pair.possible == {(0, 0), (1, 1)}


def test_paws_x():
    assert [(e.id, e.label) for e in read("paws-x", "de", "test")] == [("1", "0"), ("2", "1")]
    assert len(read("paws-x", "de", "train")) == 1


def test_reviews():
    reviews = read("cls", "de", "train")
    assert [(e.id, e.label) for e in reviews] == [
        ("books-1", "positive"), ("books-2", "negative"), ("music-1", "positive"),
    ]  # fmt: skip
    assert reviews[0].first == "Gern gelesen\nEin Buch & ein Vergnügen."
    assert reviews[2].first == "Schöne Lieder."


def test_reviews_of_one_category():
    assert [e.id for e in read("cls-books", "de", "train")] == ["books-1", "books-2"]
    assert [e.id for e in read("cls-music", "de", "train")] == ["music-1"]


def test_conll_in_latin_1_and_with_document_marks():
    spanish = read("conll", "es", "test")
    assert spanish[0] == TaggedSentence(
        id="1",
        words=("Pérez", "vive", "en", "Ávila", "."),
        tags=("B-PER", "O", "O", "B-LOC", "O"),
    )
    assert len(spanish) == 2
    assert [e.words for e in read("conll", "nl", "train")] == [("Anna", "belt")]
    english = read("conll", "en", "dev")
    assert [e.words[0] for e in english] == ["Anna", "Rain"]
    assert english[0].tags == ("B-PER", "O", "O", "B-LOC", "O")


def test_conll_has_the_same_tags_in_all_languages(tmp_path):
    """2003's originals have a B only between two names of one type."""
    (tmp_path / "conll2003").mkdir()
    text = "Anna I-PER\nBerg I-PER\nBen B-PER\nmeet O\nRome I-LOC\n\n"
    (tmp_path / "conll2003/eng.train").write_text(text, encoding="utf-8")
    task = find_task("conll")
    (sentence,) = task.read(task.find_split(tmp_path, "en", "train"))
    assert sentence.tags == ("B-PER", "I-PER", "B-PER", "O", "B-LOC")
    gold = [("I-PER", "I-PER", "B-PER", "O", "I-LOC")]
    assert task.score([sentence], gold, "en")["f1"] == 1.0


def test_other_columns():
    assert [e.words for e in read("wikiann", "sw", "test")] == [("Anna", "::"), ("Nairobi",)]
    assert [e.words for e in read("wikiann", "sw", "dev")] == [("Anna",), ("Nairobi",)]
    assert read("masakhaner", "sw", "test")[0].tags == ("B-PER", "O", "B-DATE")
    assert read("germeval2014", "de", "test")[0].words == ("#", "Bernerin")
    assert read("uner", "en", "test")[0].tags == ("B-PER", "O")


def test_words_count_and_not_the_tokens_that_hold_them():
    (sentence,) = read("ud-pos", "sw", "test")
    assert sentence.words == ("ha", "wezi", ".")
    assert sentence.tags == ("PART", "VERB", "PUNCT")


def test_questions():
    first, second = read("squad", "en", "dev")
    assert [(a.text, a.start) for a in first.answers] == [("The river Aare", 0), ("Aare", 10)]
    assert second.id == "q2"
    assert [len(q.answers) for q in read("squad-v2", "en", "dev")] == [1, 0]
    assert read("xquad", "sw", "test")[0].answers[0].text == "Mto Aare"


@pytest.mark.parametrize("language", ["de", "es"])
def test_translated_questions_keep_their_ids_and_lose_answers_without_a_place(language):
    (question,) = read("squad", language, "train")
    assert question.id == "q1", "the second one's answer is not in the paragraph"
    assert [answer.start for answer in question.answers] == [4]


def test_the_languages_of_question_and_paragraph():
    task = find_task("mlqa")
    assert {(part.language, part.name) for part in task.splits(FOLDER)} == {
        ("de-en", "test"), ("de", "dev"),
    }  # fmt: skip
    (across,) = read("mlqa", "de-en", "test")
    assert across.question == "Was fließt durch Bern?"
    assert across.context.startswith("The river")


def test_a_file_of_all_languages_is_split_by_question_ids():
    assert [q.id for q in read("tydiqa", "sw", "train")] == ["swahili-2-0"]
    assert [q.id for q in read("tydiqa", "en", "train")] == ["english-1-0"]
    assert read("tydiqa", "fi", "train") == []
    assert [q.id for q in read("tydiqa", "sw", "dev")] == ["swahili-1-0"]


def test_a_file_of_one_language_is_not_another_ones(tmp_path):
    (tmp_path / "tydiqa").mkdir()
    content = json.loads((FOLDER / "tydiqa/tydiqa-goldp-v1.1-train.json").read_text("utf-8"))
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            paragraph["qas"] = [q for q in paragraph["qas"] if q["id"].startswith("swahili-")]
    (tmp_path / "tydiqa/tydiqa-goldp-v1.1-train.json").write_text(json.dumps(content), "utf-8")
    task = find_task("tydiqa")
    counts = {part.language: len(task.read(part)) for part in task.splits(tmp_path)}
    assert {language for language, number in counts.items() if number} == {"sw"}


def test_choices():
    assert read("xcopa", "sw", "dev") == [
        MultipleChoice(
            id="0",
            premise="Mvua ilinyesha.",
            asks="effect",
            choices=("Barabara ililowa.", "Jua liliwaka."),
            right=0,
        )
    ]
    assert [(e.asks, e.right) for e in read("copa", "en", "train")] == [("effect", 0), ("cause", 1)]
    assert len(read("copa", "en", "dev")) == 1


def test_sentences():
    assert read("tatoeba", "de-en", "test")[1] == SentencePair(
        first="Es regnet.", second="It rains."
    )
    assert read("bucc", "de-en", "test") == [
        BitextEntry(first="Die Katze schläft.", second="The cat sleeps."),
        BitextEntry(first="Es regnet.", second="It rains."),
        BitextEntry(first="Niemand kennt mich.", second=None),
        BitextEntry(first=None, second="Alone."),
    ]


def test_words():
    assert read("muse", "en-de", "test") == [
        LexiconEntry(word="cat", translations=("Katze", "Kater")),
        LexiconEntry(word="rain", translations=("Regen",)),
    ]
    assert read("muse", "en-de", "train") == [LexiconEntry(word="dog", translations=("Hund",))]
    assert read("analogy", "en", "test")[0].section == "capital-common-countries"
    pair = read("alignment-awesome", "de-en", "test")[0]
    assert pair.sure == {(0, 0), (1, 1)}
    assert pair.possible == {(0, 0), (1, 1), (2, 2)}


def test_the_royal_analogies_are_those_of_the_table():
    rows = read("analogy-royal", "en-de", "test")
    assert len(rows) == 16
    assert rows[0].section == "King-Man+Woman Queen"
    assert (rows[0].b, rows[0].a, rows[0].c, rows[0].d) == ("King", "Man", "Woman", "Queen")


def test_lama():
    facts = {fact.id: fact for fact in read("lama", "en", "test")}
    assert facts["u1"].prompt == "The capital of France is [Y] ."
    assert facts["u4"].prompt == "Ben was born in [Y] ."
    assert facts["u5"].prompt == "Phones are made of [Y]."
    assert {fact.group for fact in facts.values()} == {
        "T-REx 1-1", "T-REx N-1", "Google-RE place_of_birth", "ConceptNet", "SQuAD",
    }  # fmt: skip
    assert facts["u6_0"].answers == ("Aare",)


def test_lama_leaves_out_what_its_script_leaves_out(tmp_path):
    def write(name, *rows):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    def fact(uuid, subject, *judgments):
        judged = [{"judgment": said} for said in judgments]
        return {"uuid": uuid, "sub_label": subject, "obj_label": "Rome", "judgments": judged}

    write(
        "lama/data/Google_RE/place_of_birth_test.jsonl",
        fact("denied", "Ben", "no", "no", "yes"),
        fact("tied", "Anna", "no", "yes"),
        fact("again", "Anna", "yes"),
        fact("skipped", "Eva", "yes", "skip", "skip"),
    )
    write(
        "lama/data/Squad/test.jsonl",
        {"id": "short", "masked_sentences": ["word " * 99 + "[MASK]"], "obj_label": "Rome"},
        {"id": "long", "masked_sentences": ["word " * 100 + "[MASK]"], "obj_label": "Rome"},
    )
    task = find_task("lama")
    assert [f.id for f in task.read(task.find_split(tmp_path, "en", "test"))] == ["tied", "short"]


def test_mlama_offers_the_objects_of_the_relation():
    first, second = read("mlama", "sw", "test")
    assert first.prompt == "Mji mkuu wa Kenya ni [Y]."
    assert first.candidates == second.candidates == ("Nairobi", "Paris")
    assert first.group == "T-REx 1-1"


def test_precision_is_averaged_over_relations():
    facts = read("lama", "en", "test")
    said = {"u1": "paris ", "u2": "Mombasa", "u3": "Bern", "u4": "x", "u5": "plastic", "u6_0": "x"}
    scores = find_task("lama").score(facts, [said[fact.id] for fact in facts], "en")
    assert scores == {
        "p@1": pytest.approx((0.5 + 1 + 0 + 1 + 0) / 5),
        "p@1 T-REx": 0.75,
        "p@1 T-REx 1-1": 0.5,
        "p@1 T-REx N-1": 1.0,
        "p@1 Google-RE": 0.0,
        "p@1 Google-RE place_of_birth": 0.0,
        "p@1 ConceptNet": 1.0,
        "p@1 SQuAD": 0.0,
    }

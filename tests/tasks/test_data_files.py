"""Hugging Face dataset folders: Parquet files of a repository and Arrow files saved to disk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from isoglot.errors import CorpusError
from isoglot.tasks import find_task
from isoglot.tasks.data_files import csv_rows, hf_rows

FIXTURES = Path(__file__).parent / "fixtures"
FILES = ["{}-00000-of-00001.parquet", "{}/data-00000-of-00001.arrow"]
LABELS = {"_type": "ClassLabel", "names": ["entailment", "neutral", "contradiction"]}
TAGS = {"_type": "ClassLabel", "names": ["O", "B-PER", "I-PER"]}
ANSWERS = {"text": ["Aare", "Aare"], "answer_start": [4, 4]}


def table(rows, features):
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.Table.from_pylist(rows).replace_schema_metadata(metadata)


def save(content, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(content, path)
        return
    with ipc.new_stream(str(path), content.schema) as writer:
        writer.write_table(content)


@pytest.mark.parametrize("file", ["test-00000-of-00001.parquet", "test/data-00000-of-00001.arrow"])
def test_numbers_become_labels(tmp_path, file):
    rows = [
        {"premise": "A.", "hypothesis": "B.", "label": 2},
        {"premise": "C.", "hypothesis": "D.", "label": 0},
    ]
    save(table(rows, {"label": LABELS}), tmp_path / "xnli/sw" / file)
    task = find_task("xnli")
    examples = task.read(task.find_split(tmp_path, "sw", "test"))
    assert [(e.first, e.second, e.label) for e in examples] == [
        ("A.", "B.", "contradiction"), ("C.", "D.", "entailment"),
    ]  # fmt: skip


@pytest.mark.parametrize("wrapped", [{"_type": "List", "feature": TAGS}, {"feature": TAGS}])
def test_lists_of_numbers_become_tags(tmp_path, wrapped):
    rows = [{"tokens": ["Anna", "Li", "calls"], "ner_tags": [1, 2, 0]}]
    for shard in range(2):
        file = tmp_path / f"conll2003/conll2003/validation-0000{shard}-of-00002.parquet"
        save(table(rows, {"ner_tags": wrapped}), file)
    task = find_task("conll")
    examples = task.read(task.find_split(tmp_path, "en", "dev"))
    assert [e.id for e in examples] == ["1", "2"], "the shards of a split make one part"
    assert examples[0].tags == ("B-PER", "I-PER", "O")


def test_questions(tmp_path):
    row = {"id": "1", "context": "The Aare", "question": "Which?", "answers": ANSWERS}
    save(table([row], {}), tmp_path / "xquad/xquad.de/validation-00000-of-00001.parquet")
    save(table([row], {}), tmp_path / "mlqa/mlqa.en.de/test-00000-of-00001.parquet")
    xquad, mlqa = find_task("xquad"), find_task("mlqa")
    (question,) = xquad.read(xquad.find_split(tmp_path, "de", "test"))
    assert [a.start for a in question.answers] == [4, 4]
    assert mlqa.find_split(tmp_path, "de-en", "test").language == "de-en", (
        "question, then paragraph"
    )


@pytest.mark.parametrize(
    ("name", "place", "language"),
    [("germeval2014", "germeval_14/germeval_14", "de"), ("uner", "universal_ner/zh_gsd", "zh")],
)
def test_names_of_single_languages_and_treebanks(tmp_path, name, place, language):
    rows = [{"tokens": ["Anna", "ruft"], "ner_tags": [1, 0]}]
    save(table(rows, {"ner_tags": {"feature": TAGS}}), tmp_path / place / "test-0.parquet")
    task = find_task(name)
    (example,) = task.read(task.find_split(tmp_path, language, "test"))
    assert example.tags == ("B-PER", "O")


def test_captions(tmp_path):
    row = {"id": "7", "sentence_A": "A dog.", "sentence_B": "No dog.", "label": 2}
    save(table([row], {"label": LABELS}), tmp_path / "sick/default/validation-0.parquet")
    task = find_task("sick")
    (example,) = task.read(task.find_split(tmp_path, "en", "dev"))
    assert (example.id, example.first, example.label) == ("7", "A dog.", "contradiction")


def test_rows_keep_their_numbers(tmp_path):
    rows = [{"language": code, "n": n} for n, code in enumerate("abab")]
    save(table(rows, {}), tmp_path / "x.arrow")
    assert [(row.number, row["n"]) for row in hf_rows(tmp_path / "x.arrow")] == [
        (1, 0), (2, 1), (3, 2), (4, 3),
    ]  # fmt: skip
    some = hf_rows(tmp_path / "x.arrow", "language", where=("language", "b"))
    assert [(row.number, row["n"]) for row in some] == [(2, 1), (4, 3)]


def same_as_the_originals(name, folder, language, originals=FIXTURES):
    """What a task reads here is what it reads from files of the original format."""
    task = find_task(name)
    here, there = (task.find_split(root, language, "test") for root in (folder, originals))
    assert task.read(here) == task.read(there)


def json_rows(name):
    return list(map(json.loads, (FIXTURES / name).read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize("file", FILES)
def test_translations(tmp_path, file):
    """XTREME's script leaves the ends of lines, and names a language after a path."""
    sides = (
        (FIXTURES / f"tatoeba/v1/tatoeba.deu-eng.{code}").read_text(encoding="utf-8")
        for code in ("deu", "eng")
    )
    rows = [
        {"source_sentence": one, "target_sentence": other, "source_lang": "x", "target_lang": "eng"}
        for one, other in zip(*(side.splitlines(keepends=True) for side in sides), strict=True)
    ]
    save(table(rows, {}), tmp_path / "xtreme/tatoeba.deu" / file.format("validation"))
    same_as_the_originals("tatoeba", tmp_path, "de-en")


def test_original_translations_come_first(tmp_path):
    rows = [{"source_sentence": "Nein.", "target_sentence": "No."}]
    for code in ("deu", "swh"):
        save(table(rows, {}), tmp_path / f"xtreme/tatoeba.{code}/validation-0.parquet")
    (tmp_path / "tatoeba").mkdir()
    (tmp_path / "tatoeba/deu-eng.tsv").write_text("Ja.\tYes.\n", encoding="utf-8")
    task = find_task("tatoeba")
    read = {part.language: task.read(part)[0].second for part in task.splits(tmp_path)}
    assert read == {"de-en": "Yes.", "sw-en": "No."}


def lama_rows():
    """The fixtures as the dataset's script writes them: a row for each sentence of a fact."""
    relations = {row.pop("relation"): row for row in json_rows("lama/data/relations.jsonl")}
    trex = [
        {**row, "predicate_id": name, **relations[name], "masked_sentence": sentence}
        for name in ("P36", "P19")
        for row in json_rows(f"lama/data/TREx/{name}.jsonl")
        for sentence in ("One [MASK].", "Two [MASK].")
    ]
    judged = {
        "pred": "/people/person/place_of_birth",
        "judgments": str([{"rater": "1", "judgment": "yes"}]),
    }
    found = {
        "google_re": json_rows("lama/data/Google_RE/place_of_birth_test.jsonl"),
        "conceptnet": json_rows("lama/data/ConceptNet/test.jsonl"),
        "squad": json_rows("lama/data/Squad/test.jsonl"),
    }
    for rows in found.values():
        for row in rows:
            (row["masked_sentence"],) = row.pop("masked_sentences")
    return {**found, "trex": trex, "google_re": [{**row, **judged} for row in found["google_re"]]}


@pytest.mark.parametrize("file", FILES)
def test_lama(tmp_path, file):
    for config, rows in lama_rows().items():
        save(table(rows, {}), tmp_path / "lama" / config / file.format("train"))
    same_as_the_originals("lama", tmp_path, "en")


def test_a_fact_in_two_shards_is_one_and_a_denied_one_is_none(tmp_path):
    rows = lama_rows()
    for shard in range(2):
        save(table(rows["trex"], {}), tmp_path / f"lama/trex/train-0000{shard}-of-00002.parquet")
    (born,) = rows["google_re"]
    denied = str([{"rater": "1", "judgment": "no"}])
    save(table([{**born, "judgments": denied}], {}), tmp_path / "lama/google_re/train-0.parquet")
    task = find_task("lama")
    facts = task.read(task.find_split(tmp_path, "en", "test"))
    assert [fact.id for fact in facts] == ["u3", "u1", "u2"], "by relation, as files are"


@pytest.mark.parametrize("file", FILES)
def test_mlama(tmp_path, file):
    originals = tmp_path / "originals"
    shutil.copytree(FIXTURES / "mlama1.1/sw", originals / "mlama1.1/de")  # it has no Swahili
    (template,) = json_rows("mlama1.1/sw/templates.jsonl")
    rows = [
        {**row, "template": template["template"], "language": language, "predicate_id": "P36"}
        for row in json_rows("mlama1.1/sw/P36.jsonl")
        for language in ("en", "de")
    ]
    # in the dataset, relations of Google-RE come first
    rows.insert(0, {**rows[0], "predicate_id": "place_of_birth"})
    save(table(rows, {}), tmp_path / "m_lama/all" / file.format("test"))
    same_as_the_originals("mlama", tmp_path, "de", originals)
    task = find_task("mlama")
    english = task.read(task.find_split(tmp_path, "en", "test"))
    assert [fact.relation for fact in english] == ["P36", "P36", "place_of_birth"]
    assert english[-1].candidates == ("Nairobi",)
    with pytest.raises(CorpusError, match=r"m_lama.*: has no facts in 'fr'\. Fetch .*--languages"):
        task.read(task.find_split(tmp_path, "fr", "test"))


def test_a_damaged_file_is_named(tmp_path):
    file = tmp_path / "xnli/sw/test-00000-of-00001.parquet"
    save(table([{"premise": "A.", "hypothesis": "B.", "label": 1}], {"label": LABELS}), file)
    file.write_bytes(file.read_bytes()[:-20])
    task = find_task("xnli")
    with pytest.raises(CorpusError, match="is damaged") as caught:
        task.read(task.find_split(tmp_path, "sw", "test"))
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("task", "place", "rows", "message"),
    [
        ("xnli", "xnli/sw", {"premise": None, "hypothesis": "B.", "label": "neutral"},
         "line 1: has nothing in column premise"),
        ("wikiann", "wikiann/sw", {"words": ["a"], "tags": ["O"]}, "has no column tokens or ner"),
        ("wikiann", "wikiann/sw", {"tokens": ["a"], "ner_tags": [0]}, "line 1: has 0 where a tag"),
        ("wikiann", "wikiann/sw", {"tokens": ["a"], "ner_tags": ["O", "O"]}, "line 1: does not"),
        ("xquad", "xquad/xquad.sw", {"id": "1", "context": "a"}, "has no column answers"),
        ("xquad", "xquad/xquad.sw", {"id": "1", "context": "a", "question": "q",
         "answers": {"text": ["a", "a"], "answer_start": [0]}}, "line 1, question '1'"),
    ],
)  # fmt: skip
def test_columns_that_are_not_what_they_should_be(tmp_path, task, place, rows, message):
    split = "validation" if task == "xquad" else "test"
    save(table([rows], {}), tmp_path / place / f"{split}-00000-of-00001.parquet")
    reader = find_task(task)
    with pytest.raises(CorpusError, match=message):
        reader.read(reader.find_split(tmp_path, "sw", "test"))


@pytest.mark.parametrize(
    ("task", "language", "file", "row", "message"),
    [
        ("tatoeba", "sw-en", "xtreme/tatoeba.swh/validation-0.parquet",
         {"source_sentence": "Habari.\n", "target_sentence": "\n"},
         "line 1: has nothing in column target_sentence"),
        ("tatoeba", "sw-en", "xtreme/tatoeba.swh/validation-0.parquet",
         {"source": "Habari.", "target": "News."}, "no column source_sentence or target_sentence"),
        ("lama", "en", "lama/trex/train-0.parquet",
         {"predicate_id": "P36", "type": "", "template": "", "sub_label": "a", "obj_label": "b"},
         "line 1: has nothing in column type"),
        ("lama", "en", "lama/google_re/train-0.parquet",
         {"pred": "/people/person/height", "judgments": "[]", "sub_label": "a", "obj_label": "b"},
         "line 1: LAMA has no relation height"),
        ("lama", "en", "lama/google_re/train-0.parquet",
         {"pred": "/place_of_birth", "judgments": "[{", "sub_label": "a", "obj_label": "b"},
         "line 1: its judgments"),
        ("lama", "en", "lama/squad/train-0.parquet",
         {"masked_sentence": "a", "obj_label": "b"}, "line 1: its masked"),
        ("lama", "en", "lama/wiki/train-0.parquet", {"obj_label": "b"}, "LAMA has no corpus wiki"),
        ("mlama", "de", "m_lama/all/test-0.parquet",
         {"language": "de", "predicate_id": "P36", "sub_label": "a"},
         "has no column template or obj_label"),
    ],
)  # fmt: skip
def test_rows_that_are_not_what_they_should_be(tmp_path, task, language, file, row, message):
    save(table([row], {}), tmp_path / file)
    reader = find_task(task)
    with pytest.raises(CorpusError, match=message) as caught:
        reader.read(reader.find_split(tmp_path, language, "test"))
    assert str(tmp_path / file) in str(caught.value)
    assert "Fetch the" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n1\n", "line 3: has 1 columns and the header has 2"),
        ('a,b\n"1\n\n2",3\n4,5,6\n', "line 5: has 3 columns"),
    ],
)
def test_a_damaged_csv_file_is_refused_by_line(tmp_path, text, said):
    file = tmp_path / "x.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=said):
        list(csv_rows(file))


def test_a_csv_cell_may_hold_commas_line_ends_and_quotes(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text('\ufeffa, b\n"1,\n1","say ""so"""\n\n', encoding="utf-8")
    assert [dict(row) for row in csv_rows(file)] == [{"a": "1,\n1", "b": 'say "so"'}]

"""A damaged file is refused by its name and the line, whichever task reads it."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path

import pytest

from isoglot.errors import CorpusError
from isoglot.tasks import find_task

FIXTURES = Path(__file__).parent / "fixtures"

REVIEWS = "cls-acl10-unprocessed/de/books/train.review"
SQUAD = "squad/dev-v1.1.json"

LINES = [
    # task, file in the pack, line to spoil, what to put there, what the message says
    ("xnli", "nli/xnli/sw.dev.tsv", 7, "facetoface\tneutral\tpaka", "has 3 columns"),
    ("xnli", "nli/xnli/sw.dev.tsv", 9, "a\tmaybe\tb\tc", "the label 'maybe'"),
    ("esxnli", "nli/esxnli.tsv", 3, "es\tneutral\t\tx\t1\t1\tn", "nothing in column sentence1"),
    ("sick", "nli/sick/en.train.tsv", 4, "3\ta\tb\t4.5\tPERHAPS", "the label 'perhaps'"),
    ("paws-x", "pawsx/de.dev.tsv", 5, "1\ta\tb", "has 3 columns"),
    ("wikiann", "ner/wikiann/de.dev.tsv", 2, "de:Wilhelm", "has 1 columns"),
    ("masakhaner", "ner/masakhaner/swa.dev.conll", 3, "paka PER", "'PER' where a tag"),
    ("germeval2014", "ner/germeval2014/dev.tsv", 4, "3\tentwirft\tO", "has 3 columns"),
    ("uner", "ner/uner/zh_gsd.dev.tsv", 2, "\tO", "has no word"),
    ("ud-pos", "ud_pos/th_pud.test.tsv", 6, "x\tNUON", "'NUON' where a tag"),
    ("xcopa", "xcopa/val.sw.jsonl", 8, '{"premise": ', "is not JSON"),
    ("xcopa", "xcopa/val.sw.jsonl", 8, '{"question": "why", "label": 0}', "asks 'why'"),
    ("tatoeba", "tatoeba/swh-eng.tsv", 11, "one side", "has 1 columns"),
    ("alignment", "word_align/xlm-align/de-en/alignv2.txt", 12, "0 7", "is not `sentence"),
    ("alignment-awesome", "word_align/awesome-align/zhen.gold", 4, "1-1 2~2", "'2~2' is not"),
    ("xling", "bli/xling-eval/en-de/yacle.test.freq.2k.en-de.tsv", 9, "alone", "not two words"),
    ("analogy", "analogy/zh.google.txt", 5, "a b c", "is not four words"),
    ("word-similarity", "word_similarity/en.RG-65.txt", 2, "gem jewel much", "and a number"),
]  # fmt: skip


def copied(data_folder, folder, name):
    """The pack's folder of a file, unpacked where the file is spoilt."""
    source = data_folder / "eval" / f"{name}.xz"
    target = folder / name
    shutil.copytree(source.parent, target.parent)
    (folder / f"{name}.xz").unlink()
    with lzma.open(source, "rt", encoding="utf-8") as stream:
        return stream.read().split("\n"), target


def read_all(task, folder, changed=None):
    """Read the splits of a file, or all splits if it is not one of their files but beside them."""
    splits = task.splits(folder)
    own = [split for split in splits if changed in split.files]
    for split in own or splits:
        task.read(split)


@pytest.mark.parametrize(("task", "name", "line", "spoilt", "message"), LINES)
def test_a_spoilt_line(data_folder, tmp_path, task, name, line, spoilt, message):
    lines, target = copied(data_folder, tmp_path, name)
    lines[line - 1] = spoilt
    target.write_text("\n".join(lines), encoding="utf-8")
    reader = find_task(task)
    with pytest.raises(CorpusError, match=message) as caught:
        read_all(reader, tmp_path, target)
    assert f"{target}, line {line}: " in str(caught.value)


@pytest.mark.parametrize(
    ("task", "name"), [LINES[0][:2], LINES[6][:2], LINES[10][:2], LINES[13][:2], LINES[15][:2]]
)
def test_a_compressed_file_that_was_cut(data_folder, tmp_path, task, name):
    copied(data_folder, tmp_path, name)
    packed = tmp_path / f"{name}.xz"
    content = (data_folder / "eval" / f"{name}.xz").read_bytes()
    packed.write_bytes(content[: len(content) // 2])
    reader = find_task(task)
    with pytest.raises(CorpusError, match="damaged or cut short") as caught:
        read_all(reader, tmp_path)
    assert str(packed) in str(caught.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "where", "message"),
    [
        (SQUAD, '"answer_start": 10', '"answer_start": 11', "question 'q1'", "no 'Aare'"),
        (SQUAD, '"question": "What is', '"asked": "What is', "question 'q2'", "lacks"),
        (SQUAD, '"paragraphs"', '"paragraph"', "line 1", "is not SQuAD's JSON"),
        (SQUAD, "]", "", "line ", "is not JSON from column"),
    ],
)  # fmt: skip
def test_questions(tmp_path, file, old, new, where, message):
    target = tmp_path / file
    target.parent.mkdir()
    text = (FIXTURES / file).read_text(encoding="utf-8")
    assert old in text
    target.write_text(text.replace(old, new, 1), encoding="utf-8")
    task = find_task("squad")
    with pytest.raises(CorpusError, match=message) as caught:
        task.read(task.find_split(tmp_path, "en", "dev"))
    assert f"{target}, " in str(caught.value)
    assert where in str(caught.value)


@pytest.mark.parametrize(
    ("task", "file", "old", "new", "message"),
    [
        ("cls", REVIEWS, "</text>", "<text>", "line 9: is not XML"),
        ("cls", REVIEWS, "5.0", "3.0", "item books-1: has no"),
        ("bucc", "bucc2018/de-en/de-en.training.gold", "en-9", "en-0", "line 1: 'de-1\\\\ten-0'"),
        ("bucc", "bucc2018/de-en/de-en.training.en", "en-8\t", "en-8 ", "line 2: is not a new id"),
        ("tatoeba", "tatoeba/v1/tatoeba.deu-eng.eng", "It rains.\n", "", "line 2: 1 lines, but"),
        ("lama", "lama/data/TREx/P36.jsonl", "sub_label", "subject", "line 1: has no column"),
        ("lama", "lama/data/Squad/test.jsonl", "[MASK]", "it", "line 1: its masked"),
        ("lama", "lama/data/Google_RE/place_of_birth_test.jsonl",
         '"masked', '"judgments": [1], "masked', "line 1: its judgments"),
        ("mlama", "mlama1.1/sw/templates.jsonl", "P36", "P37", "line 1: templates.jsonl has no"),
        ("alignment-awesome", "awesome-align/examples/deen.src-tgt", "|||", "||", "line 1: has no"),
        ("ud-pos", "ud/UD_Swahili-X/sw_x-ud-test.conllu", "\tPART\t_", "\tPART", "line 4: has 9"),
    ],
)  # fmt: skip
def test_fixtures_that_are_spoilt(tmp_path, task, file, old, new, message):
    top = file.split("/")[0]
    shutil.copytree(FIXTURES / top, tmp_path / top)
    text = (tmp_path / file).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    reader = find_task(task)
    with pytest.raises(CorpusError, match=message):
        read_all(reader, tmp_path)


def test_links_that_point_outside(data_folder, tmp_path):
    """Two stray links of the distribution are let through; a file of another text is not."""
    name = "word_align/xlm-align/de-en/alignv2.txt"
    lines, target = copied(data_folder, tmp_path, name)
    assert lines[3727] == "178 22 -99 S"
    for number in range(21, 40):
        lines[number] = f"{lines[number].split()[0]} 99 1 S"
    target.write_text("\n".join(lines).strip(), encoding="utf-8")
    task = find_task("alignment")
    with pytest.raises(CorpusError, match="line 22: the link 99-1 is outside its sentence"):
        task.read(task.find_split(tmp_path, "de-en", "test"))


@pytest.mark.parametrize(
    ("task", "files", "message"),
    [
        ("squad", {"squad/dev-v1.1.json": {"data": [{"paragraphs": ["x"]}]}}, "line 1: is not SQ"),
        ("squad", {"squad/dev-v1.1.json": {"data": [{"paragraphs": [{"context": "a"}]}]}}, "'qas'"),
        ("squad", {"squad/dev-v1.1.json": {"data": [{"paragraphs": [
            {"context": "a", "qas": ["q"]}]}]}}, "article 1: 'q' is not a question"),
        ("lama", {"lama/data/TREx/P19.jsonl": {"sub_label": "a", "obj_label": "b"},
                  "lama/data/relations.jsonl": {"relation": "P20", "template": "t", "type": "1-1"}},
         "P19.jsonl, line 1: relations.jsonl has no relation P19"),
        ("lama", {"lama/data/TREx/P19.jsonl": {"sub_label": "a", "obj_label": "b"},
                  "lama/data/relations.jsonl": {"label": "P19", "template": "t", "type": "1-1"}},
         "relations.jsonl, line 1: has no column relation"),
    ],
)  # fmt: skip
def test_json_of_another_shape(tmp_path, task, files, message):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        read_all(find_task(task), tmp_path)


def test_a_cut_file_does_not_send_one_to_another_command(tmp_path):
    file = tmp_path / "tatoeba/deu-eng.tsv.xz"
    file.parent.mkdir()
    file.write_bytes(lzma.compress(b"Es regnet.\tIt rains.\n" * 99)[:-9])
    with pytest.raises(CorpusError, match="cut short") as caught:
        read_all(find_task("tatoeba"), tmp_path)
    assert "prepare" not in str(caught.value)

from __future__ import annotations

import json

from isoglot.corpus.reading.reader import Record, Skipped
from isoglot.corpus.reading.text import ConlluReader, JsonLinesReader, LinesReader


def test_lines_number_documents_over_blank_lines_and_files(tmp_path):
    (tmp_path / "a.txt").write_text("\na\nb\n\n\nc\n")
    (tmp_path / "b.txt").write_text("d\n")
    records = list(LinesReader().read([tmp_path / "a.txt", tmp_path / "b.txt"]))
    kept = [(r.texts[0], r.document, r.file, r.line) for r in records if isinstance(r, Record)]
    assert kept == [("a", 0, 0, 2), ("b", 0, 0, 3), ("c", 1, 0, 6), ("d", 2, 1, 1)]
    assert records.count(Skipped("blank")) == 3


def test_json_lines_are_documents(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"text": "one\\ntwo"}\n{"title": "x"}\n\n[1]\n{"text": 3}\n'
        '{"text": "\\ud83d\\ude00"}\n{"text": "half \\ud83d"}\n{"te\n' + "[" * 100_000 + "\n"
    )
    found = list(JsonLinesReader().read([path]))
    assert found == [
        Record(("one\ntwo",), 0),
        Skipped("no field"),
        Skipped("blank"),
        Skipped("not JSON"),
        Skipped("no field"),
        Record(("😀",), 1),
        Skipped("encoding"),
        Skipped("not JSON"),
        Skipped("not JSON"),
    ]
    assert [item.line for item in found] == list(range(1, 10))


def test_json_fields_can_be_chosen_and_lie_inside_others(tmp_path):
    path = tmp_path / "x.jsonl"
    rows = [
        {"body": "a", "translation": {"en": "house", "de": "Haus"}},
        {"translation": {"en": "x"}},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert list(JsonLinesReader(field="body").read([path])) == [Record(("a",)), Skipped("no field")]
    pairs = JsonLinesReader(languages=("de", "en"), first="translation.de", second="translation.en")
    assert list(pairs.read([path])) == [Record(("Haus", "house")), Skipped("no field")]
    path.write_text('{"de": "Haus", "en": "house"}\n')
    assert list(JsonLinesReader(languages=("de", "en")).read([path])) == [Record(("Haus", "house"))]


def test_conllu_gives_raw_sentences_and_documents(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text(
        "# newdoc id = a\n# sent_id = 1\n# text = The #1 fan = me.\n1\tThe\t_\n\n"
        "#text=Second.\n1\tSecond\t_\n\n\n"
        "# newdoc\n# text = Third.\n1\tThird\t_\n\n1\tWords\t_\n2\talone\t_\n"
    )
    found = list(ConlluReader().read([path, path]))
    one = [Record(("The #1 fan = me.",), 0), Record(("Second.",), 0), Record(("Third.",), 1)]
    two = [Record(("The #1 fan = me.",), 2), Record(("Second.",), 2), Record(("Third.",), 3)]
    assert found == [*one, Skipped("no text"), *two, Skipped("no text")]
    assert [item.line for item in found[:4]] == [1, 6, 10, 14]

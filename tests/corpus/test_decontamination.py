"""Lines of evaluation files, of any format, are dropped and counted by file."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.decontamination import evaluation_texts, letters_of
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import CorpusError
from tests.corpus.conftest import config
from tests.corpus.pipeline.test_run import add_up, decoded

QUESTION = "Who mends the nets?"
CONTEXT = "The old fisherman mends his nets. Rain fell all night on the harbour."
FILES = {
    "lines.txt": ("Nobody knew where it came from.\n\nShe sells bread.\n", ["She sells bread."]),
    "pairs.tsv": ("Guten Morgen, Frau Nachbarin\tGood morning\n", ["Guten Morgen, Frau Nachbarin"]),
    "bars.txt": ("ein kleines Haus ||| a small house\n", ["a small house"]),
    "squad.json": (
        json.dumps({"data": [{"context": CONTEXT, "qas": [{"question": QUESTION}]}]}, indent=1),
        [QUESTION, CONTEXT, "Rain fell all night on the harbour."],
    ),
    "choice.jsonl": ('{"premise": "The glass fell.", "label": 1}\n\n', ["The glass fell."]),
    "tags.tsv": (
        "Peter\tPER\nlebt\tO\nin\tO\nUlm\tLOC\n\nEr\tO\nschläft\tO\n",
        ["Peter lebt in Ulm", "Er schläft"],
    ),
    "numbered.tsv": ("# text\n1\tAlles\tO\tO\n2\tgut\tO\tO\n", ["Alles gut"]),
    "wikiann-nan.tsv": (
        "zh-min-nan:Oslo\tB-LOC\nzh-min-nan:chhī\tO\nsimple:x\tO\n",
        ["Oslo chhī x"],
    ),
    "wikiann.tsv": ("de:Peter\tB-PER\nde:schläft\tO\n", ["Peter schläft"]),
    "quoted.csv": (
        'id;text\n1;"Nobody; or ""she""\ncame late"\n',
        ['Nobody; or "she"\ncame late', "came late"],
    ),
    "chinese.txt": ("老渔夫在修补。雨整夜落下。\n", ["雨整夜落下。"]),
}


@pytest.mark.parametrize("name", FILES)
def test_the_texts_of_a_file(tmp_path, name):
    content, expected = FILES[name]
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    assert set(expected) <= set(evaluation_texts(tmp_path / f"{name}.gz"))


MARKUP = {
    "memory.tmx": '<tu><tuv xml:lang="en"><seg>The <ph/>red &amp; blue</seg></tuv></tu>',
    "wmt.sgm": '<doc>\n<seg id="1">The red &amp; blue</seg>\n</doc>',
    "wmt.xml": '<src><p><seg id="1">The red\n&amp; blue</seg></p></src>',
    "memory.xliff": "<trans-unit><source>The red <g>&amp;</g> blue</source></trans-unit>",
}


@pytest.mark.parametrize("name", MARKUP)
def test_markup_is_no_part_of_a_text(tmp_path, name):
    (tmp_path / name).write_text(MARKUP[name])
    assert letters_of("The red & blue") in set(map(letters_of, evaluation_texts(tmp_path / name)))


def test_every_string_of_a_parquet_file(tmp_path):
    rows = {"id": [1], "translation": [{"de": "Guten Tag", "en": "Good day"}], "more": [["Bye"]]}
    pq.write_table(pa.table(rows), tmp_path / "test.parquet")
    assert {"Guten Tag", "Good day", "Bye"} <= set(evaluation_texts(tmp_path / "test.parquet"))
    content = (tmp_path / "test.parquet").read_bytes()
    (tmp_path / "test.parquet").write_bytes(content[:-20])
    with pytest.raises(CorpusError, match=r"test\.parquet: cannot be read.*`exclude`"):
        list(evaluation_texts(tmp_path / "test.parquet"))


def test_a_file_in_another_encoding_protects_nothing_and_is_refused(tmp_path):
    (tmp_path / "x.txt").write_bytes("Plain.\nSüß wie Honig.\n".encode("latin-1"))
    with pytest.raises(CorpusError, match=r"x\.txt: line 2 is not UTF-8.*`exclude`"):
        list(evaluation_texts(tmp_path / "x.txt"))


def test_the_words_of_a_sentence_in_columns_are_no_texts(tmp_path):
    (tmp_path / "tags.tsv").write_text(FILES["tags.tsv"][0])
    assert set(evaluation_texts(tmp_path / "tags.tsv")) == set(FILES["tags.tsv"][1])


def test_a_long_list_is_no_sentence(tmp_path):
    (tmp_path / "list.tsv").write_text("dog\tHund\n" * 3000)
    assert max(map(len, evaluation_texts(tmp_path / "list.tsv"))) < 20


def test_csv_whose_quotes_do_not_fit_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text('id,text\n1,"a "b" c"\n')
    with pytest.raises(CorpusError, match=r"x\.csv: line 2 has text after a closing .*`exclude`"):
        list(evaluation_texts(tmp_path / "x.csv"))


def test_damaged_json_names_the_line(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(CorpusError, match=r"x\.jsonl: line 2 is not JSON.*`exclude`"):
        list(evaluation_texts(tmp_path / "x.jsonl"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("She sells bread!", "she  sells ' bread"),
        ("Ｆｕｌｌ", "full"),
        ("STRASSE", "Straße"),
        ("雨 整夜 落下", "雨整夜落下。"),
    ],
)
def test_only_letters_are_compared(one, other):
    assert letters_of(one) == letters_of(other)


def test_excluded_lines_are_dropped_and_counted_by_file(tmp_path, tokenizer):
    folder = tmp_path / "eval"
    folder.mkdir()
    (folder / "one.txt").write_text("A line of the first test.\nA line of both tests.\nYes.\n")
    (folder / "two.tsv").write_text("0\tA line of both tests.\n1\tOnly the second knows this.\n")
    text = ["Plain text.", "a LINE of the first test", "A line of both tests.", "Yes.", "The end."]
    (tmp_path / "en.txt").write_text("\n".join(text) + "\n")
    pairs = ["Hallo, guten Tag.\tHello, good day.", "Das weiß nur er.\tOnly the second knows this."]
    (tmp_path / "de-en.tsv").write_text("\n".join(pairs) + "\n")
    chosen = config(
        sources={
            "text": SourceConfig(files={"en": ("en.txt",)}),
            "pairs": SourceConfig(kind="pairs", format="tsv", files={"de-en": ("de-en.tsv",)}),
        },
        tokenizer=TokenizerConfig(folder=str(tokenizer)),
        exclude=("eval/*",),
        heldout_share=0.0,
    )
    manifest = prepare(chosen, tmp_path / "corpus", base=tmp_path)
    sources = add_up(manifest)
    assert sources["text"].counts["en"].dropped == {"contaminated": 2}
    assert sources["text"].counts["en"].contaminated == {"eval/one.txt": 2, "eval/two.tsv": 1}
    assert sources["pairs"].counts["de-en"].contaminated == {"eval/two.tsv": 1}
    assert manifest.total().contaminated == {"eval/one.txt": 2, "eval/two.tsv": 2}
    # "Yes." is too short to tell anything
    kept = decoded(Corpus.open(tmp_path / "corpus"), "text", "en", "train")
    assert kept == [("Plain text.",), ("Yes.",), ("The end.",)]


def test_a_changed_evaluation_file_is_noticed(tmp_path, tokenizer):
    (tmp_path / "en.txt").write_text("One line of text.\nAnother line of text.\n")
    (tmp_path / "test.txt").write_text("Something else altogether.\n")
    chosen = config(
        sources={"s": SourceConfig(files={"en": ("en.txt",)})},
        tokenizer=TokenizerConfig(folder=str(tokenizer)),
        exclude=("test.txt",),
        heldout_share=0.0,
    )
    assert prepare(chosen, tmp_path / "corpus", base=tmp_path).total().kept == 2
    (tmp_path / "test.txt").write_text("Another line of text.\n")
    with pytest.raises(CorpusError, match=r"test\.txt changed\. Add --overwrite"):
        prepare(chosen, tmp_path / "corpus", base=tmp_path)
    again = prepare(chosen, tmp_path / "corpus", base=tmp_path, overwrite=True)
    assert again.total().kept == 1

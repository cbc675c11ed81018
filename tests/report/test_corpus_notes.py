"""Notes on a corpus: which languages lose most of their records and why, and words split finely."""

from __future__ import annotations

import pytest

from isoglot.corpus.storage.manifest import (
    Counts,
    Manifest,
    SourceEntry,
    SplitEntry,
    TokenizerEntry,
    TokenizerStats,
)
from isoglot.corpus.storage.shards import Split
from isoglot.report.corpus_notes import corpus_notes

NONE = SplitEntry(shards=(), rows=0, tokens={})


def manifest(*, dropped=None, read=100, tokens=0, tokenizer=None) -> Manifest:
    dropped = dropped or {}
    counts = Counts(read=read, kept=read - sum(dropped.values()), heldout=0, dropped=dropped)
    statistics = {"ha": TokenizerStats(words=100, tokens=tokens)}
    languages: dict[str, dict[Split, SplitEntry]] = {"ha": {"train": NONE, "heldout": NONE}}
    return Manifest(
        isoglot="0",
        fingerprint="",
        languages=("ha",),
        tokenizer=TokenizerEntry(fingerprint="", size=10, files=(), statistics=statistics),
        sources={"news": SourceEntry(kind="text", languages=languages, counts={"ha": counts})},
        settings={"tokenizer": tokenizer or {"folder": None, "vocab_size": 4000, "alpha": 0.5}},
        inputs=(),
    )


def test_a_language_that_loses_most_of_its_records():
    (note,) = corpus_notes(manifest(dropped={"script": 40, "too short": 11}))
    assert note.startswith("news/ha: 51 of 100 records are dropped (51 %), 40 of them as 'script'.")
    assert "(`clean.min_script_share`)" in note
    assert corpus_notes(manifest(dropped={"script": 40, "too short": 10})) == []


def test_text_that_is_not_utf_8_gets_its_remedy():
    (note,) = corpus_notes(manifest(dropped={"encoding": 72}))
    assert "iconv -f ISO-8859-1 -t UTF-8 FILE > NEW." in note


def test_blank_lines_are_no_loss():
    assert corpus_notes(manifest(dropped={"blank": 60, "script": 20})) == []
    (note,) = corpus_notes(manifest(dropped={"blank": 60, "script": 21}))
    assert note.startswith("news/ha: 21 of 40 records are dropped (52 %), 21 of them")
    assert corpus_notes(manifest(read=0)) == []


@pytest.mark.parametrize(
    ("tokenizer", "advice"),
    [
        ({"folder": "models/xlm-r"}, "isoglot vocabulary grow models/xlm-r --text FILE"),
        ({"folder": None, "vocab_size": 4000, "alpha": 0.5}, "Raise tokenizer.vocab_size (4000)"),
    ],
)
def test_words_split_into_many_tokens(tokenizer, advice):
    (note,) = corpus_notes(manifest(tokens=303, tokenizer=tokenizer))
    assert note.startswith("More than 2.5 tokens per word: ha 3.03. ")
    assert advice in note
    assert corpus_notes(manifest(tokens=250, tokenizer=tokenizer)) == []

"""On real text: Bibles joined by verse and news sentences in twenty-two languages."""

from __future__ import annotations

import lzma
import os
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig

DATA = os.environ.get("ISOGLOT_DATA")
pytestmark = [
    pytest.mark.skipif(DATA is None, reason="ISOGLOT_DATA names no folder"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def prepared(request, tmp_path_factory):
    base = Path(DATA or "")
    news = sorted((base / "mono" / "lingua_sentences").glob("*.txt.xz"))
    verses = "parallel/bible/{}.tsv.xz"
    config = PrepareConfig(
        sources={
            "news": SourceConfig(files={path.name.split(".")[0]: (str(path),) for path in news}),
            "bible": SourceConfig(
                kind="pairs",
                format="keyed",
                files={
                    f"en-{language}": (verses.format("en-web"), verses.format(language))
                    for language in ("de", "sw")
                },
            ),
        },
        tokenizer=TokenizerConfig(vocab_size=8000, model=request.param, max_sentences=6_000),
    )
    folder = tmp_path_factory.mktemp("real") / "corpus"
    prepare(config, folder, base=base)
    return Corpus.open(folder), news


def test_counts_add_up_and_little_is_lost(prepared):
    corpus, news = prepared
    assert len(corpus.languages) == len(news) == 22
    for entry in corpus.manifest.sources.values():
        total = entry.total()
        assert total.read == total.kept + sum(total.dropped.values())
        assert total.kept > 0.99 * total.read
        assert 0.005 < total.heldout / total.kept < 0.04
    assert corpus.manifest.sources["bible"].counts["en-sw"].kept > 30_000
    for path in news:
        with lzma.open(path) as lines:
            number = sum(1 for _ in lines)
        assert corpus.manifest.sources["news"].counts[path.name.split(".")[0]].read == number


def test_the_ids_are_those_of_the_hugging_face_tokenizer(prepared):
    corpus, _ = prepared
    fast = AutoTokenizer.from_pretrained(corpus.tokenizer_folder)
    for language in corpus.languages:
        table = corpus.table("news", language, "train")
        rows = [table.ids("ids", row).tolist() for row in range(0, table.num_rows, 5)]
        texts = fast.batch_decode(rows)
        assert fast(texts, add_special_tokens=False)["input_ids"] == rows, language

"""Which languages of a corpus a stream reads, however the two spell them."""

from __future__ import annotations

import pytest

from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import CorpusError


@pytest.fixture
def old(tmp_path, monkeypatch) -> Corpus:
    """A corpus as it was prepared when names of languages were kept as they were written."""
    monkeypatch.setattr("isoglot.corpus.reading.sources.canonical", lambda code: code)
    (tmp_path / "x.txt").write_text("ka lo mi tu.\nse ra no pe.\nka ra mi pe.\n")
    (tmp_path / "x.tsv").write_text("ka lo.\tmi tu.\nse ra.\tno pe.\n")
    sources = {
        "text": SourceConfig(files=dict.fromkeys(("eng", "nob", "zh_Hant"), ("x.txt",))),
        "pairs": SourceConfig(kind="pairs", format="tsv", files={"eng-nob": ("x.tsv",)}),
    }
    tokenizer = TokenizerConfig(vocab_size=340)
    config = PrepareConfig(sources=sources, tokenizer=tokenizer, heldout_share=0.0)
    prepare(config, tmp_path / "corpus", base=tmp_path)
    return Corpus.open(tmp_path / "corpus")


def test_a_corpus_of_older_names_is_read_under_them(old):
    assert old.languages == ("eng", "nob", "zh_Hant")
    text = TextStream(objectives=("mlm",), languages=("en", "nb", "zh-Hant", "sw"))
    assert text.selected(old) == [("text", "eng"), ("text", "nob"), ("text", "zh_Hant")]
    assert text.missing_languages(old) == ("sw",)
    for pair in ("en-no", "no-en", "eng-nob"):
        pairs = ParallelStream(objectives=("tlm",), languages=(pair,))
        assert pairs.selected(old) == [("pairs", "eng-nob")]
        assert pairs.missing_languages(old) == ()


def test_a_stream_of_which_no_language_is_there_is_refused(old):
    stream = TextStream(objectives=("mlm",), languages=("sw", "hi", "de", "fr", "es", "it"))
    with pytest.raises(CorpusError, match=r"none of its languages \(sw, hi, de, fr, es, \.\.\.\)"):
        stream.selected(old)

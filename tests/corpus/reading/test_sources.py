"""Languages of a prepare file: any spelling, one code on disk."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig, find_subsets
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import FetchError, RecipeError
from tests.fetching.archives import zip_of
from tests.fetching.servers import serving

LINES = "ka lo mi tu.\nse ra no pe.\nka ra mi pe.\n"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "x.txt").write_text(LINES)
    (tmp_path / "x.tsv").write_text(LINES.replace(".", "\tdo."))
    (tmp_path / "x.jsonl").write_text('{"zh-min-nan": "ka lo", "eng": "mi tu"}\n' * 3)
    return tmp_path


def codes(base: Path, kind: str, format_: str, *names: str) -> list[str]:
    files = dict.fromkeys(names, (f"x.{'txt' if format_ == 'lines' else format_}",))
    source = SourceConfig(kind=kind, format=format_, files=files)  # type: ignore[arg-type]
    return [subset.language for subset in find_subsets({"s": source}, base)]


def test_any_spelling_becomes_the_code(base):
    names = ("zh-min-nan", "be-tarask", "eng", "zh-Hant", "simple", "nb")
    found = codes(base, "text", "lines", *names)
    assert found == ["be_tarask", "en", "en_simple", "nan", "no", "zh_Hant"]
    pairs = ("en-be-tarask", "zh-min-nan-en", "deu-eng", "en-zh_Hant")
    found = codes(base, "pairs", "tsv", *pairs)
    assert found == ["de-en", "en-be_tarask", "en-zh_Hant", "nan-en"]


@pytest.mark.parametrize(
    ("kind", "names", "message"),
    [
        ("text", ("en-de",), r"sources\.s\.files\.en-de: 'en-de' does not name a language"),
        ("text", ("../x",), "does not name a language"),
        ("pairs", ("en",), "does not name two languages joined"),
        ("pairs", ("en-/etc",), "does not name two languages joined"),
        ("text", ("nb", "nob"), r"'nb' and 'nob' are names of one language \(no\)"),
    ],
)
def test_what_is_no_language_is_refused(base, kind, names, message):
    with pytest.raises(RecipeError, match=message):
        codes(base, kind, "lines" if kind == "text" else "tsv", *names)


def test_fields_are_read_under_the_spelling_of_the_settings(base):
    sources = {
        "wiki": SourceConfig(files={"zh-min-nan": ("x.txt",)}),
        "pairs": SourceConfig(kind="pairs", format="jsonl", files={"zh-min-nan-eng": ("x.jsonl",)}),
    }
    tokenizer = TokenizerConfig(vocab_size=340)
    config = PrepareConfig(sources=sources, tokenizer=tokenizer, heldout_share=0.0)
    prepare(config, base / "corpus", base=base)
    corpus = Corpus.open(base / "corpus")
    assert corpus.languages == ("en", "nan")
    assert corpus.table("pairs", "nan-en", "train").num_rows == 1
    assert (base / "corpus" / "wiki" / "nan").is_dir()


def test_names_that_fetch_knows_are_downloaded_first(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("http_proxy", raising=False)
    with serving() as server:
        monkeypatch.setenv("ISOGLOT_MIRROR", server.url)
        files = {"T.en-sw.en": b"one\n", "T.en-sw.sw": b"moja\n"}
        server.host("/object.pouta.csc.fi/OPUS-T/v1/moses/en-sw.txt.zip", zip_of(files))
        server.host("/data.statmt.org/cc-100/sw.txt.xz", lzma.compress(b"moja\n"))
        sources = {
            "a": SourceConfig(kind="pairs", format="moses", files={"sw-en": ("opus:T/en-sw@v1",)}),
            "b": SourceConfig(files={"sw": ("cc100:sw",)}),
        }
        for _ in range(2):
            pairs, text = find_subsets(sources, tmp_path)
            place = tmp_path / "raw/opus/T/v1"
            assert pairs.files == (place / "T.en-sw.sw", place / "T.en-sw.en")
            assert text.files == (tmp_path / "raw/cc100/sw.txt.xz",)
        assert len(server.requests) == 2
    assert "License: Common Crawl's terms of use" in capsys.readouterr().err
    with pytest.raises(FetchError, match="did you mean 'cc100'"):
        find_subsets({"b": SourceConfig(files={"sw": ("cc1000:sw",)})}, tmp_path)

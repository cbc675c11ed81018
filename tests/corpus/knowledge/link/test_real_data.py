"""On parts of real dumps: anchor texts as tokens, and an entity that all languages describe."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.knowledge.extract import ExtractConfig, extract
from isoglot.corpus.knowledge.link.config import LinkConfig
from isoglot.corpus.knowledge.link.run import link
from isoglot.corpus.knowledge.link.tokenize import SpanTokenizer
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig

DATA = os.environ.get("ISOGLOT_DATA")
LANGUAGES = ("ar", "de", "hi", "ja", "ru", "th", "zh")
pytestmark = [
    pytest.mark.skipif(DATA is None, reason="ISOGLOT_DATA names no folder"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    dumps = "wikipedia_dumps/dbpedia-minidump.{}.xml.xz"
    config = ExtractConfig(
        wikipedia={language: (dumps.format(language),) for language in LANGUAGES},
        wikidata=("wikidata/dump-excerpt.json.xz",),
        check_site=False,  # some have the header of another wiki
    )
    folder: Path = tmp_path_factory.mktemp("real") / "tables"
    extract(config, folder, base=Path(DATA or "") / "knowledge")
    return folder


@pytest.fixture(scope="module")
def corpus(tables, tmp_path_factory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    files: dict[str, tuple[str, ...]] = {
        language: (f"text/{language}.txt.gz",) for language in LANGUAGES
    }
    config = PrepareConfig(
        sources={"wiki": SourceConfig(files=files)}, tokenizer=TokenizerConfig(vocab_size=8000)
    )
    prepare(config, folder, base=tables)
    return Corpus.open(folder)


@pytest.mark.parametrize(("language", "least"), [("de", 0.9), ("ru", 0.9), ("ja", 0.5)])
def test_tokens_spell_the_anchor_text_and_seldom_more(tables, corpus, language, least):
    shards = sorted((tables / "wikipedia" / language).glob("sentences-*.parquet"))
    table = pa.concat_tables(map(pq.read_table, shards))
    texts, links = table["text"].to_pylist(), table["links"].to_pylist()
    encoder = SpanTokenizer(corpus.tokenizer_folder)
    encoded = encoder.tokenize(texts)
    places = np.array([(row, k["start"], k["end"]) for row, some in enumerate(links) for k in some])
    first, last = encoder.spans(encoded, *places.T)
    begins = np.cumsum(encoded.lengths) - encoded.lengths
    exact = 0
    for (row, start, end), one, two in zip(places.tolist(), first, last, strict=True):
        ids = encoded.ids[begins[row] + one : begins[row] + two].tolist()
        spelled = " ".join(encoder._tokenizer.decode(ids).split())
        anchor = " ".join(texts[row][start:end].split())
        assert anchor in spelled
        exact += anchor == spelled
    assert exact / len(places) > least


def test_an_entity_is_described_in_all_languages(tables, corpus):
    about = link(LinkConfig(heldout_share=0), tables, corpus.folder)
    knowledge = Corpus.open(corpus.folder).knowledge
    assert about.languages == LANGUAGES
    assert max(len(knowledge.languages_of(n)) for n in range(about.entities)) == len(LANGUAGES)
    for language in LANGUAGES:
        links = sum(
            len(some)
            for shard in (tables / "wikipedia" / language).glob("sentences-*.parquet")
            for some in pq.read_table(shard)["links"].to_pylist()
        )
        kept = about.counts[language].mentions["train"]
        assert kept + sum(about.dropped[f"mentions/{language}"].values()) == links

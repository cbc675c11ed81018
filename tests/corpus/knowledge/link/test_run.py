from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from isoglot.corpus import Corpus
from isoglot.corpus.knowledge import dataframes
from isoglot.corpus.knowledge.extract import ExtractConfig, extract
from isoglot.corpus.knowledge.link import descriptions, mentions, write_store
from isoglot.corpus.knowledge.link.config import LinkConfig
from isoglot.corpus.knowledge.link.run import link
from isoglot.corpus.knowledge.link.write_store import label_entities
from isoglot.corpus.knowledge.store import Knowledge
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.corpus.tokenization.vocabulary import open_tokenizer
from isoglot.errors import CorpusError, RecipeError
from tests.corpus.knowledge.link.small_tables import TEXTS, Page, naive_titles, write_tables
from tests.corpus.knowledge.small_dumps import write_dumps

ALL = LinkConfig(heldout_share=0)


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    """What extracting the small dumps gives."""
    folder: Path = tmp_path_factory.mktemp("dumps")
    named = yaml.safe_load(write_dumps(folder).read_text())
    config = ExtractConfig(
        wikipedia={code: tuple(files) for code, files in named["wikipedia"].items()},
        wikidata=tuple(named["wikidata"]),
    )
    extract(config, folder / "tables", base=folder)
    return folder / "tables"


@pytest.fixture(scope="module")
def prepared(tables, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    files: dict[str, tuple[str, ...]] = {code: (f"text/{code}.txt.gz",) for code in ("de", "en")}
    config = PrepareConfig(
        sources={"wiki": SourceConfig(files=files)},
        tokenizer=TokenizerConfig(vocab_size=400),
        heldout_share=0.0,
    )
    prepare(config, folder, base=tables)
    return folder


@pytest.fixture
def corpus(prepared, tmp_path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "corpus"))


@pytest.fixture(scope="module")
def linked(prepared, tables, tmp_path_factory) -> Path:
    folder = Path(shutil.copytree(prepared, tmp_path_factory.mktemp("linked") / "corpus"))
    link(ALL, tables, folder)
    return folder


@pytest.fixture(scope="module")
def knowledge(linked) -> Knowledge:
    return Corpus.open(linked).knowledge


def said(linked: Path, ids: np.ndarray) -> str:
    return str(open_tokenizer(linked / "tokenizer").decode(ids.tolist())).strip()


def mentions_of(linked: Path, knowledge: Knowledge, language: str) -> Counter[tuple[str, int]]:
    """Every mention: what it spells, and whom it means."""
    table, sentences = knowledge.mentions(language, "train"), knowledge.sentences(language, "train")
    found: Counter[tuple[str, int]] = Counter()
    for row in range(len(table)):
        tokens = sentences.tokens("tokens", int(table["sentence"][row]))
        spelled = said(linked, tokens[table["start"][row] : table["end"][row]])
        found[spelled, int(knowledge.entities["item"][table["entity"][row]])] += 1
    return found


def test_mentions_spell_their_anchor_text_and_mean_their_entity(linked, knowledge):
    assert mentions_of(linked, knowledge, "en") == {
        ("France", 142): 2,
        ("river Seine", 1471): 1,
        ("Europe", 46): 1,
        ("Paris", 90): 1,  # over two redirects
        ("pariss", 90): 1,
        ("water", 1471): 1,
    }
    assert mentions_of(linked, knowledge, "de") == {
        ("Frankreich", 142): 2,
        ("Europa", 46): 1,
        ("Paris", 90): 1,
    }


def test_entities_are_those_that_a_page_describes(linked, knowledge):
    assert knowledge.entities["item"].tolist() == [46, 90, 142, 1471]
    assert [knowledge.label(number) for number in range(4)] == [
        "Europe",
        "Paris",
        "France",
        "Seine",
    ]
    assert knowledge.languages_of(0) == ("de", "en")
    assert knowledge.languages_of(3) == ("en",)
    description = knowledge.descriptions("de")[1]
    assert description is not None
    assert said(linked, description).startswith("Paris ist die Hauptstadt von Frankreich")
    assert knowledge.descriptions("de")[3] is None


def test_triples_are_between_described_entities(knowledge):
    items, relations = knowledge.entities["item"], knowledge.relations
    triples = knowledge.triples("train")
    found = {
        (
            int(items[triples["subject"][row]]),
            int(relations["relation"][triples["relation"][row]]),
            int(items[triples["object"][row]]),
        )
        for row in range(len(triples))
    }
    assert found == {(90, 17, 142), (142, 36, 90), (142, 30, 46), (1471, 17, 142)}
    named = dict(zip(relations.strings("label"), relations["count"].tolist(), strict=True))
    assert named == {"P17": 2, "P30": 1, "capital": 1}


def test_everything_that_is_not_kept_is_counted(knowledge, tables):
    about = knowledge.manifest
    assert about.dropped["mentions/en"] == {
        "disambiguation page": 1,
        "no sitelink": 1,
        "red link": 2,
        "redirect loop": 1,
        "self link": 1,
    }
    assert about.dropped["mentions/de"] == {"red link": 1}
    assert about.dropped["descriptions/en"] == {
        "disambiguation page": 1,
        "no sitelink": 1,
        "redirect": 4,
    }
    assert about.dropped["triples"] == {
        "object without description": 1,
        "repeated": 1,
        "subject without description": 1,
    }
    for language in ("de", "en"):
        shards = (tables / "wikipedia" / language).glob("pages-*.parquet")
        dropped = about.dropped.get(f"descriptions/{language}", {})
        kept = about.counts[language].descriptions
        assert kept + sum(dropped.values()) == sum(pq.read_table(s).num_rows for s in shards)


def test_linking_again_does_nothing(linked, tables, monkeypatch):
    before = (linked / "knowledge" / "knowledge.json").read_bytes()
    monkeypatch.setattr(dataframes, "write", None)
    link(ALL, tables, linked)
    assert (linked / "knowledge" / "knowledge.json").read_bytes() == before
    assert not (linked / ".linking").exists()


@pytest.mark.parametrize("stage", [descriptions, mentions, write_store])
def test_an_interrupted_run_goes_on_where_it_was(corpus, tables, knowledge, stage, monkeypatch):
    name = "write_shard" if stage is not write_store else "write_triples"
    with monkeypatch.context() as broken:
        broken.setattr(stage, name, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            link(ALL, tables, corpus)
    with pytest.raises(CorpusError, match=r"has no knowledge\.json"):
        Knowledge.open(corpus / "knowledge")
    joined: list[str] = []
    really = dataframes.write

    def watched(frame, folder, **options):
        joined.append(folder.name)
        really(frame, folder, **options)

    monkeypatch.setattr(dataframes, "write", watched)
    assert link(ALL, tables, corpus).fingerprint == knowledge.fingerprint
    assert "titles" not in joined
    assert ("triples" in joined) == (stage is not write_store)


@pytest.mark.parametrize("described_by", ["page", "lead"])
def test_a_page_describes_by_its_first_tokens_or_by_its_lead_alone(corpus, tmp_path, described_by):
    """XLM-K takes the first 256 tokens of a page, wherever its lead ends."""
    long = "Paris ist die Hauptstadt . " * 100
    pages = [
        Page(1, "A", "Europa ist hier.", opening="Europa ist hier. Paris ist dort."),
        Page(2, "B", "", opening="Paris ist dort."),
        Page(3, "C", "Europa.", opening=long),
    ]
    sitelinks = [(number, "de", title) for number, title in ((10, "A"), (20, "B"), (30, "C"))]
    tables = write_tables(tmp_path / "tables", {"de": pages}, sitelinks=sitelinks)
    config = LinkConfig(heldout_share=0, description=described_by)
    about = link(config, tables, corpus)
    found = Corpus.open(corpus).knowledge.descriptions("de")
    texts = [said(corpus, found[n]) for n in range(about.entities)]  # type: ignore[arg-type]
    if described_by == "lead":
        assert texts == ["Europa ist hier.", "Europa."]
        assert about.dropped["descriptions/de"] == {"no text": 1}
    else:
        assert texts[:2] == ["Europa ist hier. Paris ist dort.", "Paris ist dort."]
        assert len(found[2]) == 256  # type: ignore[arg-type]
        assert texts[2].startswith("Paris ist die Hauptstadt . Paris")
        assert about.dropped["descriptions/de"] == {}


def test_tables_of_an_earlier_version_are_refused_in_a_sentence(corpus, tables, tmp_path):
    old = Path(shutil.copytree(tables, tmp_path / "old"))
    for shard in old.glob("wikipedia/*/pages-*.parquet"):
        pq.write_table(pq.read_table(shard).drop_columns(["opening"]), shard)
    with pytest.raises(CorpusError, match=r"no column 'opening'.*knowledge extract"):
        link(ALL, old, corpus)


def test_other_settings_begin_anew(corpus, tables):
    link(ALL, tables, corpus)
    about = link(
        LinkConfig(heldout_share=0, min_relation_triples=2, languages=("en",)), tables, corpus
    )
    assert about.languages == ("en",)
    assert about.relations == 1
    assert about.dropped["triples"]["rare relation"] == 2


@pytest.fixture
def wiki() -> dict[str, list[Page]]:
    """A wiki of many pages that link to each other at random; some ids are there twice."""
    rng = np.random.default_rng(0)
    pages = []
    for number in rng.permutation(60).tolist():
        links = [f"T{target}" for target in rng.integers(0, 70, 3)]
        text = "We met " + " and ".join(links) + " there."
        pages.append(
            Page(
                number,
                f"T{number}",
                lead=f"T{number} is one of many." if number % 11 else None,
                redirect=f"T{rng.integers(0, 60)}" if number % 5 == 0 else None,
                sentences=[
                    ("\u200b", []),  # of which a tokenizer leaves nothing
                    (text, [(name, name) for name in links]),
                    ("All of it.", []),
                ],
            )
        )
    return {"en": [*pages, pages[3], pages[7]], "de": pages[:30]}


def tables_of(folder: Path, wiki: dict[str, list[Page]], shards: int) -> Path:
    rng = np.random.default_rng(1)
    sitelinks = [(100 + n, code, f"T{n}") for n in range(0, 60, 2) for code in ("de", "en")]
    claims = [tuple(map(int, row)) for row in rng.integers((100, 1, 100), (160, 4, 160), (80, 3))]
    labels = {100 + n: f"thing {n}" for n in range(0, 60, 4)}
    return write_tables(
        folder, wiki, sitelinks=sitelinks, claims=claims, labels=labels, shards=shards
    )


def naive_mentions(pages: list[Page], known: set[int]) -> Counter[tuple[str, int]]:
    """What a wiki of `tables_of` mentions, by dictionaries; pages are there once."""
    sitelinks = [(f"T{n}", 100 + n) for n in range(0, 60, 2)]
    rows = [(page.title, page.row()[3], page.redirect) for page in pages]
    items = naive_titles(rows, sitelinks, set(), ALL.max_redirects)
    own = {page.title: items[page.title][0] for page in pages if not page.redirect}
    found: Counter[tuple[str, int]] = Counter()
    for page in {page.id: page for page in pages}.values():
        for _, links in page.sentences:
            for anchor, target in links:
                item = items.get(target, (None, ""))[0]
                if item in known and item != own.get(page.title, 0):
                    assert item is not None
                    found[anchor, item] += 1
    return found


def test_a_wiki_reads_back_as_it_was(corpus, wiki, tmp_path, monkeypatch):
    monkeypatch.setattr(mentions, "_BATCH_SENTENCES", 7)
    monkeypatch.setattr(descriptions, "_BATCH_TEXTS", 5)
    monkeypatch.setattr(mentions, "_BATCH_ROWS", 4)
    config = LinkConfig(heldout_share=0, max_description_tokens=9)
    about = link(config, tables_of(tmp_path / "tables", wiki, 3), corpus)
    knowledge = Corpus.open(corpus).knowledge
    described = {p.id: p for p in wiki["en"] if not p.redirect and p.id % 2 == 0 and p.lead}
    known = {100 + n for n in described}
    assert set(knowledge.entities["item"].tolist()) == known
    assert about.dropped["descriptions/en"]["no text"] > 0
    assert mentions_of(corpus, knowledge, "en") == naive_mentions(wiki["en"], known)
    assert mentions_of(corpus, knowledge, "de") == naive_mentions(wiki["de"], known)
    for number, item in enumerate(knowledge.entities["item"].tolist()):
        tokens = knowledge.descriptions("en")[number]
        assert tokens is not None
        assert len(tokens) <= 9
        assert said(corpus, tokens).startswith(f"T{item - 100} ")
        assert knowledge.label(number) == (f"thing {item - 100}" if item % 4 == 0 else "")


def test_labels_come_in_batches_and_prefer_english():
    def batch(rows: list[tuple[int, dict[str, str]]]) -> pa.RecordBatch:
        texts = [[{"language": c, "text": t} for c, t in some.items()] for _, some in rows]
        columns = {"item": pa.array([item for item, _ in rows]), "labels": pa.array(texts, TEXTS)}
        return pa.RecordBatch.from_pydict(columns)

    batches = [
        batch([(2, {"de": "zwei", "en": "two"}), (4, {"de": "vier"})]),
        batch([(4, {"de": "noch einmal"}), (5, {"fr": "cinq"}), (8, {"de": "acht", "sw": "nane"})]),
        batch([(8, {"en": "eight"})]),
    ]
    entities = np.array([1, 2, 4, 5, 8, 9])
    tables = list(label_entities(entities, batches, ["en", "de", "sw"]))
    assert pa.concat_tables(tables).to_pydict() == {
        "item": entities.tolist(),
        "label": ["", "two", "vier", "", "acht", ""],
    }


def test_shards_and_workers_change_nothing(tmp_path, prepared, wiki):
    config = LinkConfig(heldout_share=0.2)
    stores = []
    for shards, workers in ((1, 1), (5, 2)):
        corpus = Path(shutil.copytree(prepared, tmp_path / f"corpus-{shards}"))
        tables = tables_of(tmp_path / f"tables-{shards}", wiki, shards)
        stores.append(link(config, tables, corpus, workers=workers))
    one, five = stores
    assert one.fingerprint == five.fingerprint
    assert one.dropped == five.dropped
    assert one.dropped["mentions/en"]["repeated"] > 0
    assert one.counts["en"].mentions["heldout"] > 0
    assert one.triples["heldout"] > 0
    kept = sum(one.counts["en"].mentions.values()) + sum(one.dropped["mentions/en"].values())
    assert kept == 3 * 62


RAY = """
import sys
import ray
from isoglot.corpus.knowledge.link.config import LinkConfig
from isoglot.corpus.knowledge.link.run import link
ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
about = link(LinkConfig(heldout_share=0.2, languages=("de",)), *sys.argv[1:], cluster="auto")
print(about.fingerprint)
ray.shutdown()
"""


@pytest.mark.slow
def test_a_ray_cluster_changes_nothing(tmp_path, prepared, wiki):
    tables = tables_of(tmp_path / "tables", wiki, 3)
    for name in ("here", "ray"):
        shutil.copytree(prepared, tmp_path / name)
    here = link(LinkConfig(heldout_share=0.2, languages=("de",)), tables, tmp_path / "here")
    done = subprocess.run(
        [sys.executable, "-c", RAY, str(tables), str(tmp_path / "ray")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == here.fingerprint


def test_faults_are_said(corpus, tables, tmp_path):
    with pytest.raises(CorpusError, match=r"has no Wikipedia in 'ed'; known: de, en"):
        link(LinkConfig(languages=("ed",)), tables, corpus)
    with pytest.raises(CorpusError, match=r"interrupted: it has no counts\.json"):
        link(ALL, tmp_path, corpus)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match="is not a prepared corpus"):
        link(ALL, tables, tmp_path / "empty")
    some = Path(shutil.copytree(tables, tmp_path / "some"))
    for shard in (some / "wikidata").glob("sitelinks-*"):
        shard.unlink()
    with pytest.raises(CorpusError, match=r"has no sitelinks-\*\.parquet"):
        link(ALL, some, corpus)
    shutil.rmtree(some / "wikidata")
    with pytest.raises(CorpusError, match="was extracted without Wikidata"):
        link(ALL, some, corpus)
    with pytest.raises(RecipeError, match="max_redirects must be from 1"):
        LinkConfig(max_redirects=0)


def test_no_entity_at_all_is_a_fault(corpus, tmp_path):
    tables = write_tables(tmp_path / "t", {"en": [Page(1, "A")]}, sitelinks=[(1, "en", "B")])
    with pytest.raises(CorpusError, match="no page belongs to a Wikidata item"):
        link(ALL, tables, corpus)


def test_knowledge_of_another_tokenizer_is_refused_and_made_anew(linked, tables, tmp_path):
    folder = Path(shutil.copytree(linked, tmp_path / "corpus"))
    config = PrepareConfig(
        sources={"wiki": SourceConfig(files={"en": ("text/en.txt.gz",)})},
        tokenizer=TokenizerConfig(vocab_size=350),
        heldout_share=0.0,
    )
    prepare(config, folder, base=tables, overwrite=True)
    corpus = Corpus.open(folder)
    with pytest.raises(CorpusError, match="written with another tokenizer"):
        _ = corpus.knowledge
    link(ALL, tables, folder)
    tokenizer = corpus.manifest.tokenizer.fingerprint
    assert Corpus.open(folder).knowledge.manifest.tokenizer == tokenizer

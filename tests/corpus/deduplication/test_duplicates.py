"""Duplicates: the partitioned search agrees with a set of lines; near ones with exact Jaccard."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus import Corpus
from isoglot.corpus.cleaning.clean_text import position_of, rows_of
from isoglot.corpus.deduplication import duplicates as search
from isoglot.corpus.deduplication import hashing
from isoglot.corpus.deduplication.collect import by_part
from isoglot.corpus.deduplication.duplicates import (
    DuplicateKind,
    DuplicateSearch,
    HashedPart,
    find_duplicates,
    write_parts,
)
from isoglot.corpus.deduplication.hashing import DuplicatesConfig, HashWriter, exact_keys
from isoglot.corpus.deduplication.minhash import NUM_BANDS, minhash_keys
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig, Subset
from isoglot.corpus.storage.shards import SPLITS, Split
from isoglot.corpus.tokenization.build import TokenizerConfig
from tests.corpus.conftest import config
from tests.corpus.pipeline.test_run import add_up, contents, decoded
from tests.corpus.sentences import lines


def cell(source="s", language="en", kind="text"):
    return Subset(
        source=source,
        language=language,
        spelled=tuple(language.split("-")),
        kind=kind,
        format="lines",
        options={},
        split="lines",
        files=(),
    )


def search_all(
    parts: list[HashedPart], kind: DuplicateKind, buckets: int, folder: Path, leaves: int | None
) -> list[list[int]]:
    """The positions in each part that the searches of all buckets find."""
    write_parts(folder / "parts.json", parts)
    outputs = []
    for bucket in range(buckets):
        task = DuplicateSearch(
            kind=kind,
            bucket=bucket,
            buckets=buckets,
            leaves=leaves,
            parts=folder / "parts.json",
            digest="",
            similarity=0.8,
            folder=folder,
        )
        find_duplicates(task)
        outputs.append(task.output)
    assert not list(folder.glob("*.leaves"))
    return [found.tolist() for found in by_part(outputs, parts)]


UNITS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), min_size=1, max_size=5)


@settings(max_examples=40, deadline=None)
@given(
    units=UNITS,
    grouped=st.lists(st.booleans(), min_size=5, max_size=5),
    buckets=st.integers(1, 7),
    leaves=st.sampled_from([None, 1, 3]),
    held=st.integers(1, 9),
)
def test_the_rows_are_those_that_a_set_of_lines_finds(
    tmp_path_factory, units, grouped, buckets, leaves, held
):
    """Units are files, or with `grouped` further parts of the file before."""
    folder = tmp_path_factory.mktemp("units")
    keys = exact_keys(cell(), DuplicatesConfig())
    parts: list[HashedPart] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "RUN_ENTRIES", held)
        patch.setattr(search, "MAX_ENTRIES", held)
        for number, texts in enumerate(units):
            (folder / str(number)).mkdir()
            # held-out lines are the vowels
            rows = dict.fromkeys(SPLITS, 0)
            with HashWriter(folder / str(number) / "exact.hashes", buckets) as written:
                for text in texts:
                    split = SPLITS[text in "ae"]
                    place = np.array([position_of(split, rows[split])])
                    written.append(*keys([text.encode()]), place)
                    rows[split] += 1
            before, group = dict.fromkeys(SPLITS, 0), number
            if number and grouped[number]:
                group = parts[-1].group
                before = {
                    split: parts[-1].before[split] + parts[-1].rows[split] for split in SPLITS
                }
            parts.append(HashedPart(str(folder / str(number)), group, rows, before))
        found = search_all(parts, "duplicate", buckets, folder, leaves)
    seen: set[str] = set()
    for texts, places in zip(units, found, strict=True):
        expected: dict[str, list[int]] = {split: [] for split in SPLITS}
        rows = dict.fromkeys(SPLITS, 0)
        for text in texts:
            split = SPLITS[text in "ae"]
            if text in seen:
                expected[split].append(rows[split])
            seen.add(text)
            rows[split] += 1
        assert {split: rows_of(np.array(places), split).tolist() for split in SPLITS} == expected


@pytest.fixture(scope="module")
def repeated(tmp_path_factory) -> Path:
    """Two sources of English in several files, and pairs, with lines that occur in several."""
    folder: Path = tmp_path_factory.mktemp("repeated")
    rng = random.Random(3)
    known = lines("en", 60)
    for name in ("a-1", "a-2", "b-1"):
        drawn = rng.choices(known, k=80)
        (folder / f"{name}.txt").write_text("\n".join(drawn) + "\n")
    other = lines("de", 12)
    rows = (f"{rng.choice(known[:6])}\t{rng.choice(other)}" for _ in range(100))
    (folder / "pairs.tsv").write_text("\n".join(rows) + "\n")
    return folder


def prepared(folder, base, tokenizer, **duplicates):
    chosen = config(
        sources={
            "a": SourceConfig(files={"en": ("a-1.txt", "a-2.txt")}),
            "b": SourceConfig(files={"en": ("b-1.txt",)}),
            "pairs": SourceConfig(kind="pairs", format="tsv", files={"en-de": ("pairs.tsv",)}),
        },
        tokenizer=TokenizerConfig(folder=str(tokenizer)),
        duplicates=DuplicatesConfig(**duplicates),
        heldout_share=0.1,
    )
    add_up(prepare(chosen, folder, base=base))
    return Corpus.open(folder)


def kept(corpus, source, language):
    train = decoded(corpus, source, language, "train")
    held = set(decoded(corpus, source, language, "heldout"))
    return train, held


@pytest.mark.parametrize("scope", ["none", "source", "language"])
def test_the_scope_says_where_a_line_is_looked_for(repeated, tmp_path, tokenizer, scope):
    corpus = prepared(tmp_path / "corpus", repeated, tokenizer, scope=scope)
    a, b = (
        [line for file in files for line in (repeated / file).read_text().splitlines()]
        for files in (("a-1.txt", "a-2.txt"), ("b-1.txt",))
    )
    pairs = (repeated / "pairs.tsv").read_text().splitlines()
    if scope != "none":
        a, b, pairs = (list(dict.fromkeys(of)) for of in (a, b, pairs))
    if scope == "language":
        b = [line for line in b if line not in a]
    for source, language, expected in (
        ("a", "en", [(line,) for line in a]),
        ("b", "en", [(line,) for line in b]),
        ("pairs", "en-de", [tuple(pair.split("\t")) for pair in pairs]),
    ):
        train, held = kept(corpus, source, language)
        assert held
        assert train == [texts for texts in expected if texts not in held]
        counts = corpus.manifest.sources[source].counts[language]
        assert counts.kept == len(expected)
        assert counts.dropped.get("duplicate", 0) == counts.read - len(expected)


def test_partitions_do_not_change_the_shards(repeated, tmp_path, tokenizer):
    prepared(tmp_path / "one", repeated, tokenizer, partitions=1)
    prepared(tmp_path / "two", repeated, tokenizer, partitions=9)
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    # the number of partitions is a setting, and only the manifest knows it
    assert one.pop("manifest.json") != two.pop("manifest.json")
    assert one == two


def jaccard(one: str, other: str) -> float:
    first, second = ({t[i : i + 5] for i in range(max(len(t) - 4, 1))} for t in (one, other))
    return len(first & second) / len(first | second)


def test_similar_lines_are_found_and_different_ones_are_not(tmp_path, monkeypatch):
    rng = random.Random(1)
    texts = []
    for base in lines("en", 400):
        words = f"{base} and {' '.join(rng.choices(base.split(), k=20))}".split()
        changed = list(words)
        for _ in range(rng.randint(0, 9)):
            changed[rng.randrange(len(changed))] = rng.choice(["one", "two", "other"])
        texts += [" ".join(words), " ".join(changed)]
    keys = minhash_keys(cell(), DuplicatesConfig())
    first, second = keys([text.encode() for text in texts])
    with HashWriter(tmp_path / "near.hashes", 3) as written:
        written.append(first, second, np.tile(np.arange(len(texts)), NUM_BANDS))
    rows: dict[Split, int] = {"train": len(texts), "heldout": 0}
    parts = [HashedPart(str(tmp_path), 0, rows, dict.fromkeys(SPLITS, 0))]
    (places,) = search_all(parts, "near-duplicate", 3, tmp_path, None)
    found = set(places)
    # in leaves that are read in pieces, as those are in which a band occurs everywhere
    monkeypatch.setattr(search, "MAX_ENTRIES", 100)
    assert search_all(parts, "near-duplicate", 3, tmp_path, 2) == [places]
    same = [n for n in range(1, len(texts), 2) if jaccard(texts[n - 1], texts[n]) > 0.93]
    near = [n for n in range(1, len(texts), 2) if jaccard(texts[n - 1], texts[n]) > 0.8]
    far = [n for n in range(1, len(texts), 2) if jaccard(texts[n - 1], texts[n]) < 0.6]
    assert len(same) > 20
    assert len(far) > 20
    assert set(same) <= found
    assert len(found & set(near)) > 0.7 * len(near)
    # the similarity is an estimate from 64 bits
    assert len(found & set(far)) < 0.05 * len(far)
    # of two alike the first stays
    assert all(n % 2 for n in found)


def test_near_duplicates_are_counted_apart(tmp_path, tokenizer):
    text = "The old fisherman mends his nets in the quiet harbour while the rain is falling"
    rows = [text, f"{text}.", text, "Nobody knew where the letter came from.", text.upper()]
    (tmp_path / "en.txt").write_text("\n".join(rows) + "\n")
    chosen = config(
        sources={"s": SourceConfig(files={"en": ("en.txt",)})},
        tokenizer=TokenizerConfig(folder=str(tokenizer)),
        duplicates=DuplicatesConfig(near=True),
        heldout_share=0.0,
    )
    manifest = prepare(chosen, tmp_path / "corpus", base=tmp_path)
    counts = add_up(manifest)["s"].counts["en"]
    assert counts.dropped == {"duplicate": 1, "near-duplicate": 2}
    assert decoded(Corpus.open(tmp_path / "corpus"), "s", "en", "train") == [(rows[0],), (rows[3],)]

"""The manifest's sums, ratios, fingerprint and checks of files, recomputed by hand."""

from __future__ import annotations

from hashlib import sha256

import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.storage.manifest import (
    Counts,
    TokenizerStats,
    add_counts,
    check_fingerprint,
    fingerprint_of,
    verify_files,
)
from isoglot.corpus.storage.shards import FileEntry
from isoglot.errors import CorpusError


def entry(folder, name: str, data: bytes) -> FileEntry:
    (folder / name).write_bytes(data)
    return FileEntry(file=name, bytes=len(data), sha256=sha256(data).hexdigest())


def test_counts_are_added_field_by_field():
    one = Counts(lines=1, bytes=20, read=300, kept=4000, heldout=50000, dropped={"b": 2, "a": 1})
    other = Counts(read=7, kept=6, heldout=5, dropped={"a": 10}, contaminated={"t": 3})
    assert Counts.sum([one, other]) == Counts(
        lines=1,
        bytes=20,
        read=307,
        kept=4006,
        heldout=50005,
        dropped={"a": 11, "b": 2},
        contaminated={"t": 3},
    )
    assert Counts.sum([]) == Counts(read=0, kept=0, heldout=0, dropped={})
    assert list(add_counts([{"b": 1}, {"a": 2, "b": 3}]).items()) == [("a", 2), ("b", 4)]


def test_statistics_of_a_tokenizer():
    one = TokenizerStats(words=10, tokens=40, unknown=2, bytes=6)
    other = TokenizerStats(words=1, tokens=2, unknown=3, bytes=4)
    assert one + other == TokenizerStats(words=11, tokens=42, unknown=5, bytes=10)
    assert (one.tokens_per_word, one.unknown_rate, one.coverage) == (4.0, 0.05, 0.8)
    nothing = TokenizerStats()
    assert (nothing.tokens_per_word, nothing.unknown_rate, nothing.coverage) == (0.0, 0.0, 1.0)


def test_the_fingerprint_is_of_names_and_contents(tmp_path):
    files = [entry(tmp_path, "b", b"2"), entry(tmp_path, "a", b"1")]
    lines = ["tok", f"a {files[1].sha256}", f"b {files[0].sha256}"]
    expected = sha256("\n".join(lines).encode()).hexdigest()
    assert fingerprint_of(files, "tok") == fingerprint_of(files[::-1], "tok") == expected
    check_fingerprint(tmp_path, expected, files, "tok", remedy="Again.")
    with pytest.raises(CorpusError, match=r"does not match its files\. Again\."):
        check_fingerprint(tmp_path, expected, files, "other", remedy="Again.")


def test_files_are_verified_up_to_two_gibibytes(tmp_path, monkeypatch):
    files = [entry(tmp_path, "one", b"12345"), entry(tmp_path, "two", b"67890")]
    (tmp_path / "two").write_bytes(b"6789O")
    for limit, found in ((10, True), (9, False)):
        monkeypatch.setattr("isoglot.corpus.storage.manifest._AUTO_HASH_BYTES", limit)
        if found:
            with pytest.raises(CorpusError, match="two: is damaged: its content differs"):
                verify_files(tmp_path, files, remedy="Again.")
        else:
            verify_files(tmp_path, files, remedy="Again.")
    verify_files(tmp_path, files, verify="never", remedy="Again.")
    with pytest.raises(CorpusError, match="two: is damaged"):
        verify_files(tmp_path, files, verify="always", remedy="Again.")
    (tmp_path / "two").write_bytes(b"678901")
    with pytest.raises(CorpusError, match=r"two: is damaged: it has 6 bytes and not 5\. Again\."):
        verify_files(tmp_path, files, verify="never", remedy="Again.")
    (tmp_path / "two").unlink()
    with pytest.raises(CorpusError, match=r"two: is missing\. Again\."):
        verify_files(tmp_path, files, verify="never", remedy="Again.")


def test_the_limit_is_two_gibibytes():
    from isoglot.corpus.storage import manifest

    assert manifest._AUTO_HASH_BYTES == 2 * 1024**3


def test_tokens_of_languages_are_those_of_text_and_of_either_side(corpus: Corpus):
    expected = dict.fromkeys(corpus.languages, 0)
    for name, source in corpus.manifest.sources.items():
        for language in source.languages:
            table = corpus.table(name, language, "train")
            codes = [language] if source.kind == "text" else language.split("-")
            for code, column in zip(codes, table.columns, strict=True):
                expected[code] += sum(len(table.ids(column, row)) for row in range(table.num_rows))
    assert corpus.tokens_of_languages() == expected
    assert all(expected.values())


def test_the_texts_of_tokens(corpus: Corpus):
    texts = corpus.token_texts()
    assert len(texts) == corpus.vocabulary.size
    assert texts[corpus.vocabulary.mask] == "<mask>"
    source = corpus.sources("text")[0]
    language = next(iter(corpus.manifest.sources[source].languages))
    row = corpus.table(source, language, "train").ids("ids", 0)
    assert "".join(texts[token] for token in row.tolist()).strip()

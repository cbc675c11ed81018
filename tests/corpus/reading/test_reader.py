"""What every reader promises: it never crashes, never hangs, and accounts for every line."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.cleaning.cleaner import DROP_REASONS
from isoglot.corpus.reading.reader import Reader, Record, Skipped
from isoglot.corpus.reading.registry import READERS
from isoglot.corpus.reading.sources import expand_patterns
from isoglot.errors import CorpusError
from tests.corpus.reading.examples import EXAMPLES, Example

PAIRS = [(f"sentence number {n} – ő", f"Satz Nummer {n} – 字") for n in range(12)]
PAIRED = "unaligned"  # a paragraph of a document that has its counterpart
TOGETHER = {reader.name: reader.together for reader in READERS}

CHUNKS = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\t",
        b"\x00",
        b"\xff",
        b"\xc3",
        b"\xef\xbb\xbf",
        b" ",
        b'"',
        b"x" * 50,
    ]
)
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(["insert", "replace", "cut out"]), CHUNKS),
    max_size=6,
)
CUT = st.one_of(st.just(1.0), st.floats(0, 1))


def damaged(data: bytes, edits: list[tuple[float, str, bytes]], cut: float) -> bytes:
    data = data[: int(cut * len(data))]
    for where, how, chunk in edits:
        place = int(where * len(data))
        kept = place + {"insert": 0, "replace": len(chunk), "cut out": 20}[how]
        data = data[:place] + (b"" if how == "cut out" else chunk) + data[kept:]
    return data


def written(folder: Path, example: Example, contents: list[bytes]) -> list[Path]:
    paths = [folder / f"{side}{example.suffix}" for side in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


def read_or_refused(reader: Reader, files: list[Path]) -> tuple[list[Record | Skipped], str]:
    """What a reader gives, or the message with which it gives up."""
    try:
        return list(reader.read(files)), ""
    except CorpusError as error:
        return [], str(error)


def check(name: str, found: list[Record | Skipped], contents: list[bytes]) -> None:
    """Everything that was read is in order, and there is neither more nor less of it."""
    for item in found:
        if isinstance(item, Record):
            "".join(item.texts).encode()
        else:
            item.text.encode()
            assert item.reason in DROP_REASONS
            assert len(item.text) <= 1000
    counts = [EXAMPLES[name].items(content) for content in contents]
    if counts == [-1]:
        assert len(found) == len(PAIRS)
    elif len(counts) == 1:
        assert len(found) == counts[0]
    elif name == "moses":
        assert counts == [len(found)] * 2
    else:
        # every line of the first file once; of the second, those that are in no pair
        joined = {i.line for i in found if i.file == 0 and getattr(i, "reason", PAIRED) == PAIRED}
        alone = {i.line for i in found if i.file == 1 and getattr(i, "reason", "") != PAIRED}
        first = Counter(item.line for item in found if item.file == 0)
        assert sorted(first) == list(range(1, counts[0] + 1))
        assert len(alone) == counts[1] - len(joined)
    if name in ("lines", "jsonl", "tsv", "moses"):
        assert [item.line for item in found] == list(range(1, len(found) + 1))


def test_every_format_has_an_example():
    assert set(EXAMPLES) == {reader.name for reader in READERS}
    assert len({reader.name for reader in READERS}) == len(READERS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_sound_files_are_read_whole(name, tmp_path):
    example = EXAMPLES[name]
    contents = example.write(PAIRS)
    files = written(tmp_path, example, contents)
    reader = example.reader(name)
    assert len(files) == TOGETHER[name]
    assert reader.check_files(files) is None
    found = list(reader.read(files))
    assert all(isinstance(item, Record) for item in found), found
    texts = [item.texts for item in found if isinstance(item, Record)]
    assert texts == (PAIRS if len(example.languages) == 2 else [(one,) for one, _ in PAIRS])
    if name in ("parquet", "datasets"):
        assert [item.line for item in found] == list(range(1, len(PAIRS) + 1))
    else:
        check(name, found, contents)


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(name, tmp_path_factory, data):
    example = EXAMPLES[name]
    contents = [damaged(c, data.draw(EDITS), data.draw(CUT)) for c in example.write(PAIRS)]
    files = written(tmp_path_factory.mktemp("damaged"), example, contents)
    found, message = read_or_refused(example.reader(name), files)
    if message:
        assert str(files[0]) in message
        assert name in ("csv", "tmx", "xliff", "parquet", "datasets", "moses")
        if name == "moses":
            numbers = [f"{example.items(content):,}" for content in contents]
            assert f"has {numbers[0]} lines" in message
            assert f"has {numbers[1]}." in message
        return
    check(name, found, contents)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_line_of_ten_megabytes(name, tmp_path):
    example = EXAMPLES[name]
    long = ("a word and " * 1_000_000)[: 10 << 20]
    pairs = [("before", "vorher"), (long, long), ("after", "nachher")]
    began = time.perf_counter()
    found = list(example.reader(name).read(written(tmp_path, example, example.write(pairs))))
    assert time.perf_counter() - began < 60
    texts = {item.texts[0] for item in found if isinstance(item, Record)}
    assert texts >= ({"after"} if name == "comparable" else {"before", long, "after"})


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_missing_or_empty_file(name, tmp_path):
    example = EXAMPLES[name]
    files = written(tmp_path, example, [b""] * TOGETHER[name])
    found, message = read_or_refused(example.reader(name), files)
    assert not found
    assert (str(files[0]) in message) == (name in ("tmx", "xliff", "parquet", "datasets"))
    files[0].unlink()
    with pytest.raises(CorpusError, match=r"there is no such file|is not a folder"):
        expand_patterns((str(files[0]),), tmp_path, "files", example.reader(name).files_of)
    with pytest.raises(CorpusError, match=r"there is no such file"):
        list(example.reader(name).read(files))

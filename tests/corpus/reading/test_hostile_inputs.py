"""A campaign of bad inputs: every reader ends in records or in a sentence, and in time.

Bytes, structures and compressions that no reader expects, each given to every format. Counts are
printed (`pytest -s`): inputs, sentences, inputs read to their end.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoglot.corpus.reading.reader import Record, Skipped
from isoglot.corpus.reading.registry import READERS, reader_for
from isoglot.errors import IsoglotError

SECONDS = 20
"""Time limit of one input."""
XML = "<tmx><body><tu><tuv xml:lang='en'><seg>a</seg></tuv></tu></body></tmx>"


def _good() -> dict[str, bytes]:
    """Small files of every kind, to be damaged."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["one", "two"], "en": ["a", "b"], "de": ["c", "d"]}), sink)
    stream = pa.BufferOutputStream()
    table = pa.table({"text": ["one"] * 9})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return {
        "lines": b"one\ntwo\n\nthree\n",
        "tsv": b"one\teins\ntwo\tzwei\n",
        "csv": b'text,en,de\n"one, two",a,"b ""c"""\n',
        "jsonl": b'{"text": "one", "en": "a", "de": "b", "id": "1"}\n' * 3,
        "conllu": b"# text = one\n1\tone\n\n# text = two\n1\ttwo\n\n",
        "tmx": XML.encode(),
        "xliff": b"<xliff><file source-language='en' target-language='de'><body><trans-unit>"
        b"<source>a</source><target>b</target></trans-unit></body></file></xliff>",
        "parquet": sink.getvalue().to_pybytes(),
        "arrow": stream.getvalue().to_pybytes(),
    }


def inputs(seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Name and content of every bad input."""
    rng = random.Random(seed)
    yield "empty", b""
    yield "zeros", b"\0" * 70_000
    yield "noise", rng.randbytes(70_000)
    yield "no UTF-8", b"\xff\xfe\xfd\n" * 50
    yield "half a character", "é".encode()[:1]
    yield "CR alone", b"a\rb\r\n\rc"
    yield "one long line", b"x" * 3_000_000
    yield "tabs", b"\t" * 100_000
    yield "line separators", "a\u2028b\u2029c\x85d\x0be\x0cf\n".encode()
    yield "deep list", b"[" * 300_000
    yield "deep object", b'{"text":' * 100_000
    yield "closed deep object", b'{"text":' * 950 + b"1" + b"}" * 950
    yield "big number", b'{"text": ' + b"9" * 20_000 + b"}"
    yield "lone surrogate", b'{"text": "\\ud800", "en": "\\udfff", "de": "a", "id": "\\ud800"}'
    yield "NaN", b'{"text": NaN}'
    yield "repeated keys", b'{"text": "a", "text": 5}'
    yield "wrong types", b'{"text": ["a"], "en": {}, "de": null, "id": 5}\n"text"\n5\nnull\n[]'
    yield "deep XML", b"<tmx>" + b"<a>" * 300_000
    yield "closed deep XML", b"<tmx>" + b"<tu>" * 5_000 + b"</tu>" * 5_000 + b"</tmx>"
    yield "billion laughs", (
        b'<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY a "' + b"x" * 100 + b'">'
        + b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
        + b"]><tmx><body><tu><tuv xml:lang='en'><seg>&a11;</seg></tuv></tu></body></tmx>"
    )  # fmt: skip
    yield (
        "outside entity",
        (b'<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]><tmx><tu>&a;</tu></tmx>'),
    )
    yield "many attributes", b"<tmx><tu " + b" ".join(b"a%d='1'" % n for n in range(20_000)) + b"/>"
    for encoding in ("zlib", "base64", "rot13", "utf-16", "utf-7", "idna", "cp037", "x" * 500, ""):
        yield f"XML in {encoding:.9}", f'<?xml version="1.0" encoding="{encoding}"?>{XML}'.encode()
    for name, content in _good().items():
        yield f"{name} whole", content
        yield f"{name} in UTF-16", content.decode("latin-1").encode("utf-16-le")
        for part in (1, len(content) // 3, len(content) - 1):
            yield f"{name} cut at {part}", content[:part]
        for number in range(3):
            damaged = bytearray(content)
            for _ in range(1 + number):
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            yield f"{name} flipped {number}", bytes(damaged)
        yield f"{name} twice", content + content


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@contextmanager
def in_time(seconds: int) -> Iterator[None]:
    """Raises a `TimeoutError` in the block after so many seconds."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(format_: str, file: Path, languages: tuple[str, ...]) -> str:
    """How reading a file ends: `read`, `sentence`, or the name of an error that is no sentence."""
    try:
        with in_time(SECONDS):
            reader = reader_for(format_, {}, languages, "sources.s")
            together = [file] * reader.together
            for found in reader.read(together):
                assert isinstance(found, Record | Skipped)
                for text in found.texts if isinstance(found, Record) else (found.text,):
                    text.encode()
    except IsoglotError as error:
        message = str(error)
        assert 10 < len(message) < 1_000
        return "sentence"
    except TimeoutError:
        return "hangs"
    except Exception as error:
        return f"traceback: {error!r:.150}"
    return "read"


def formats() -> list[tuple[str, tuple[str, ...]]]:
    both: list[tuple[str, tuple[str, ...]]] = []
    for reader in READERS:
        if reader.name == "datasets":  # folders: `parquet` reads their files
            continue
        if "text" in reader.kinds:
            both.append((reader.name, ("en",)))
        if "pairs" in reader.kinds:
            both.append((reader.name, ("en", "de")))
    return both


@pytest.mark.slow
def test_no_input_of_any_format_ends_in_a_traceback_or_never(tmp_path):
    counts: Counter[str] = Counter()
    faults = []
    for number, (name, content) in enumerate(inputs()):
        suffix = list(PACKED)[number % len(PACKED)]
        file = tmp_path / f"{number}{suffix}"
        file.write_bytes(PACKED[suffix](content))
        if number % 7 == 6 and suffix:
            file.write_bytes(file.read_bytes()[:-3])  # compressed, and cut short
        for format_, languages in formats():
            found = attempt(format_, file, languages)
            counts[found.split(":")[0]] += 1
            if found not in ("read", "sentence"):
                faults.append((format_, name, suffix, found))
    print(f"\n{counts.total()} inputs: {dict(counts)}")  # noqa: T201
    assert not faults
    assert counts.total() > 1_200
    assert min(counts["read"], counts["sentence"]) > 100


def test_folders_of_datasets_that_are_damaged_are_refused(tmp_path):
    for name in ("state.json", "dataset_dict.json"):
        for content in (
            "",
            "[]",
            "5",
            "{}",
            '{"splits": 5}',
            '{"_data_files": [5]}',
            "[" * 100_000,
        ):
            folder = tmp_path / f"{abs(hash((name, content)))}"
            folder.mkdir()
            (folder / name).write_text(content)
            with pytest.raises(IsoglotError):
                reader_for("datasets", {}, ("en",), "sources.s").files_of(folder)


@pytest.mark.parametrize("pattern", ["/proc/**", "/proc", "/sys/**/*", "~nobody-here/x.txt"])
def test_patterns_that_never_end_or_have_no_home_are_refused(pattern, tmp_path):
    from isoglot.corpus.reading.sources import expand_patterns

    def search(path: Path) -> tuple[Path, ...]:
        return tuple(path.rglob("*"))

    with in_time(SECONDS), pytest.raises(IsoglotError, match=r"not on a disk|home"):
        expand_patterns((pattern,), tmp_path, "files", search)


def test_hostile_json_in_a_jsonl_file_is_counted(tmp_path):
    """Of bad and good lines in one file every good one is read."""
    bad = [content.replace(b"\n", b" ") for name, content in inputs() if "object" in name]
    good = json.dumps({"text": "good"}).encode()
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(line for one in bad for line in (one, good)))
    reader = reader_for("jsonl", {}, ("en",), "sources.s")
    found = list(reader.read([tmp_path / "a.jsonl"]))
    assert sum(isinstance(one, Record) for one in found) == len(bad)
    assert len(found) == 2 * len(bad)

"""A file (or two) of every format that holds given texts, and how many items damaged bytes hold."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape

import pyarrow as pa
import pyarrow.parquet as pq

from isoglot.corpus.reading.reader import Reader
from isoglot.corpus.reading.registry import reader_for

Pair = tuple[str, str]


@dataclass(frozen=True)
class Example:
    """How to write a format, and how to count what is in its bytes."""

    write: Callable[[list[Pair]], list[bytes]]
    """Pairs of texts -> the contents of its file or files."""
    items: Callable[[bytes], int]
    """Lines (sentences, units) of a file's bytes."""
    languages: tuple[str, ...] = ("en", "de")
    suffix: str = ".txt"
    options: Mapping[str, str | int | bool] = field(default_factory=dict)

    def reader(self, name: str) -> Reader:
        return reader_for(name, self.options, self.languages, "sources.example")


def lines(data: bytes) -> int:
    return len(data.removeprefix(b"\xef\xbb\xbf").splitlines())


def sentences(data: bytes) -> int:
    read = [
        part.decode(errors="replace") for part in data.removeprefix(b"\xef\xbb\xbf").splitlines()
    ]
    blanks = "".join("x" if line.strip() else " " for line in read)
    return len(blanks.split())


def units(*starts: str) -> Callable[[bytes], int]:
    def count(data: bytes) -> int:
        text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f]", "", data.decode(errors="replace"))
        return sum(len(re.findall(start, text)) for start in starts)

    return count


def plain(pairs: list[Pair]) -> list[bytes]:
    return ["".join(f"{one}\n" for one, _ in pairs).encode()]


def json_lines(pairs: list[Pair]) -> list[bytes]:
    return ["".join(json.dumps({"text": one, "id": 7}) + "\n" for one, _ in pairs).encode()]


def tsv(pairs: list[Pair]) -> list[bytes]:
    return ["".join(f"{one}\t{other}\n" for one, other in pairs).encode()]


def comma_separated(pairs: list[Pair]) -> list[bytes]:
    sink = io.StringIO()
    csv.writer(sink, quoting=csv.QUOTE_ALL).writerows(pairs)
    return [sink.getvalue().encode()]


def rows(data: bytes) -> int:
    """Rows of CSV: as few lines as Python's reader takes for one, or one that it refuses."""
    found = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    lines = [line.decode(errors="ignore") if decodes(line) else "" for line in found]
    number = 0
    while lines:
        for taken in range(1, len(lines) + 1):
            try:
                list(csv.reader([f"{line}\n" for line in lines[:taken]], strict=True))
            except csv.Error as error:
                if "unexpected end" not in str(error):
                    break
            else:
                break
        number += 1
        del lines[:taken]
    return number


def decodes(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def moses(pairs: list[Pair]) -> list[bytes]:
    return [
        "".join(f"{one}\n" for one, _ in pairs).encode(),
        "".join(f"{other}\n" for _, other in pairs).encode(),
    ]


def keyed(pairs: list[Pair]) -> list[bytes]:
    return [
        "".join(f"{key}\t{pair[side]}\n" for key, pair in enumerate(pairs)).encode()
        for side in (0, 1)
    ]


def comparable(pairs: list[Pair]) -> list[bytes]:
    documents = [pairs[start : start + 2] for start in range(0, len(pairs), 2)]
    return [
        "".join(
            json.dumps({"id": str(key), "text": "\n".join(pair[side] for pair in document)}) + "\n"
            for key, document in enumerate(documents)
        ).encode()
        for side in (0, 1)
    ]


def conllu(pairs: list[Pair]) -> list[bytes]:
    sentence = "# newdoc\n# sent_id = 1\n# text = {}\n1\tword\t_\t_\n\n"
    return ["".join(sentence.format(one) for one, _ in pairs).encode()]


def tmx(pairs: list[Pair]) -> list[bytes]:
    unit = (
        '<tu><tuv xml:lang="en-US"><seg>{}<ph>&lt;b></ph></seg></tuv>'
        '<tuv xml:lang="fr"><seg>x</seg></tuv><tuv xml:lang="DE"><seg>{}</seg></tuv></tu>\n'
    )
    body = "".join(unit.format(escape(one), escape(other)) for one, other in pairs)
    return [f'<?xml version="1.0"?>\n<tmx><header/><body>\n{body}</body></tmx>'.encode()]


def xliff(pairs: list[Pair]) -> list[bytes]:
    """Version 2.0; 1.2 has a test of its own."""
    unit = "<unit><segment><source>{}</source><target>{}</target></segment></unit>\n"
    body = "".join(unit.format(escape(one), escape(other)) for one, other in pairs)
    head = '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de">'
    return [f"{head}<file>\n{body}</file></xliff>".encode()]


def parquet(pairs: list[Pair]) -> list[bytes]:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": range(len(pairs)), "text": [one for one, _ in pairs]}), sink)
    return [sink.getvalue().to_pybytes()]


def arrow_stream(pairs: list[Pair]) -> list[bytes]:
    table = pa.table({"text": [one for one, _ in pairs]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    return [sink.getvalue().to_pybytes()]


EXAMPLES = {
    "lines": Example(plain, lines, ("en",)),
    "jsonl": Example(json_lines, lines, ("en",), ".jsonl"),
    "conllu": Example(conllu, sentences, ("en",), ".conllu"),
    "moses": Example(moses, lines),
    "tsv": Example(tsv, lines),
    "csv": Example(
        comma_separated,
        rows,
        suffix=".csv",
        options={"first": 1, "second": 2, "header": False, "delimiter": ","},
    ),
    "keyed": Example(keyed, lines),
    "comparable": Example(comparable, lines),
    "tmx": Example(tmx, units("<tu>")),
    "xliff": Example(xliff, units("<segment>")),
    "parquet": Example(parquet, lambda data: -1, ("en",), ".parquet"),
    "datasets": Example(arrow_stream, lambda data: -1, ("en",), ".arrow"),
}

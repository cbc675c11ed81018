from __future__ import annotations

import bz2
import gzip
import io
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoglot.errors import FetchError
from isoglot.fetching.checks import check_content

TEXT = "".join(f"line {number}\n" for number in range(2000)).encode()


def parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"text": ["a", "b"]}), buffer)
    return buffer.getvalue()


WHOLE = {
    "a.txt.gz": gzip.compress(TEXT),
    "a.txt.xz": lzma.compress(TEXT),
    "a.txt.bz2": bz2.compress(TEXT),
    "a.txt.zst": bytes(pa.compress(TEXT, "zstd", asbytes=True)),
    "a.parquet": parquet(),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_and_damaged_files(tmp_path, name):
    path, whole = tmp_path / name, WHOLE[name]
    path.write_bytes(whole)
    check_content(path, "https://example.org/a")
    for bad in (whole[: len(whole) // 2], whole[:-3], b"<!DOCTYPE html><html>", b"", TEXT):
        path.write_bytes(bad)
        with pytest.raises(FetchError, match=r"https://example.org/a: .* not the expected file"):
            check_content(path, "https://example.org/a")


def test_a_page_is_no_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT)
    check_content(path, "u")
    path.write_bytes(b"\n<!DOCTYPE HTML>\n<html>")
    with pytest.raises(FetchError, match="it is a web page"):
        check_content(path, "u")

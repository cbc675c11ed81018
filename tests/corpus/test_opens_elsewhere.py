"""Shards are plain Arrow: datasets, polars and duckdb open them, as docs/prepare.md says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent.parent / "docs" / "prepare.md"


def test_the_python_of_prepare_md(corpus):
    entry = corpus.manifest.sources["wiki"].languages["en"]["train"].shards[0]
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    named = '"corpora/mine/news/en/train-00000.arrow"'
    assert named in block
    space: dict[str, Any] = {}
    exec(block.replace(named, repr(str(corpus.folder / entry.file))), space)  # noqa: S102 (ours)
    table = corpus.table("wiki", "en", "train")
    expected = [table.ids("ids", row).tolist() for row in range(entry.rows)]
    documents = table.shards[0].document.tolist()
    assert space["dataset"]["ids"][:] == space["frame"]["ids"].to_list() == expected
    assert space["dataset"]["document"][:] == space["frame"]["document"].to_list() == documents
    assert space["rows"].schema.metadata[b"languages"] == b"en"
    tokens: Counter[int] = Counter()
    for document, ids in zip(documents, expected, strict=True):
        tokens[document] += len(ids)
    assert dict(space["tokens"]) == tokens

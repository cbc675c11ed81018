from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

import pytest

from isoglot.corpus.cleaning.cleaner import DROP_REASONS
from isoglot.corpus.reading.registry import READERS, options_of, reader_for
from isoglot.errors import RecipeError

PAGE = Path(__file__).parents[3] / "docs" / "prepare.md"


@pytest.mark.parametrize(
    ("format_", "options", "languages", "message"),
    [
        (
            "jsnl",
            {},
            ("en",),
            r"sources\.s\.format: there is no format 'jsnl'; did you mean 'jsonl'\?",
        ),
        ("no.such:Reader", {}, ("en",), r"'no\.such:Reader' cannot be imported: No module named"),
        ("pathlib:Path", {}, ("en",), r"'pathlib:Path' is not a subclass of isoglot.Reader"),
        (
            "lines",
            {},
            ("en", "de"),
            r"'lines' does not hold pairs; for kind 'pairs' use 'jsonl' or",
        ),
        ("tmx", {}, ("en",), r"'tmx' does not hold text"),
        (
            "jsonl",
            {"feld": "x"},
            ("en",),
            r"options\.feld: 'jsonl' has no such option; did you mean",
        ),
        ("lines", {"field": "x"}, ("en",), r"'lines' has no such option; it has none"),
        ("tsv", {"first": "x"}, ("en", "de"), r"options\.first: expected a whole number, got 'x'"),
        ("tsv", {"first": True}, ("en", "de"), r"expected a whole number, got True"),
        ("tsv", {"first": 0}, ("en", "de"), r"sources\.s\.options: first must be from 1"),
        ("tsv", {"first": 2}, ("en", "de"), r"name the same column"),
        ("jsonl", {"languages": "en"}, ("en",), r"options\.languages: 'jsonl' has no such option"),
    ],
)
def test_settings_that_cannot_work_are_refused(format_, options, languages, message):
    with pytest.raises(RecipeError, match=message):
        reader_for(format_, options, languages, "sources.s")


def test_options_reach_the_reader():
    reader = reader_for("tsv", {"first": 3, "second": 4, "more": True}, ("en", "de"), "s")
    assert (reader.languages, getattr(reader, "first", 0)) == (("en", "de"), 3)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_every_option_is_plain_and_explained(reader):
    assert set(options_of(reader).values()) <= {str, int, bool, str | int}
    body = ast.parse(inspect.getsource(sys.modules[reader.__module__])).body
    (found,) = (node for node in body if getattr(node, "name", "") == reader.__name__)
    assert isinstance(found, ast.ClassDef)
    for place, node in enumerate(found.body):
        if isinstance(node, ast.AnnAssign):
            assert isinstance(found.body[place + 1], ast.Expr), ast.unparse(node)


def test_the_page_names_every_format_option_and_reason():
    rows = [row for row in PAGE.read_text("utf-8").splitlines() if row.startswith("| `")]
    for reader in READERS:
        # another table has rows of the same name, for how text is split
        row = next(row for row in rows if row.startswith(f"| `{reader.name}` |"))
        inherited = options_of(reader.__base__) if reader.__base__ in READERS else {}
        named = [name for name in options_of(reader) if f"`{name}`" in row]
        assert set(named) == set(options_of(reader)) - set(inherited), row
        assert f"| {', '.join(reader.kinds)} |" in row
    words = {word for row in rows for word in row.split("|")[1].split("`")[1::2]}
    assert words >= set(DROP_REASONS)

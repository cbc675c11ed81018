"""`isoglot cooccurrence`, as it is typed."""

from __future__ import annotations

import re

import pytest

from tests.tiny_corpus import make_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("tiny")).folder


def test_count_says_what_there_is(isoglot, workdir, corpus):
    said = isoglot("cooccurrence", "count", corpus, "--set", "window=3", "--set", "dtype=float16")
    assert said.code == 0, said.err
    assert re.search(r"[\d,]+ pairs of 400 tokens; window 3", said.out)
    assert re.search(r"^aa +1\.000", said.out, flags=re.MULTILINE)
    assert "count pairs ..." in said.err
    again = isoglot("cooccurrence", "count", corpus, "--set", "window=3", "--set", "dtype=float16")
    assert again.out == said.out
    assert not again.err, "it was there already"
    assert "window" in isoglot("cooccurrence", "count", corpus, "--set", "windows=3").err


def test_phrases_are_shown(isoglot, workdir, corpus):
    said = isoglot("cooccurrence", "phrases", corpus, "-o", "phrases.npy", "--set", "min_count=4")
    assert said.code == 0, said.err
    assert (workdir / "phrases.npy").exists()
    assert re.search(r"^2 +[1-9]", said.out, flags=re.MULTILINE)

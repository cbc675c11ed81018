"""Several processes of one run start at once: the first makes the testbed, the others wait."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from isoglot.corpus import Corpus
from isoglot.demo import generated_corpus
from isoglot.errors import CorpusError

SMALL = {"languages": ("en", "es"), "sentences": 300, "pairs": 100, "concepts": 30, "entities": 8}
ONE_RANK = f"""
import sys
from pathlib import Path
from rich.console import Console
from isoglot.corpus import Corpus
from isoglot.demo import generated_corpus
corpus = generated_corpus(Path("testbed"), Console(), vocabulary=int(sys.argv[1]), **{SMALL!r})
print("fingerprint", Corpus.open(corpus, verify="always").fingerprint)
"""


def start_both(desk, *, vocabulary):
    """What the processes of rank 0 and 1 say; the one that is to wait is started first."""
    command = [sys.executable, "-c", ONE_RANK, str(vocabulary)]
    running = [
        subprocess.Popen(
            command,
            cwd=desk,
            env=os.environ | {"RANK": rank},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("1", "0")
    ]
    ended = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0], ended
    second, first = (out for out, _ in ended)
    return first, second


@pytest.mark.slow
def test_one_makes_the_corpus_and_all_open_it(desk):
    first, second = start_both(desk, vocabulary=150)
    assert "writing text" in first
    assert second.startswith("fingerprint "), "it wrote nothing and said nothing"
    assert second.strip() == first.splitlines()[-1]

    # a corpus of other settings is there already: it is not the one to wait for
    _, other = start_both(desk, vocabulary=200)
    assert other.strip() == f"fingerprint {Corpus.open('testbed/corpus').fingerprint}"
    assert other != second


def test_the_wait_has_an_end(desk, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setitem(generated_corpus.__globals__, "_PATIENCE", 0.3)
    with pytest.raises(CorpusError, match="testbed/corpus: the process of rank 0 was to prepare"):
        generated_corpus(Path("testbed"), Console())
    assert list(desk.iterdir()) == []

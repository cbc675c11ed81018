"""The testbed as a prepared corpus: names in recipes, one language, several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from isoglot.corpus import Corpus
from isoglot.demo.testbed_corpus import SMALL, generated_corpus, named_corpus
from isoglot.errors import CorpusError, RecipeError
from isoglot.recipe import load_recipe

SIZES = {
    "languages": ("en", "es"),
    "num_sentences": 300,
    "num_pairs": 100,
    "num_concepts": 30,
    "max_entities": 8,
}
ONE_RANK = f"""
import sys
from pathlib import Path
from rich.console import Console
from isoglot.corpus import Corpus
from isoglot.demo.testbed_corpus import generated_corpus
corpus = generated_corpus(Path("testbed"), Console(), vocab_size=int(sys.argv[1]), **{SIZES!r})
print("fingerprint", Corpus.open(corpus, verify="always").fingerprint)
"""


def test_recipes_name_variants_of_the_testbed(monkeypatch):
    asked = []

    def note(folder, console, *, languages, **settings):
        asked.append((str(folder), languages, settings))
        return folder

    monkeypatch.setattr("isoglot.demo.testbed_corpus.generated_corpus", note)
    names = ("metaxlm-tiny-meta", "metaxlm-tiny", "mlm-gc-tiny", "unmt-mass-tiny")
    for corpus in (load_recipe(name).corpus for name in names):
        assert corpus is not None
        named_corpus(corpus, Path(corpus), Console(quiet=True))
    assert asked == [
        ("testbed-en", ("en",), {}),
        ("testbed", None, {}),
        ("testbed-zipf", None, {"zipf": True}),
        ("testbed-zipf-small-en-es", ("en", "es"), {"zipf": True, **SMALL}),
    ]
    with pytest.raises(RecipeError, match="does not have: did you mean 'zipf'"):
        named_corpus("testbed-zip", Path("anywhere"), Console(quiet=True))


def test_a_corpus_of_one_language_has_text_alone(tmp_path):
    folder = generated_corpus(
        tmp_path,
        Console(quiet=True),
        languages=("en",),
        num_sentences=200,
        num_pairs=5,
        num_pages=0,
        vocab_size=300,
    )
    corpus = Corpus.open(folder)
    assert corpus.languages == ("en",)
    assert set(corpus.manifest.sources) == {"text"}


def start_both(folder, *, vocab_size):
    """The output of the processes of rank 0 and 1; rank 1, which waits, is started first."""
    command = [sys.executable, "-c", ONE_RANK, str(vocab_size)]
    running = [
        subprocess.Popen(
            command,
            cwd=folder,
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
def test_rank_0_makes_the_corpus_and_all_ranks_open_it(tmp_path):
    first, second = start_both(tmp_path, vocab_size=150)
    assert "Generating text" in first
    assert second.startswith("fingerprint "), "rank 1 generates and prints nothing"
    assert second.strip() == first.splitlines()[-1]

    # a corpus of other settings is there already: rank 1 must not take it
    _, other = start_both(tmp_path, vocab_size=200)
    assert other.strip() == f"fingerprint {Corpus.open(tmp_path / 'testbed/corpus').fingerprint}"
    assert other != second


def test_the_wait_for_rank_0_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setitem(generated_corpus.__globals__, "_TIMEOUT_SECONDS", 0.3)
    with pytest.raises(CorpusError, match="testbed/corpus: the process of rank 0 did not prepare"):
        generated_corpus(tmp_path / "testbed", Console())
    assert list(tmp_path.iterdir()) == []

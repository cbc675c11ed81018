from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig, train_tokenizer
from tests.corpus.sentences import SENTENCES, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

LANGUAGES = ("de", "en", "zh")


def write_raw(folder: Path, rows: int = 120) -> None:
    """Text in three languages, a document every eight lines, and German-English pairs."""
    (folder / "text").mkdir(parents=True)
    for language in LANGUAGES:
        drawn = lines(language, rows)
        documents = ["\n".join(drawn[i : i + 8]) for i in range(0, rows, 8)]
        (folder / "text" / f"{language}.txt").write_text("\n\n".join(documents) + "\n", "utf-8")
    pairs = zip(lines("en", rows, seed=1), lines("de", rows, seed=1), strict=True)
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")


def config(**changes: object) -> PrepareConfig:
    settings: dict[str, object] = {
        "sources": {
            "wiki": SourceConfig(
                files={language: (f"text/{language}.txt",) for language in LANGUAGES}
            ),
            "bible": SourceConfig(kind="pairs", format="tsv", files={"en-de": ("pairs.tsv",)}),
        },
        "tokenizer": TokenizerConfig(vocab_size=600),
        "heldout_share": 0.1,
    }
    return PrepareConfig(**{**settings, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def raw(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("raw")
    write_raw(folder)
    return folder


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory) -> Path:
    """A unigram tokenizer with byte fallback, of all the languages in `sentences`."""
    folder: Path = tmp_path_factory.mktemp("tokenizer")
    text = [line for language in SENTENCES for line in lines(language, 60)]
    train_tokenizer(text, TokenizerConfig(vocab_size=1200), folder)
    return folder


@pytest.fixture(scope="session")
def corpus(raw, tmp_path_factory) -> Corpus:
    """A corpus in several small shards. Tests that damage it work on a copy."""
    folder = tmp_path_factory.mktemp("prepared") / "corpus"
    prepare(config(shard_tokens=500), folder, base=raw)
    return Corpus.open(folder)


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    """A Ray cluster of this process with two cores: `cluster="auto"` finds it.

    A process whose cluster is lost is ended by Ray after 60 seconds, so none is left running for
    the tests of other files.
    """
    import ray

    # workers import the functions of tests
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    yield
    ray.shutdown()

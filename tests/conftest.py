from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from isoglot.corpus import Corpus
from tests.tiny_corpus import make_corpus
from tests.tiny_knowledge import with_knowledge

# two test processes share two cores: one thread here and in subprocesses
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")
# no test asks the hub for a model
os.environ["HF_HUB_OFFLINE"] = "1"

# CI derandomizes hypothesis, so that a commit passes or fails for good; elsewhere examples vary
# no deadline: a busy machine is not a fault
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="module", autouse=True)
def gc_frozen() -> None:
    """Run `gc.freeze()` for every module: transformers' Trainer collects garbage often."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # extension modules report frozen objects as leaks at exit


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Corpus:
    """A small prepared corpus, shared: do not write into it."""
    return make_corpus(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def knowing(tmp_path_factory) -> Corpus:
    """The same corpus with a knowledge store, shared: do not write into it."""
    # not built from the fixture `corpus`: some folders override that name
    plain = make_corpus(tmp_path_factory.mktemp("plain"))
    return with_knowledge(plain, tmp_path_factory.mktemp("knowing") / "corpus")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; without ISOGLOT_DATA, tests that need it are skipped."""
    folder = os.environ.get("ISOGLOT_DATA")
    if not folder:
        pytest.skip("ISOGLOT_DATA is not set")
    return Path(folder)

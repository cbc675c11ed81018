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

torch.set_num_threads(1)  # two test processes share two cores

# on CI one commit gets one verdict; the search with new examples goes on wherever people work
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(scope="module", autouse=True)
def imports_are_no_garbage() -> None:
    """Set aside what is there: transformers' Trainer collects garbage at each of its ends."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # or extension modules call what is left a leak


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Corpus:
    """A small prepared corpus, shared: do not write into it."""
    return make_corpus(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def knowing(tmp_path_factory) -> Corpus:
    """A like corpus with knowledge beside it, shared: do not write into it."""
    # not of the fixture `corpus`: some folders have another of that name
    plain = make_corpus(tmp_path_factory.mktemp("plain"))
    return with_knowledge(plain, tmp_path_factory.mktemp("knowing") / "corpus")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; tests that want it are skipped where there is none."""
    folder = os.environ.get("ISOGLOT_DATA")
    if not folder:
        pytest.skip("ISOGLOT_DATA is not set")
    return Path(folder)

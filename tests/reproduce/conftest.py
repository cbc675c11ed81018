from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def python_of_the_tests():
    """Scripts run `python` and `isoglot` of the environment that the tests run in."""
    with pytest.MonkeyPatch.context() as patch:
        path = [str(Path(sys.executable).parent), os.environ["PATH"]]
        patch.setenv("PATH", os.pathsep.join(path))
        patch.setenv("VIRTUAL_ENV", sys.prefix)
        yield

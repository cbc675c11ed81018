"""Chinese words, by a dictionary and a model of unknown words."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def divider(language: str) -> Callable[[str], list[str]]:
    """Jieba."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for its files in an old way
        import jieba

    del language
    jieba.setLogLevel(logging.WARNING)
    jieba.initialize()
    divide: Callable[[str], list[str]] = jieba.lcut
    return divide

"""Sizes on disk: what is fetched, as far as it is known before the server is asked, and runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.pretraining.config import PretrainConfig
    from reproduce.hours import ModelShape

_KNOWN = Path(__file__).parent / "sizes.yaml"
_UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_FLOAT = 4
_ADAM_STATE = 3
"""Weights and two moments, of each weight in a checkpoint."""
_TOKEN = 4
"""Bytes of a token of a prepared corpus."""
_BYTES_A_TOKEN = 4.5
"""Of text, about (XLM-R's vocabulary)."""
_CC100_TEXT = 2.5e12
"""Bytes of all of CC-100's text (Conneau et al., 2020)."""
_TOKENIZED_BYTES_A_SECOND = 1.7e6
"""Of text by one core with a tokenizer from a folder (docs/prepare.md, unigram)."""


def fetched(names: Iterable[str]) -> tuple[float, list[str]]:
    """Bytes of what is fetched, and the names whose size only the server knows."""
    from isoglot.fetching.registry import entries

    known = yaml.safe_load(_KNOWN.read_text(encoding="utf-8"))
    total, unknown = 0.0, []
    for name in names:
        kind, _, rest = name.partition(":")
        size = known.get(kind, {}).get(rest) if rest else entries()[kind].size
        if size:
            total += parse(size)
        else:
            unknown.append(name)
    return total, unknown


def text_of(names: Iterable[str]) -> float:
    """Bytes of the text of the names whose size is known: CC-100's languages."""
    known = yaml.safe_load(_KNOWN.read_text(encoding="utf-8"))["cc100"]
    packed = {f"cc100:{code}": parse(size) for code, size in known.items()}
    share = sum(packed.get(name, 0.0) for name in names) / sum(packed.values())
    return share * _CC100_TEXT


def parse(size: str) -> float:
    """Bytes of `1.5 GB`."""
    match = re.fullmatch(r"(?:about )?([\d.,]+) (kB|MB|GB|TB)", size)
    assert match is not None, f"{size!r} is no size"
    return float(match[1].replace(",", "")) * _UNITS[match[2]]


def run_bytes(recipe: PretrainConfig, shape: ModelShape) -> float:
    """Bytes of a finished run: its newest checkpoints and the exported model."""
    states = _ADAM_STATE * recipe.checkpoint.keep + 1
    return _FLOAT * shape.weights * states


def corpus_bytes(text: float) -> float:
    """Bytes of a prepared corpus of so many bytes of text."""
    return text / _BYTES_A_TOKEN * _TOKEN


def core_hours(text: float) -> float:
    """Hours of one core to tokenize so many bytes of text."""
    return text / _TOKENIZED_BYTES_A_SECOND / 3600


def shown(size: float) -> str:
    """A size for people."""
    for unit, scale in reversed(_UNITS.items()):
        if size >= scale:
            number = size / scale
            return f"{number:,.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"
    return f"{size:.0f} bytes"

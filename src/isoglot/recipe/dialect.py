"""The YAML that recipes are written in: what looks like a number is one, and `no` is Norwegian.

PyYAML speaks YAML 1.1, in which 1e-4 is text, `no` is false and 2024-01-01 is a date. `Loader` and
`Dumper` follow YAML 1.2 here, and agree: what one writes, the other reads as it was.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_REPLACED = {f"{_TAG}bool", f"{_TAG}timestamp", f"{_TAG}float"}
_FLOAT = re.compile(
    r"^([-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN))$"
)
_BOOL = re.compile(r"^(true|True|TRUE|false|False|FALSE)$")


class Loader(yaml.SafeLoader):
    """Reads plain data only, no objects."""


class Dumper(yaml.SafeDumper):
    """Writes plain data; quotes what the loader would take for something else."""


def _speak_1_2(kind: Any) -> None:
    kind.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    kind.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+.0123456789"))
    kind.add_implicit_resolver(f"{_TAG}bool", _BOOL, list("tTfF"))


_speak_1_2(Loader)
_speak_1_2(Dumper)

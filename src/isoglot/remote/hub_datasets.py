"""Datasets of the Hugging Face hub by name, read where they lie: no download, no code of theirs.

    hf://datasets/OWNER/NAME[@REVISION][:CONFIG[:SPLIT]]   the data files of a config and split
    hf://datasets/OWNER/NAME[@REVISION]/PATH               a file, or a pattern, of the repository

The files of a name are chosen as `isoglot fetch hf:OWNER/NAME:CONFIG:SPLIT` chooses them, and
pinned to the commit that the hub names, so that all of them are of one version.
"""

from __future__ import annotations

import re

from isoglot.fetching.hub import PREFIX, ask_hub, choose_files, parse_hub_name
from isoglot.remote.stores import remote_config

_BY_NAME = re.compile(r"hf://datasets/([^/]+/[^/]+)")


def is_hub_dataset(url: str) -> bool:
    """Whether a URL names a dataset of the hub as a whole, not files of it."""
    return _BY_NAME.fullmatch(url.rstrip("/")) is not None


def hub_files(url: str, language: str | None = None) -> list[str]:
    """The URLs of the data files of a dataset; `language` may choose the config.

    Raises:
        FetchError: there is no such dataset, config or split, or it may not be read.
    """
    match = _BY_NAME.fullmatch(url.rstrip("/"))
    assert match is not None, url
    repo, revision, config, split = parse_hub_name(f"{PREFIX}{match[1]}")
    dataset = ask_hub(repo, remote_config(), revision)
    chosen = choose_files(dataset, config, split, language)
    return [f"hf://datasets/{repo}@{dataset.revision}/{path}" for path, _ in chosen]

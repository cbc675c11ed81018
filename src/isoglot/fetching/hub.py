"""Datasets of the Hugging Face hub: which files, how large, with which hash and license.

The hub is asked for the list (huggingface_hub); files are downloaded as all others are. A name is
`hf:OWNER/DATASET`, with `:CONFIG` and `:SPLIT` if the dataset has several. Only files of data are
taken (Parquet, JSON lines, text, tables); code of a dataset is never run.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from isoglot.errors import FetchError, nearest
from isoglot.fetching.download import Remote
from isoglot.fetching.http import MIRROR, FetchConfig, mirrored
from isoglot.languages import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PREFIX = "hf:"
_HUB = "https://huggingface.co"
_NAME = re.compile(
    r"hf:(?P<repo>[\w-][\w.-]*/[\w-][\w.-]*)(@(?P<revision>[\w.-]+))?"
    r"(:(?P<config>[\w.+-]+))?(:(?P<split>[\w.+-]+))?"
)
_DATA = (".parquet", ".jsonl", ".ndjson", ".txt", ".tsv", ".csv", ".json")
_COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
_SPLITS = ("train", "validation", "valid", "dev", "test")
_NOT_DATA = ("dataset_info", "dataset_infos", "readme", "license", "requirements")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubDataset:
    """What the hub says of a dataset."""

    repo: str
    license: str
    files: tuple[tuple[str, Remote], ...]
    """Path in the repository -> address, size and hash."""
    revision: str = "main"
    """The commit that the files are of."""


def ask_hub(repo: str, config: FetchConfig, revision: str | None = None) -> HubDataset:
    """The files of a dataset, at the newest revision or the one that is named.

    Raises:
        FetchError: there is none, it wants a log-in, or the hub cannot be reached.
    """
    from huggingface_hub import HfApi, get_token, hf_hub_url

    has_mirror = bool(config.mirror or os.environ.get(MIRROR))
    # files are asked for at the mirror by the downloader, the list is asked for here
    address = _HUB if has_mirror else os.environ.get("HF_ENDPOINT", _HUB)
    page = f"https://huggingface.co/datasets/{repo}"
    with _hub_errors(repo, revision, page):
        api = HfApi(endpoint=mirrored(address, config))
        info = api.dataset_info(repo, revision=revision, files_metadata=True)
    # a mirror is not trusted with the token
    token = None if has_mirror else get_token()
    headers = (("Authorization", f"Bearer {token}"),) if token else ()
    files = []
    for one in info.siblings or []:
        url = hf_hub_url(
            repo, one.rfilename, repo_type="dataset", revision=info.sha, endpoint=address
        )
        sha256 = one.lfs.sha256 if one.lfs else None
        files.append(
            (one.rfilename, Remote(url=url, size=one.size, sha256=sha256, headers=headers))
        )
    card = info.card_data
    said = card.get("license") if card is not None else None
    named = ", ".join(map(str, said)) if isinstance(said, list) else str(said or "unstated")
    return HubDataset(
        repo=repo, license=f"{named} ({page})", files=tuple(files), revision=info.sha or "main"
    )


@contextmanager
def _hub_errors(repo: str, revision: str | None, page: str) -> Iterator[None]:
    """Turns what the hub's library raises into one sentence."""
    from huggingface_hub.errors import (
        GatedRepoError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    name = f"{PREFIX}{repo}"
    try:
        yield
    except GatedRepoError as error:
        raise FetchError(
            f"{name}: its terms must be accepted first. Log in at {page}, accept them, and set "
            "HF_TOKEN (or run hf auth login)."
        ) from error
    except RevisionNotFoundError as error:
        raise FetchError(f"{name}: has no revision {revision!r}; see {page}.") from error
    except RepositoryNotFoundError as error:
        raise FetchError(
            f"{name}: the hub has no such dataset, or it is private. Look for its name at "
            "https://huggingface.co/datasets; for a private one set HF_TOKEN."
        ) from error
    except OfflineModeIsEnabled as error:
        raise FetchError(
            f"{name}: the hub is switched off (HF_HUB_OFFLINE=1). Unset it and try again."
        ) from error
    except Exception as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")[:200] or type(error).__name__
        raise FetchError(
            f"{name}: the hub cannot be asked ({reason}). Try again later, or name a mirror "
            "(--mirror or HF_ENDPOINT)."
        ) from error


def parse_hub_name(name: str) -> tuple[str, str | None, str | None, str | None]:
    """Repository, revision, config and split of `hf:OWNER/DATASET@REVISION:CONFIG:SPLIT`."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise FetchError(
            f"{name!r}: is not a dataset of the hub. Write hf:OWNER/DATASET, "
            "hf:OWNER/DATASET:CONFIG or hf:OWNER/DATASET:CONFIG:SPLIT."
        )
    return match["repo"], match["revision"], match["config"], match["split"]


def choose_files(
    dataset: HubDataset, config: str | None, split: str | None, language: str | None = None
) -> list[tuple[str, Remote]]:
    """The files of one config and split; without a split, of `train` if there is one.

    A dataset with several configs needs one to be named; `language` is taken for a config if one is
    called so.

    Raises:
        FetchError: there are no such files; the message lists configs or splits.
    """
    name = f"{PREFIX}{dataset.repo}"
    files = [(path, remote) for path, remote in dataset.files if _is_data(path)]
    if not files:
        raise FetchError(
            f"{name}: has no files of text ({', '.join(_DATA)}); a script makes its data, which is "
            "not run. Look for a copy in Parquet, or download it by hand."
        )
    # tables of labels or of numbers may lie beside data in another format
    files = [one for one in files if ".csv" not in PurePosixPath(one[0]).suffixes] or files
    configs = sorted({found for path, _ in files if (found := _config(path))})
    if config is None and language is not None and len(configs) > 1:
        named = [one for one in configs if canonical(one.rpartition(".")[2]) == canonical(language)]
        config = named[0] if len(named) == 1 else None
    if config is None and len(configs) > 1:
        shown = ", ".join(configs[:30]) + (" ..." if len(configs) > 30 else "")
        raise FetchError(f"{name}: has several configs. Write {name}:CONFIG with one of {shown}.")
    if config is not None:
        files = [(path, remote) for path, remote in files if _config(path) == config]
        if not files:
            raise FetchError(f"{name}: has no config {config!r}; {nearest(config, configs)}")
    splits = sorted({found for path, _ in files if (found := _split(path))})
    wanted = split or ("train" if "train" in splits else None)
    if wanted is not None:
        files = [(path, remote) for path, remote in files if _split(path) == wanted]
        if not files:
            raise FetchError(f"{name}: has no split {split!r}; {nearest(wanted, splits)}")
    return files


def _is_data(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return name.endswith(_DATA) and not name.startswith((".", *_NOT_DATA))


def _config(path: str) -> str:
    """The config that a file is of: its folder, without `data` and folders of splits."""
    folders = [one for one in PurePosixPath(path).parts[:-1] if one not in {"data", *_SPLITS}]
    return "/".join(folders)


def _split(path: str) -> str:
    """The split that a file is of, by its name or its folder; empty: it names none."""
    parts = PurePosixPath(path).parts
    words: Sequence[str] = [*re.split(r"[._-]", parts[-1]), *parts[:-1]]
    return next((split for split in _SPLITS if split in words), "")

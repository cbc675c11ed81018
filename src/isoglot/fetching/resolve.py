"""Local files of whatever names data: paths and patterns, URLs, hub datasets, registry names."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.errors import FetchError, IsoglotError
from isoglot.fetching.download import no_progress
from isoglot.fetching.fetch import fetch, print_license
from isoglot.fetching.plan import is_remote_name
from isoglot.fetching.registry import entries
from isoglot.folders import with_home
from isoglot.languages import canonical, split_pair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isoglot.fetching.download import Progress
    from isoglot.fetching.http import FetchConfig
    from isoglot.fetching.plan import FetchPlan


def is_remote(name: str) -> bool:
    """Whether a name is a URL, a hub dataset or a name of the registry, and no local path."""
    return (is_remote_name(name) or name in entries()) and not _exists(Path(name))


def resolve(
    name: str,
    *,
    folder: Path,
    language: str | None = None,
    progress: Progress = no_progress,
    announce: Callable[[FetchPlan], None] = print_license,
    config: FetchConfig | None = None,
) -> list[Path]:
    """The local files that a name stands for; what is remote is downloaded into `folder` first.

    A path is itself, a pattern the files that match it, sorted. `https://...`, `hf:OWNER/DATASET`
    and names of the registry (`opus:Tatoeba/en-sw`, `cc100:sw`) are downloaded, verified and
    unpacked below `folder`; what is there already is not downloaded again. `language` (`sw`, or
    `en-sw` for translations) completes a name without one (`opus:Tatoeba`), and chooses among the
    files of an archive. Translations in two files come with that of the first language first.

    Args:
        name: A path, a pattern, an address or a name.
        folder: Where downloads go.
        language: The language, or pair, that files are wanted of.
        progress: Called with what is downloaded, bytes done and all bytes (none: unknown).
        announce: Called before the first byte; by default it prints the license.
        config: How servers are asked.

    Raises:
        IsoglotError: there is no such file or name, or it cannot be downloaded.
    """
    if not is_remote(name):
        return _local(name)
    fetched = fetch(
        name,
        folder,
        language=language,
        progress=progress,
        announce=announce,
        config=config,
        verify=False,
    )
    wanted = (split_pair(language) or (language,)) if language else fetched.record.sides
    return in_order(fetched.files, wanted, name)


def in_order(files: Sequence[Path], sides: Sequence[str], name: str) -> list[Path]:
    """The files of the languages, that of the first language first.

    Files whose names name no language are all given; of an archive of many languages (FLORES) those
    of the wanted ones.
    """
    plain = [path for path in files if not _is_about(path)]
    named = {path: _languages(path) for path in plain}
    if not sides or len(plain) < 2 or not any(named.values()):
        return plain
    groups = [[path for path in plain if canonical(side) in named[path]] for side in sides]
    if len(sides) == 1:
        return groups[0] or plain
    if not all(groups):
        if any(groups):
            raise FetchError(
                f"{name}: does not have both of {' and '.join(sides)}, but "
                f"{', '.join(path.name for path in plain[:6])}. Name other languages."
            )
        return plain
    # the same part of both languages: dev with dev, test with test
    return [path for both in zip(*groups, strict=False) for path in both]


def _languages(path: Path) -> set[str]:
    """The language that a file is of: by its suffix (`a.en-sw.sw`) or stem (`swh_Latn`)."""
    name = re.sub(r"\.(gz|xz|bz2|zst)$", "", path.name)
    stem, _, suffix = name.rpartition(".")
    ways = [suffix] if re.fullmatch(r"[a-z]{2,3}([-_][A-Za-z]{2,4})?", suffix) else []
    if re.fullmatch(r"[a-z]{3}(_[A-Z][a-z]{3})?", stem):
        ways = [stem]
    return {canonical(way) for way in ways}


def _is_about(path: Path) -> bool:
    """Whether a file of an archive is about the data and no part of it."""
    return re.match(r"(?i)(readme|license|licence|copying|\.)", path.name) is not None


def _local(name: str) -> list[Path]:
    path = with_home(name)
    if _exists(path):
        return [path]
    if not glob.has_magic(name):
        raise IsoglotError(
            f"{name}: there is no such file. Name a file, an address (https://...), a dataset of "
            "the hub (hf:OWNER/DATASET), or data that isoglot fetch --list has."
        )
    found = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207 (may be absolute)
    if not found:
        raise IsoglotError(f"{name}: no file matches this pattern.")
    return [match for match in found if match.is_file()] or found


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False

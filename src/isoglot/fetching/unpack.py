"""Archives (zip, tar) to files: only the members that are wanted, at the places they belong to.

What an archive contains is not trusted: a member that leads out of the folder is refused, and so
are links and devices among the wanted ones, an archive that expands to far more than its size, and
a damaged one. Files are written to a temporary folder first and moved when all of them are whole.

`keep` maps members to places: `{"*/data/{code}.txt": "lexicon/{code}.tsv"}`. `a/` is everything
below a folder, `/` every member, `{name}` a part of a path without a slash, `*` the same without a
name, `**` anything.
Members that go to one place are joined, in the order in which the archive has them.
"""

from __future__ import annotations

import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Annotated

from isoglot.atomic import write_errors
from isoglot.errors import FetchError
from isoglot.fetching.checks import check_content
from isoglot.fetching.download import need_space, no_progress
from isoglot.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from isoglot.fetching.download import Progress

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
"""Endings of files that are unpacked."""
_BLOCK = 1 << 20
_VARIABLE = re.compile(r"(\{\w+\}|\*\*|\*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackLimits:
    """What an archive may expand to."""

    max_ratio: Annotated[float, Range(1, 1e6)] = 200.0
    """Bytes of its files for each byte of the archive."""
    min_bytes: Annotated[int, Range(0, 2**60)] = 1 << 30
    """Bytes that are always allowed."""
    max_members: Annotated[int, Range(1, 10**9)] = 1_000_000
    """Files and folders."""


@dataclass(slots=True)
class _Member:
    """A file of an archive."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]
    is_plain: bool = field(default=True)
    """Whether it is a regular file, no link or device."""


def is_archive(name: str) -> bool:
    """Whether a file's name is that of an archive."""
    return name.lower().endswith(ARCHIVES)


def unpack(
    archive: Path,
    folder: Path,
    keep: Mapping[str, str],
    *,
    url: str,
    verified: bool = False,
    limits: UnpackLimits | None = None,
    progress: Progress = no_progress,
) -> list[Path]:
    """Write the wanted members of an archive below a folder; gives their paths, sorted.

    One whose hash is not `verified` is read to its end first: tar does not look at the checksum of
    its compression.

    Raises:
        FetchError: it is damaged, hostile, no archive, or has none of the wanted members.
    """
    limits = limits or UnpackLimits()
    allowed = max(limits.min_bytes, int(limits.max_ratio * archive.stat().st_size))
    work = archive.with_name(f".{archive.name}.unpacked")
    shutil.rmtree(work, ignore_errors=True)
    try:
        if not verified and not archive.name.lower().endswith((".zip", ".tar")):
            check_content(archive, url, progress)
        with _faults(url), _members(archive, url) as members:
            wanted = _choose(members, keep, url, limits)
            size = sum(member.size for _, member in wanted)
            if size > allowed:
                raise FetchError(_bomb(url, size))
            need_space(archive.parent, size, url)
            _write(wanted, work, url, progress, archive.name)
        places = sorted({place for place, _ in wanted})
        for place in places:
            with write_errors(folder / place):
                (folder / place).parent.mkdir(parents=True, exist_ok=True)
                (work / place).replace(folder / place)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return [folder / place for place in places]


def place_of(name: str, keep: Mapping[str, str]) -> str | None:
    """Where a member goes; none: it is not wanted."""
    for pattern, target in keep.items():
        if pattern == "/":
            return target + name
        match = match_of(name, {pattern: target})
        if match is not None:
            return _filled(target, match) + name[match.end() :]
    return None


def match_of(name: str, keep: Mapping[str, str]) -> re.Match[str] | None:
    """The match of a member's name with the first pattern that fits."""
    for pattern in keep:
        if pattern.endswith("/"):
            match = re.match(_regex(pattern), name)
            if match is not None and match.end() < len(name):
                return match
        elif (match := re.fullmatch(_regex(pattern), name)) is not None:
            return match
    return None


def _regex(pattern: str) -> str:
    expression, seen = "", set[str]()
    for piece in _VARIABLE.split(pattern):
        if not _VARIABLE.fullmatch(piece):
            expression += re.escape(piece)
        elif piece.startswith("*"):
            expression += ".*" if len(piece) > 1 else "[^/]*"
        else:
            name = piece[1:-1]
            expression += f"(?P={name})" if name in seen else f"(?P<{name}>[^/]+?)"
            seen.add(name)
    return expression


def _filled(target: str, match: re.Match[str]) -> str:
    for name, value in match.groupdict().items():
        target = target.replace(f"{{{name}}}", value)
    return target


def _choose(
    members: Iterable[_Member], keep: Mapping[str, str], url: str, limits: UnpackLimits
) -> list[tuple[str, _Member]]:
    """The wanted members with their places, in the archive's order: a tar is read once through."""
    wanted, some = list[tuple[str, _Member]](), list[str]()
    for number, member in enumerate(members):
        if number >= limits.max_members:
            raise FetchError(
                f"{url}: the archive has more than {limits.max_members:,} members. Unpack it by "
                "hand if you trust it."
            )
        parts = PurePosixPath(member.name.replace("\\", "/")).parts
        if ".." in parts or member.name.startswith(("/", "\\")) or ":" in "".join(parts[:1]):
            raise FetchError(
                f"{url}: the archive's member {member.name!r:.120} leads out of the folder, so "
                "nothing is unpacked. Get the data from another place."
            )
        name = "/".join(part for part in parts if part != ".")
        some += [name] if len(some) < 5 else []
        place = place_of(name, keep)
        if place is None:
            continue
        if not member.is_plain:
            raise FetchError(
                f"{url}: the archive's member {member.name!r:.120} is a link or a device, so "
                "nothing is unpacked. Get the data from another place."
            )
        wanted.append((place, member))
    if not wanted:
        raise FetchError(
            f"{url}: the archive has none of the expected files ({', '.join(keep)}) but "
            f"{', '.join(some) or 'nothing'}. Its layout has changed: unpack it by hand."
        )
    return wanted


def _write(
    wanted: list[tuple[str, _Member]], work: Path, url: str, progress: Progress, name: str
) -> None:
    total, done = sum(member.size for _, member in wanted), 0
    for place, member in wanted:
        path = work / place
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with member.open() as source, path.open("ab") as file:
                written = 0
                while block := source.read(_BLOCK):
                    # both libraries give no more bytes than the archive says
                    written += len(block)
                    file.write(block)
                    progress(f"unpack {name}", done + written, total)
        if written < member.size:
            raise FetchError(_damaged(url, f"{member.name} is cut short"))
        done += written


@contextmanager
def _members(archive: Path, url: str) -> Iterator[Iterator[_Member]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield _zip_members(opened, url)
        return
    if archive.name.lower().endswith(".zip"):
        raise FetchError(_damaged(url, "it is not a zip archive, or it is cut short"))
    with tarfile.open(archive) as tar:
        # all of it is read here: a tar has no table of contents
        yield (
            _Member(one.name, one.size, _tar_opener(tar, one), one.isreg())
            for one in tar
            if not one.isdir()
        )


def _zip_members(opened: zipfile.ZipFile, url: str) -> Iterator[_Member]:
    for one in opened.infolist():
        if one.is_dir():
            continue
        if one.flag_bits & 1:
            raise FetchError(f"{url}: the archive has a password. Unpack it by hand.")
        mode = stat.S_IFMT(one.external_attr >> 16)
        plain = mode in {0, stat.S_IFREG}
        yield _Member(one.filename, one.file_size, _zip_opener(opened, one), plain)


def _zip_opener(opened: zipfile.ZipFile, one: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: opened.open(one)


def _tar_opener(tar: tarfile.TarFile, one: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def start() -> IO[bytes]:
        file = tar.extractfile(one)
        assert file is not None, "it is a regular file"
        return file

    return start


@contextmanager
def _faults(url: str) -> Iterator[None]:
    """Turns what the libraries say of a damaged archive into one sentence."""
    import lzma

    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError) as error:
        raise FetchError(_damaged(url, str(error) or type(error).__name__)) from error
    except (NotImplementedError, RuntimeError) as error:  # an unknown compression, a password
        raise FetchError(_damaged(url, str(error))) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise FetchError(_damaged(url, str(error))) from error  # a damaged gz or bz2 stream


def _damaged(url: str, reason: str) -> str:
    return (
        f"{url}: the archive is damaged ({reason}). Nothing is kept: run the command again, or "
        "name a mirror (--mirror)."
    )


def _bomb(url: str, size: int) -> str:
    return (
        f"{url}: the archive expands to {size:,} bytes or more, far more than its own size or than "
        "it says. Nothing is unpacked: do so by hand if you trust it."
    )

"""What a name stands for: the files to download, where they go, and under which license.

cc100:sw, tatoeba, ...   the registry
opus:CORPUS/en-sw        the registry, with the newest version from OPUS
hf:OWNER/DATASET         the Hugging Face hub
https://...              one file or archive
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from isoglot.errors import FetchError
from isoglot.fetching.download import Remote
from isoglot.fetching.http import FetchConfig, check_url
from isoglot.fetching.hub import PREFIX, ask_hub, choose_files, parse_hub_name
from isoglot.fetching.opus import newest_version
from isoglot.fetching.registry import Kind, Part, Request, expand, parse_name
from isoglot.fetching.unpack import ARCHIVES, is_archive, match_of, place_of
from isoglot.languages import from_wikipedia, split_pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One download."""

    remote: Remote
    place: str
    """Where the file goes, below the output folder; a label if it is unpacked."""
    keep: Mapping[str, str] = field(default_factory=dict)
    """Members of an archive and their places; empty: the file is not unpacked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPlan:
    """Everything that a name stands for."""

    name: str
    title: str
    kind: Kind
    license: str
    page: str
    pieces: tuple[Piece, ...]
    sides: tuple[str, ...] = ()
    """The language, or the two of a pair, if the name says so."""
    about_bytes: int | None = None
    """A size that is not exact, where no piece has one."""
    about: str = ""
    """The size as the registry words it."""
    format: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    split: str = ""

    @property
    def size(self) -> int | None:
        """The size in bytes; none: not known."""
        sizes = [piece.remote.size for piece in self.pieces]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else self.about_bytes


def is_remote_name(name: str) -> bool:
    """Whether a name has the form of an address, of a hub dataset, or of a name with a colon."""
    return re.match(r"[a-z][a-z0-9+-]*:(//|(?![/\\]))", name) is not None


def make_plan(
    name: str,
    config: FetchConfig,
    *,
    language: str | None = None,
    languages: tuple[str, ...] | None = None,
) -> FetchPlan:
    """The plan of a name; `languages` leaves out files of others where a data set has several.

    Raises:
        FetchError: there is no such data, or it cannot be fetched (the message says how to get it).
    """
    if re.match(r"[a-z]+://", name):
        return _of_url(name, language)
    if name.startswith(PREFIX) and name != PREFIX:
        return _of_hub(name, config, language)
    request = parse_name(name, language)
    entry = request.entry
    if entry.how:
        raise FetchError(f"{request.name} cannot be fetched. {entry.how}")
    about_bytes = None
    if entry.find == "opus":
        request, about_bytes = _with_version(request, config)
    pieces = [
        piece
        for part in expand(request, languages)
        for piece in _pieces(request, part, config, languages)
    ]
    return FetchPlan(
        name=request.name,
        title=entry.title,
        kind=entry.kind,
        license=entry.license,
        page=entry.page,
        pieces=tuple(pieces),
        sides=request.sides,
        about_bytes=about_bytes,
        about=entry.size,
        format=entry.format,
        options=entry.options,
        split=entry.split,
    )


def _pieces(
    request: Request, part: Part, config: FetchConfig, languages: tuple[str, ...] | None
) -> list[Piece]:
    if not part.hub:
        remote = Remote(url=part.url, size=part.size, sha256=part.sha256)
        return [Piece(remote=remote, place=part.to or _file_name(part.url), keep=part.keep)]
    found = [
        Piece(remote=remote, place=place)
        for path, remote in ask_hub(part.hub, config).files
        if (place := place_of(path, part.keep)) is not None
        and (languages is None or _language_in(path, part) in {*languages, None})
    ]
    if not found:
        wanted = ", ".join(part.keep)
        raise FetchError(
            f"{request.name}: hf:{part.hub} has no such files ({wanted}). Its page lists the "
            f"languages: {request.entry.page}"
        )
    return found


def _language_in(path: str, part: Part) -> str | None:
    """The language of a file of the hub, if its path names it."""
    match = match_of(path, part.keep) if part.language else None
    return None if match is None else from_wikipedia(match[part.language])


def _with_version(request: Request, config: FetchConfig) -> tuple[Request, int | None]:
    """The request with the newest version of OPUS, if it names none; and about how large it is."""
    values = request.values
    if values["version"] != "latest":
        return request, None
    newest = newest_version(values["corpus"], values["one"], values["two"], config)
    filled = {**values, "version": newest.version}
    return Request(name=request.name, entry=request.entry, values=filled), newest.about_bytes


def _of_url(name: str, language: str | None) -> FetchPlan:
    check_url(name)
    host, file = urlsplit(name).hostname or "web", _file_name(name)
    place = f"web/{host}/{file}"
    keep = {}
    if is_archive(file):
        ending = next(one for one in sorted(ARCHIVES, key=len, reverse=True) if _ends(file, one))
        keep = {"/": f"{place[: -len(ending)]}/"}
    pair = split_pair(language) if language is not None else None
    return FetchPlan(
        name=name,
        title=file,
        kind="text" if pair is None else "pairs",
        license="not known to Isoglot: look at the page that names the file",
        page=f"{urlsplit(name).scheme}://{host}",
        pieces=(Piece(remote=Remote(url=name), place=place, keep=keep),),
        sides=pair or (() if language is None else (language,)),
        format=format_of(file),
    )


def _ends(name: str, ending: str) -> bool:
    return name.lower().endswith(ending)


def _of_hub(name: str, config: FetchConfig, language: str | None) -> FetchPlan:
    repo, revision, chosen, split = parse_hub_name(name)
    dataset = ask_hub(repo, config, revision)
    files = choose_files(dataset, chosen, split, language)
    pair = split_pair(language) if language is not None else None
    return FetchPlan(
        name=name,
        title=f"{repo}, {len(files)} files",
        kind="text" if pair is None else "pairs",
        license=dataset.license,
        page=f"https://huggingface.co/datasets/{repo}",
        pieces=tuple(
            Piece(remote=remote, place=f"hf/{repo}/{path}") for path, remote in sorted(files)
        ),
        sides=pair or (() if language is None else (language,)),
        format=format_of(files[0][0]),
    )


def format_of(file: str) -> str:
    """The format of a prepare file's source that a file's name suggests."""
    path = PurePosixPath(file.lower())
    ending = PurePosixPath(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix
    return _FORMATS.get(ending, "lines")


_COMPRESSED = {".gz", ".xz", ".bz2", ".zst"}
_FORMATS = {
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".tsv": "tsv",
    ".csv": "csv",
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".conllu": "conllu",
}


def _file_name(url: str) -> str:
    """The last part of an address, as a name that a disk can have."""
    last = unquote(PurePosixPath(urlsplit(url).path).name) or "file"
    return re.sub(r"[^\w.+=-]", "_", last).lstrip(".")[:100] or "file"

"""OPUS: the newest version of a corpus for a pair of languages, as its API says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from isoglot import json_text
from isoglot.errors import FetchError, nearest
from isoglot.fetching.http import FetchConfig, TransientError, request

API = "https://opus.nlpl.eu/opusapi/"
_MAX_BYTES = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OpusVersion:
    """One version of one corpus in the Moses format."""

    version: str
    num_pairs: int | None
    about_bytes: int | None


def newest_version(corpus: str, one: str, two: str, config: FetchConfig) -> OpusVersion:
    """The newest version of a corpus for two languages, in alphabetical order.

    Raises:
        FetchError: OPUS does not have it (the message names corpora that it has), or is silent.
    """
    found = _ask({"corpus": corpus, "source": one, "target": two}, config)
    fitting = [
        entry
        for entry in found
        if entry.get("corpus") == corpus and isinstance(entry.get("version"), str)
    ]
    if not fitting:
        known = {str(entry.get("corpus")) for entry in _ask({"source": one, "target": two}, config)}
        if not known:
            raise FetchError(
                f"opus:{corpus}/{one}-{two}: OPUS has nothing for {one} and {two}. Its codes are "
                "listed at https://opus.nlpl.eu."
            )
        raise FetchError(
            f"opus:{corpus}/{one}-{two}: OPUS has no {corpus!r} for {one} and {two}; "
            f"{nearest(corpus, known)}"
        )
    entry = fitting[0]
    size, pairs = entry.get("size"), entry.get("alignment_pairs")
    return OpusVersion(
        version=entry["version"],
        num_pairs=pairs if isinstance(pairs, int) else None,
        about_bytes=size * 1024 if isinstance(size, int) else None,
    )


def _ask(what: dict[str, str], config: FetchConfig) -> list[dict[str, Any]]:
    query = {**what, "preprocessing": "moses", "version": "latest"}
    url = f"{API}?{urlencode(query)}"
    for last in (False, True):
        try:
            with request(url, config) as response:
                answer = json_text.parse(response.read(_MAX_BYTES))
            break
        except TransientError as error:
            if last:
                raise FetchError(
                    f"{url}: OPUS does not answer ({error}). Try again later, or name the version "
                    "(opus:Tatoeba/en-sw@v2023-04-12)."
                ) from error
        except ValueError as error:
            if isinstance(error, FetchError):
                raise
            raise FetchError(
                f"{url}: OPUS does not answer in JSON. Name the version "
                "(opus:Tatoeba/en-sw@v2023-04-12)."
            ) from error
    listed = answer.get("corpora") if isinstance(answer, dict) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []

"""One HTTP request: proxies, mirrors, time limits and redirects; faults that pass, and that stay.

A mirror replaces hosts: with `https://mirror.example/data`, https://dl.fbaipublicfiles.com/a.zip is
asked for at https://mirror.example/data/dl.fbaipublicfiles.com/a.zip.
"""

from __future__ import annotations

import contextlib
import email.utils
import os
import time
import urllib.request
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from isoglot.errors import FetchError
from isoglot.ranges import Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import urllib3

MIRROR = "ISOGLOT_MIRROR"
"""Environment variable with the address of a mirror."""
_MAX_REDIRECTS = 10
_MAX_WAIT_SECONDS = 120.0
"""Longest wait that a server may ask for (Retry-After)."""
PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """How files are asked for."""

    mirror: str | None = None
    """Address that replaces hosts; none: the environment variable ISOGLOT_MIRROR, or no mirror."""
    connect_seconds: Annotated[float, Range(0.01, 3600)] = 10.0
    """Time limit for a connection."""
    read_seconds: Annotated[float, Range(0.01, 3600)] = 60.0
    """Longest silence of a server before it is asked again."""
    max_tries: Annotated[int, Range(1, 1000)] = 5
    """Requests in a row without a new byte before a download is given up."""
    backoff_seconds: Annotated[float, Range(0, 3600)] = 1.0
    """Wait after the first fault; it doubles with each further one."""

    def __post_init__(self) -> None:
        check_ranges(self)


class TransientError(Exception):
    """A fault that may pass: a broken connection, silence, a busy server."""

    def __init__(self, reason: str, wait_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds


def mirrored(url: str, config: FetchConfig) -> str:
    """The address at the mirror, if there is one."""
    mirror = config.mirror or os.environ.get(MIRROR)
    if not mirror:
        return url
    _, _, rest = url.partition("://")
    return f"{mirror.rstrip('/')}/{rest}"


def check_url(url: str) -> None:
    """Refuse what is no address of a file on the web."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise FetchError(
            f"{url}: is not an address ({error}). Write https://HOST/PATH of a file."
        ) from error
    if parts.scheme not in {"http", "https"} or not host:
        raise FetchError(f"{url}: is not a web address. Write https://HOST/PATH of a file.")


@contextlib.contextmanager
def request(
    url: str, config: FetchConfig, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> Iterator[urllib3.BaseHTTPResponse]:
    """The answer to one request, its body not yet read; every status but errors is given.

    Raises:
        FetchError: the server refuses, has no such file, or redirects in a circle.
        TransientError: it may be worth to ask again.
    """
    import urllib3

    check_url(url)
    address = mirrored(url, config)
    check_url(address)
    once = urllib3.Retry(total=None, connect=0, read=0, status=0, other=0, redirect=_MAX_REDIRECTS)
    asked = {"Accept-Encoding": "identity", "User-Agent": "isoglot", **(headers or {})}
    limits = urllib3.Timeout(connect=config.connect_seconds, read=config.read_seconds)
    try:
        response = _pool(_proxy(address)).request(
            method, address, headers=asked, preload_content=False, retries=once, timeout=limits
        )
    except urllib3.exceptions.MaxRetryError as error:
        if isinstance(error.reason, urllib3.exceptions.ResponseError):
            raise FetchError(
                f"{url}: the server redirects in a circle. Try again later, or name another "
                "address or a mirror (--mirror)."
            ) from error
        raise TransientError(_reason(error.reason or error)) from error
    except urllib3.exceptions.LocationValueError as error:
        raise FetchError(f"{url}: leads to no address of the web ({_reason(error)}).") from error
    except urllib3.exceptions.HTTPError as error:
        raise TransientError(_reason(error)) from error
    try:
        _check(url, response)
        yield response
    except urllib3.exceptions.HTTPError as error:
        raise TransientError(_reason(error)) from error
    finally:
        # what is left of the body is not waited for
        response.close()


def _check(url: str, response: urllib3.BaseHTTPResponse) -> None:
    """Raise for a status that is an error, except 416: the whole file may be here already."""
    status = response.status
    if status < 400 or status == 416:
        return
    if status in PASSING:
        raise TransientError(f"status {status} {response.reason}", _wait(response))
    remedy = {
        401: "Log in there, or set a token (HF_TOKEN for the Hugging Face hub), and try again.",
        403: "It may want you to accept its terms in a browser first, or refuse your network: "
        "download the file by hand, or name a mirror (--mirror).",
        404: "The file has moved: look for its new address at the publisher's page, or name a "
        "mirror (--mirror).",
    }.get(status, "Download the file by hand, or name a mirror (--mirror).")
    if status == 410:
        status, remedy = 410, "It was removed there: look for another address or mirror (--mirror)."
    reason = response.reason or ""
    raise FetchError(f"{url}: the server answers {status} {reason}".rstrip() + f". {remedy}")


def _wait(response: urllib3.BaseHTTPResponse) -> float | None:
    """Seconds that the server asks to wait, at most two minutes."""
    said = response.headers.get("Retry-After")
    if not said:
        return None
    if said.strip().isdigit():
        seconds = float(said)
    else:
        try:
            seconds = email.utils.parsedate_to_datetime(said).timestamp() - time.time()
        except ValueError:
            return None
    return min(max(seconds, 0.0), _MAX_WAIT_SECONDS)


def _reason(error: BaseException) -> str:
    """What went wrong, in a few words."""
    import urllib3

    # the first that fits: unknown hosts and refusals are kinds of a late connection
    kinds: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
        (urllib3.exceptions.ReadTimeoutError, "the server fell silent"),
        (urllib3.exceptions.NameResolutionError, "the host is unknown, or there is no network"),
        (urllib3.exceptions.NewConnectionError, "the connection is refused"),
        (urllib3.exceptions.ConnectTimeoutError, "no connection within the time limit"),
        (urllib3.exceptions.SSLError, f"its certificate is not accepted: {error}"),
        (urllib3.exceptions.IncompleteRead, "the connection broke"),
        (urllib3.exceptions.ProxyError, "the proxy does not answer"),
    )
    for kind, words in kinds:
        if isinstance(error, kind):
            return words
    if isinstance(error, urllib3.exceptions.ProtocolError):
        return "the connection broke"
    return str(error).split("\n")[0][:200] or type(error).__name__


def _proxy(address: str) -> str | None:
    """The proxy for an address (http_proxy, https_proxy, all_proxy, no_proxy)."""
    parts = urlsplit(address)
    proxies = urllib.request.getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    return None if not found or urllib.request.proxy_bypass(parts.netloc) else found


@cache
def _pool(proxy: str | None) -> urllib3.PoolManager:
    import urllib3

    return urllib3.PoolManager() if proxy is None else urllib3.ProxyManager(proxy)

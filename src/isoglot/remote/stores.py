"""The file system of a URL (fsspec), and requests to it that are repeated after faults that pass.

Every request is made by `ask`: a fault that may pass (status 500, a cut connection, silence, fewer
bytes than asked for) is repeated with growing waits, at most `max_tries` times; a fault that stays
(no such file or bucket, forbidden, a package that is not installed) is an error at once, in one
sentence that names the URL. The file systems' own repetitions are switched off where they can be,
so that faults are counted and the time is bounded.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any, TypeVar

from isoglot.errors import FetchError
from isoglot.fetching.http import PASSING, FetchConfig
from isoglot.remote.faults import record_fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsspec import AbstractFileSystem

T = TypeVar("T")

TRIES = "ISOGLOT_REMOTE_TRIES"
"""Environment variable: requests in a row before a remote file is given up."""
SECONDS = "ISOGLOT_REMOTE_SECONDS"
"""Environment variable: longest silence of a store before it is asked again."""
_MAX_WAIT_SECONDS = 60.0
_EXTRAS = {"s3": "s3", "gs": "gcs", "gcs": "gcs"}
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS",
    "hf": "HF_TOKEN",
}
# what a program did wrong is never repeated
_STAYING = (ImportError, TypeError, AttributeError, NotImplementedError, LookupError, ValueError)


class ShortReadError(Exception):
    """A store gave another number of bytes than it was asked for."""


def remote_config() -> FetchConfig:
    """How stores are asked: as `isoglot fetch` asks servers, unless the environment says."""
    config = FetchConfig()
    return FetchConfig(
        read_seconds=_number(SECONDS, config.read_seconds),
        max_tries=int(_number(TRIES, config.max_tries)),
        backoff_seconds=min(config.backoff_seconds, _number(SECONDS, config.read_seconds) / 60),
    )


def _number(name: str, default: float) -> float:
    text = os.environ.get(name, "")
    try:
        return float(text) if text else default
    except ValueError as error:
        raise FetchError(
            f"{name}={text!r}: is not a number. Correct this environment variable."
        ) from error


def filesystem(url: str) -> AbstractFileSystem:
    """The file system that reads a URL; the same one for the same kind of URL, in a process."""
    import fsspec

    scheme = url.partition("://")[0]
    config = remote_config()
    try:
        found = fsspec.filesystem(scheme, **_options(scheme, config))
    except ImportError as error:
        package = _PACKAGES.get(scheme, str(error))
        extra = f" (or isoglot[{_EXTRAS[scheme]}])" if scheme in _EXTRAS else ""
        raise FetchError(
            f"{url}: {scheme}:// needs a package that is not installed: pip install {package}"
            f"{extra}."
        ) from error
    if scheme == "s3":
        found.retries = 1  # `ask` repeats and counts
    return found


def _options(scheme: str, config: FetchConfig) -> dict[str, Any]:
    """Settings of a file system: time limits, and no caches of listings."""
    if scheme in {"http", "https"}:
        import aiohttp

        limits = aiohttp.ClientTimeout(
            total=None, connect=config.connect_seconds, sock_read=config.read_seconds
        )
        client: dict[str, Any] = {"timeout": limits, "trust_env": True}
        return {"client_kwargs": client, "use_listings_cache": False}
    if scheme == "s3":
        limits_s3 = {
            "connect_timeout": config.connect_seconds,
            "read_timeout": config.read_seconds,
            "retries": {"total_max_attempts": 1},
        }
        return {"config_kwargs": limits_s3, "use_listings_cache": False}
    if scheme == "hf" and os.environ.get("HF_ENDPOINT"):
        return {"endpoint": os.environ["HF_ENDPOINT"], "use_listings_cache": False}
    return {}


def ask(url: str, request: Callable[[AbstractFileSystem], T]) -> T:
    """What a request to the file system of a URL gives; repeated after faults that may pass.

    Raises:
        FetchError: the store refuses, has no such file, or does not answer any more.
    """
    config = remote_config()
    tries = 0
    while True:
        try:
            return request(filesystem(url))
        except (FetchError, MemoryError):
            raise
        except Exception as error:
            reason = _staying(url, error)
            if reason is not None:
                raise FetchError(reason) from error
            tries += 1
            fault = describe(error)
            if tries >= config.max_tries:
                raise FetchError(
                    f"{url}: cannot be read ({fault}; asked {tries} times). Try again later; "
                    f"{TRIES} sets how often the store is asked."
                ) from error
        record_fault(fault)
        time.sleep(min(config.backoff_seconds * 2 ** (tries - 1), _MAX_WAIT_SECONDS))


def read_range(url: str, start: int, end: int) -> bytes:
    """The bytes [start, end) of a file, all of them."""
    from fsspec.asyn import AsyncFileSystem

    def request(found: AbstractFileSystem) -> bytes:
        more = {} if isinstance(found, AsyncFileSystem) else {"cache_type": "none"}
        content: bytes = found.cat_file(url, start=start, end=end, **more)
        if len(content) != end - start:
            raise ShortReadError(f"{len(content):,} of {end - start:,} bytes came")
        return content

    return ask(url, request) if end > start else b""


def describe(error: BaseException) -> str:
    """What went wrong, in a few words."""
    status = _status(error)
    if status is not None:
        return f"status {status}"
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return "the server fell silent"
    kinds = ("ClientPayloadError", "ServerDisconnected", "IncompleteRead", "ConnectionClosed")
    if isinstance(error, ConnectionResetError | BrokenPipeError) or any(
        kind in type(one).__name__ for one in _causes(error) for kind in kinds
    ):
        return "the connection broke"
    if any(
        kind in type(one).__name__
        for one in _causes(error)
        for kind in ("ClientConnector", "EndpointConnection", "ConnectError", "ConnectionRefused")
    ):
        return "no connection"
    return str(error).strip().split("\n")[0][:160] or type(error).__name__


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _status(error: BaseException) -> int | None:
    """The status of the answer that an error is about, if it names one."""
    for one in _causes(error):
        response = getattr(one, "response", None)
        status = getattr(one, "status", None)
        if isinstance(response, dict):  # botocore
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        elif response is not None:
            status = getattr(response, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def _staying(url: str, error: Exception) -> str | None:
    """A sentence about a fault that does not pass; none: it may pass."""
    scheme = url.partition("://")[0]
    status = _status(error)
    if any("NoCredentials" in type(one).__name__ for one in _causes(error)):
        return f"{url}: needs credentials. Set {_CREDENTIALS.get(scheme, 'them')}, then try again."
    if isinstance(error, PermissionError) or status in {401, 403}:
        hint = _CREDENTIALS.get(scheme)
        hint = f" Set {hint}, or ask the owner for access." if hint else " Log in there first."
        return f"{url}: access is forbidden ({describe(error)}).{hint}"
    if status is not None and 400 <= status < 500 and status not in (*PASSING, 404):
        return f"{url}: the store answers {describe(error)}. Check the address."
    passing = status is not None and status in PASSING
    unreached = isinstance(error, FileNotFoundError) and describe(error) in {
        "no connection",
        "the connection broke",
        "the server fell silent",
    }
    if status == 404 or (isinstance(error, FileNotFoundError) and not passing and not unreached):
        if re.search(r"nosuchbucket|bucket does not exist", str(error).lower()):
            return f"{url}: there is no such bucket. Check its name and region."
        return f"{url}: there is no such file or folder. Check the address."
    if isinstance(error, _STAYING):
        return f"{url}: cannot be read ({type(error).__name__}: {describe(error)})."
    return None

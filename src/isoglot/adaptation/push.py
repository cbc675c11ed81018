"""Give the adapted folders to the Hugging Face hub: NAME, and NAME-sentence-transformers.

The token is checked before anything else, because training may take hours. Both folders are private
until their owner says otherwise on the hub.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SUFFIX = "-sentence-transformers"
"""Of the name of the folder for sentence-transformers, which loads a repository's root only."""


class HubError(IsoglotError):
    """The hub cannot be reached, or does not take a folder."""


def check_hub(name: str) -> None:
    """Refuse a name or a token that the hub will not take, before any work.

    Raises:
        HubError: there is no token, it is wrong, the name is none, or the hub cannot be reached.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    try:
        validate_repo_id(name)
        validate_repo_id(name + SUFFIX)
    except HFValidationError as error:
        raise HubError(
            f"--push-to-hub {name}: is no name of a repository ({_first_line(error)}). Write "
            "USER/NAME."
        ) from error
    with _hub_errors(name):
        _api().whoami()


def push_folders(name: str, folders: Mapping[str, Path]) -> list[str]:
    """Upload folders (suffix of the name -> folder); gives the addresses of the repositories.

    Raises:
        HubError: the hub does not take them; what was uploaded before stays.
    """
    api, found = _api(), []
    for suffix, folder in folders.items():
        with _hub_errors(name + suffix):
            place = api.create_repo(name + suffix, private=True, exist_ok=True)
            api.upload_folder(
                repo_id=place.repo_id,
                folder_path=folder,
                commit_message="Adapted with Isoglot",
            )
            found.append(str(place))
    return found


def _api() -> Any:
    from huggingface_hub import HfApi

    return HfApi(endpoint=os.environ.get("HF_ENDPOINT"))


@contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """Turns the errors of the hub's library into sentences."""
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    try:
        yield
    except LocalTokenNotFoundError as error:
        raise HubError(
            f"--push-to-hub {name}: there is no token of the Hugging Face hub. Run `hf auth "
            "login`, or set HF_TOKEN."
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if status in (401, 403):
            reason = "does not take the token" if status == 401 else "does not let this token write"
            raise HubError(
                f"--push-to-hub {name}: the Hugging Face hub {reason} ({status}). Make one with "
                "the right to write (huggingface.co/settings/tokens), and set HF_TOKEN."
            ) from error
        raise HubError(
            f"--push-to-hub {name}: the Hugging Face hub refuses ({_first_line(error)}). "
            "Everything is kept here: run the same command again."
        ) from error
    except Exception as error:  # of the network: the library passes on what it meets
        reason = _first_line(error.__cause__ or error)
        raise HubError(
            f"--push-to-hub {name}: the Hugging Face hub does not answer ({reason}). Look at the "
            "network, or leave --push-to-hub out and push later with the same command."
        ) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".:") if lines else type(error).__name__

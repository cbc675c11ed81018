"""A model of the Hugging Face hub as a folder: where its files lie once they are fetched."""

from __future__ import annotations

from pathlib import Path

from isoglot.errors import ModelError
from isoglot.models.opening import check_exists, open_model


def local_folder(folder_or_name: str) -> Path:
    """The folder of a model and its tokenizer: the one that is named, or the hub's cache of it.

    Raises:
        ModelError: there is no such folder, and no such model can be fetched.
    """
    if Path(folder_or_name).is_dir():
        return Path(folder_or_name)
    check_exists(folder_or_name)
    from transformers import AutoTokenizer
    from transformers.utils import cached_file

    try:
        AutoTokenizer.from_pretrained(folder_or_name, trust_remote_code=False)
        open_model(folder_or_name, dropout=None)
        found = cached_file(folder_or_name, "config.json")
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ModelError(f"{folder_or_name} cannot be fetched from the hub: {reason}") from error
    assert found is not None
    return Path(found).parent

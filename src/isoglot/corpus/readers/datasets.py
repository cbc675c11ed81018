"""A Hugging Face dataset folder: written by `save_to_disk`, or a folder of Parquet files.

`save_to_disk` writes Arrow shards, listed in a state.json; a dataset of several parts (train,
validation, ...) has a folder of that kind for each. Folders as the Hub gives them hold Parquet
files that name their part in their own name or in a folder's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from isoglot.corpus.readers.parquet import ParquetReader
from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetsReader(ParquetReader):
    """The texts or pairs of one part of a dataset; every shard can be read on its own."""

    part: str = "train"
    """The part of the dataset, where it has several; `*` for all."""

    name = "datasets"

    @override
    def files_of(self, path: Path) -> tuple[Path, ...]:
        if not path.is_dir():
            raise CorpusError(
                f"{path}: is no folder. Format 'datasets' takes the folder of a dataset; for "
                "single files use format 'parquet'."
            )
        parts = _parts(path)
        if parts:
            return tuple(shard for folder in self._chosen(path, parts) for shard in _shards(folder))
        if (path / _STATE).is_file():
            return _shards(path)
        return self._loose(path)

    def _chosen(self, path: Path, parts: list[str]) -> list[Path]:
        """The folders of the parts to read."""
        if self.part != "*" and self.part not in parts:
            hint = nearest(self.part, parts)
            raise CorpusError(f"{path}: has no part {self.part!r} (options.part); {hint}")
        return [path / part for part in parts if self.part in ("*", part)]

    def _loose(self, path: Path) -> tuple[Path, ...]:
        """Parquet and Arrow files anywhere in a folder, of the part to read."""
        present = sorted(
            file for file in path.rglob("*") if file.suffix in (".parquet", ".arrow", ".feather")
        )
        if not present:
            raise CorpusError(
                f"{path}: holds no {_STATE} and no Parquet or Arrow file: no dataset."
            )
        chosen = [
            file
            for file in present
            if self.part == "*"
            or file.name.startswith(self.part)
            or self.part in file.relative_to(path).parts
        ]
        if not chosen:
            raise CorpusError(
                f"{path}: no file of it is of part {self.part!r} (the first is {present[0].name}). "
                "Set options.part to what the names begin with, or to '*' for all files."
            )
        return tuple(chosen)


_STATE = "state.json"


def _parts(path: Path) -> list[str]:
    """The parts of a dataset that was saved with several."""
    listing = path / "dataset_dict.json"
    if not listing.is_file():
        return []
    try:
        return [str(part) for part in json.loads(listing.read_text("utf-8"))["splits"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorpusError(f"{listing}: is damaged ({error!r}). Save the dataset again.") from error


def _shards(folder: Path) -> tuple[Path, ...]:
    """The shards of one saved part, in their order."""
    state = folder / _STATE
    try:
        listed = json.loads(state.read_text("utf-8"))["_data_files"]
        return tuple(folder / str(entry["filename"]) for entry in listed)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorpusError(
            f"{state}: is missing or damaged ({error!r}). Save the dataset again."
        ) from error

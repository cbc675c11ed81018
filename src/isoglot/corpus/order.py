"""What is to be made of what: the settings and all the files they name, checked and hashed.

Everything that can be wrong with the settings is found here, before any work is done.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isoglot.corpus.cells import Cell, expand, lay_out
from isoglot.corpus.config import PrepareConfig
from isoglot.corpus.manifest import FileEntry, Manifest
from isoglot.corpus.output import inputs_of, up_to_date
from isoglot.corpus.pretokenize import Pretokenization
from isoglot.corpus.readers.files import require
from isoglot.errors import CorpusError, RecipeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be made of what."""

    config: PrepareConfig
    output: Path
    cells: list[Cell]
    given: Path | None
    """The folder of the tokenizer to take as it is."""
    pretokenization: Pretokenization
    excluded: tuple[Path, ...]
    inputs: dict[Path, FileEntry]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as the manifest keeps them."""
        settings: dict[str, Any] = json.loads(json.dumps(asdict(self.config)))
        return settings

    def present(self) -> Manifest | None:
        """The manifest of the corpus, if it is there already, whole and up to date."""
        return up_to_date(self.output, self.settings, tuple(self.inputs.values()))


def order_of(config: PrepareConfig, output: Path, base: Path) -> Order:
    """The settings with paths relative to `base` (or to the folder that `config.base` names)."""
    config.check()
    base = _base(config.base, base)
    cells = lay_out(config.sources, base)
    given = _given_tokenizer(config, base, output)
    excluded = expand(config.exclude, base, "exclude", _one_file) if config.exclude else ()
    sources = {path for cell in cells for path in cell.files}
    for path in excluded:
        if path in sources:
            raise RecipeError(
                f"exclude: {path} is also a file of a source: all of it would be dropped. "
                "Take it out of one of the two."
            )
    names = config.tokenizer.pretokenize
    words = Pretokenization(names) if given is None else Pretokenization.load(given)
    words.check()
    return Order(
        config=config,
        output=output,
        cells=cells,
        given=given,
        pretokenization=words,
        excluded=tuple(dict.fromkeys(excluded)),
        inputs=inputs_of(cells, given, excluded, base),
    )


def _base(named: str, base: Path) -> Path:
    """The folder that paths are relative to; $NAME in it is a variable of the environment."""
    expanded = os.path.expandvars(named)
    if "$" in expanded:
        raise RecipeError(
            f"base: {named!r} names a variable of the environment that is not set. Set it, or "
            "name the folder with --set base=FOLDER."
        )
    return base / Path(expanded).expanduser()


def _one_file(path: Path) -> tuple[Path, ...]:
    require(path)
    return (path,)


def _given_tokenizer(config: PrepareConfig, base: Path, output: Path) -> Path | None:
    """The folder of the tokenizer to take as it is, if the settings name one."""
    if config.tokenizer.folder is None:
        return None
    folder = base / Path(config.tokenizer.folder).expanduser()
    if folder.resolve().is_relative_to(output.resolve()):
        raise CorpusError(
            f"{folder}: lies inside the corpus that is to be written. Copy the tokenizer elsewhere "
            "and name the copy in `tokenizer.folder`."
        )
    if not folder.is_dir():
        raise CorpusError(f"tokenizer.folder: there is no folder {folder}.")
    return folder

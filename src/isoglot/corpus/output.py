"""The output folder before and after the work: is it up to date, how is it cleared and filled.

A finished corpus has a manifest; one that is being prepared has a mark, and a folder in which all
the work is done. That one stays when a run is interrupted, and the next run goes on in it. A folder
with neither manifest nor mark is somebody else's and is never touched.
"""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING, Any

from isoglot.corpus.cooccurrence.count import FOLDER
from isoglot.corpus.corpus import TOKENIZER_FOLDER, Corpus
from isoglot.corpus.disk import write_atomically, writing
from isoglot.corpus.heldout import SPLITS
from isoglot.corpus.manifest import FILE, FileEntry, Manifest, file_entry, write_manifest
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.cells import Cell

WORK = ".work"
"""Folder of what is not finished, gone when the corpus is."""
_MARK = ".preparing"
_log = logging.getLogger(__name__)


def inputs_of(
    cells: list[Cell], tokenizer: Path | None, excluded: tuple[Path, ...], base: Path
) -> dict[Path, FileEntry]:
    """Every file that is read, as it is now."""
    paths = {path for cell in cells for path in cell.files}.union(excluded)
    if tokenizer is not None:
        paths.update(path for path in tokenizer.iterdir() if path.is_file())
    return {
        path: file_entry(
            path, (path.relative_to(base) if path.is_relative_to(base) else path).as_posix()
        )
        for path in sorted(paths)
    }


def up_to_date(
    output: Path, settings: dict[str, Any], inputs: tuple[FileEntry, ...]
) -> Manifest | None:
    """The manifest of a whole corpus with the same settings and inputs, if `output` is one."""
    if not (output / FILE).is_file():
        return None
    try:
        manifest = Corpus.open(output).manifest
    except CorpusError as error:
        _log.warning("%s Preparing it anew.", error)
        return None
    # where dropped lines once went matters only to those who ask for them
    asked = {} if settings["dropped"] is not None else {"dropped": None}
    if {**manifest.settings, **asked} != settings or manifest.inputs != inputs:
        _log.info("%s: the settings or the inputs have changed. Preparing it anew.", output)
        return None
    _log.info("%s: is up to date.", output)
    _tidy(output)
    return manifest


def start_afresh(output: Path) -> None:
    """Leaves nothing of an earlier corpus in the folder, but what an interrupted run has finished.

    Never touches a folder that is no corpus.
    """
    ours = (output / FILE).exists() or (output / _MARK).exists()
    if output.exists() and not ours and any(output.iterdir()):
        raise CorpusError(
            f"{output}: is not empty and is not a prepared corpus. Choose another output folder."
        )
    write_atomically(output / _MARK, b"")
    with writing(output):
        (output / FILE).unlink(missing_ok=True)
        for name in (TOKENIZER_FOLDER, FOLDER):
            shutil.rmtree(output / name, ignore_errors=True)
        for split in SPLITS:
            for shard in output.glob(f"*/*/{split}-*.arrow*"):
                shard.unlink()
        # deepest first, so that a source's folder is empty when its turn comes
        folders = (path for path in output.glob("[!.]*/**") if path.is_dir())
        for folder in sorted(folders, reverse=True):
            if not any(folder.iterdir()):
                folder.rmdir()


def finish(output: Path, manifest: Manifest, moves: dict[Path, Path]) -> None:
    """Moves what the work has made to its places, and makes the folder a corpus."""
    for source, target in moves.items():
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
    write_manifest(output, manifest)
    _tidy(output)


def _tidy(output: Path) -> None:
    """Removes what served the work only."""
    shutil.rmtree(output / WORK, ignore_errors=True)
    (output / _MARK).unlink(missing_ok=True)

"""The settings of `isoglot prepare`, the plan made from them, and the output folder.

The plan names every input file with its hash. Wrong settings are found while it is made, before any
work is done.

A finished corpus has a manifest. A corpus in preparation has the marker file .preparing and the
folder .work, which stays after an interruption; the next run continues in it. A folder with neither
manifest nor marker is not ours and is never touched.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from isoglot.atomic import write_bytes, write_errors
from isoglot.corpus.cleaning.cleaner import CleanConfig
from isoglot.corpus.deduplication.hashing import DuplicatesConfig
from isoglot.corpus.knowledge.extract_tables import ExtractedTables
from isoglot.corpus.knowledge.link.config import KnowledgeSource, LinkConfig
from isoglot.corpus.pipeline.inputs import hash_inputs
from isoglot.corpus.reading.sources import SourceConfig, Subset, expand_patterns, find_subsets
from isoglot.corpus.storage.corpus import TOKENIZER_FOLDER, Corpus
from isoglot.corpus.storage.derived import INDEX
from isoglot.corpus.storage.manifest import FILE, write_manifest
from isoglot.corpus.storage.shards import SPLITS, FileEntry
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import CorpusError, RecipeError, require
from isoglot.folders import tokenizer_folder, with_home
from isoglot.locks import has_files
from isoglot.ranges import Range, Seed, check_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus.engine.runner import StageRunner
    from isoglot.corpus.storage.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareConfig:
    """The sources of a corpus and how they are processed."""

    base: str = ""
    """Folder that paths are relative to, itself relative to the settings' folder; `$NAME` is an
    environment variable."""
    sources: dict[str, SourceConfig]
    """Name -> one source of raw text; the name becomes a folder of the corpus."""
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    """The tokenizer: trained on the corpus, or taken from a folder."""
    clean: CleanConfig = field(default_factory=CleanConfig)
    """Which records are dropped."""
    duplicates: DuplicatesConfig = field(default_factory=DuplicatesConfig)
    """Which duplicate lines are dropped."""
    exclude: tuple[str, ...] = ()
    """Evaluation files or patterns: lines that occur in them are dropped, and counted by file."""
    exclude_min_bytes: Annotated[int, Range(0, 10**9)] = 10
    """Smallest text of an evaluation file that is looked for: bytes of letters and digits."""
    dropped_folder: str | None = None
    """Folder for all dropped lines with their reasons; relative to where the command runs."""
    heldout_share: Annotated[float, Range(0, 1, below=True)] = 0.01
    """Share of the distinct sentences that are kept out of training."""
    heldout_seed: Seed = 0
    """Random seed of the held-out sentences."""
    shard_tokens: Annotated[int, Range(1, 2**30)] = 4_000_000
    """A new shard begins after about this many tokens."""
    knowledge: KnowledgeSource | None = None
    """Tables of knowledge to link, with `exclude` of the corpus: entities, mentions, facts."""

    def check(self) -> None:
        """Raises for values that are out of range or contradict each other."""
        duplicates = self.duplicates
        for settings in (self, self.tokenizer, duplicates):
            check_ranges(settings)
        require(
            duplicates.scope != "none" or not duplicates.near,
            "duplicates: `near` looks for lines in a scope, and the scope is `none`. Set "
            "`scope: source` or `scope: language`, or leave `near` out.",
        )
        others = self.tokenizer.training_settings()
        require(
            self.tokenizer.folder is None or not others,
            f"tokenizer: `folder` names a tokenizer to use as it is; {' and '.join(others)} "
            "would be for training another. Leave out the one or the other.",
        )
        require(
            self.tokenizer.model != "bpe" or self.tokenizer.character_coverage >= 0.98,
            "tokenizer.character_coverage must be at least 0.98 where `model` is bpe, which "
            "SentencePiece trains. Set it higher, or leave `model` at unigram.",
        )


WORK = ".work"
"""Folder of unfinished work, removed when the corpus is finished."""
_MARKER = ".preparing"
_COOCCURRENCE = "cooccurrence"
_SHOWN = 10
"""Differences that a message names."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePlan:
    """The settings, with every file they name."""

    config: PrepareConfig
    output: Path
    subsets: list[Subset]
    given_tokenizer: Path | None
    """The folder of the tokenizer to use as it is."""
    pretokenizer: Pretokenizer
    excluded: tuple[Path, ...]
    """Evaluation files."""
    inputs: dict[Path, FileEntry]
    hashed: dict[str, str]
    """The hashes of the inputs, for `remember_hashes`."""
    knowledge: tuple[LinkConfig, Path] | None = None
    """How knowledge is linked, and the folder of its tables."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as the manifest keeps them; the store of knowledge keeps its own."""
        settings: dict[str, Any] = json.loads(json.dumps(asdict(self.config)))
        del settings["knowledge"]
        return settings

    def finished_manifest(self, *, overwrite: bool = True) -> Manifest | None:
        """The manifest of the output folder, if it is a complete corpus of this plan.

        Raises:
            CorpusError: it is a complete corpus of other settings or files, not to be overwritten.
        """
        if not (self.output / FILE).is_file():
            return None
        try:
            manifest = Corpus.open(self.output).manifest
        except CorpusError as error:
            _log.warning("%s Preparing it again.", error)
            return None
        different = self._differences(manifest)
        # to write the dropped lines, the same corpus is made again
        if not overwrite and any(not one.startswith("dropped_folder ") for one in different):
            more = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
            raise CorpusError(
                f"{self.output}: is a finished corpus of other settings or files: "
                f"{'; '.join(different[:_SHOWN])}{more}. Add --overwrite to prepare it again in "
                "its place (runs on the old one cannot be resumed then), or choose another --out."
            )
        if different:
            _log.info("%s: settings or inputs have changed. Preparing it again.", self.output)
            return None
        _log.info("%s: is up to date.", self.output)
        _remove_work(self.output)
        return manifest

    def _differences(self, manifest: Manifest) -> list[str]:
        """What differs between the plan and a corpus: settings by their path, files by name."""
        # where dropped lines once went matters only if they are asked for
        ignored = {} if self.config.dropped_folder is not None else {"dropped_folder": None}
        found = list(_differing({**manifest.settings, **ignored}, self.settings))
        files = {entry.file: entry.sha256 for entry in manifest.inputs}
        ours = {entry.file: entry.sha256 for entry in self.inputs.values()}
        for name in sorted(files.keys() | ours.keys()):
            if files.get(name) != ours.get(name):
                how = "is gone" if name not in ours else "changed" if name in files else "is new"
                found.append(f"{name} {how}")
        return found


def _differing(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """A phrase for each setting that differs, with its path: `tokenizer.vocab_size`."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            inner = f"{path}.{name}" if path else name
            if name not in now:
                yield f"{inner} is gone"
            elif name not in before:
                yield f"{inner} is new"
            else:
                yield from _differing(before[name], now[name], inner)
    elif before != now:
        yield f"{path} was {before!r} and is {now!r}"


def make_plan(config: PrepareConfig, base: Path, runner: StageRunner) -> PreparePlan:
    """The plan; paths are relative to `base`, or to the folder that `config.base` names.

    The runner, whose work folder lies in the output folder, hashes the files.
    """
    output = runner.work.parent
    config.check()
    base = _base_folder(config.base, base)
    subsets = find_subsets(config.sources, base)
    given = _given_tokenizer(config, base, output)
    excluded = expand_patterns(config.exclude, base, "exclude") if config.exclude else ()
    sources = {path for subset in subsets for path in subset.files}
    for path in excluded:
        if path in sources:
            raise RecipeError(
                f"exclude: {path} is also a file of a source: all of it would be dropped. "
                "Remove it from one of the two."
            )
    knowledge = _given_knowledge(config, base, excluded)
    methods = config.tokenizer.pretokenize
    pretokenizer = Pretokenizer(methods) if given is None else Pretokenizer.load(given)
    pretokenizer.check()
    paths = sources.union(excluded)
    if given is not None:
        paths.update(path for path in given.iterdir() if path.is_file())
    inputs, hashed = hash_inputs(paths, base, runner)
    return PreparePlan(
        config=config,
        output=output,
        subsets=subsets,
        given_tokenizer=given,
        pretokenizer=pretokenizer,
        excluded=tuple(dict.fromkeys(excluded)),
        inputs=inputs,
        hashed=hashed,
        knowledge=knowledge,
    )


def _given_knowledge(
    config: PrepareConfig, base: Path, excluded: tuple[Path, ...]
) -> tuple[LinkConfig, Path] | None:
    """How knowledge is linked, if the settings name any; its tables are looked at."""
    given = config.knowledge
    if given is None:
        return None
    tables = base / with_home(given.tables)
    ExtractedTables.open(tables, given.languages).check_heldout(
        given.heldout_share, given.heldout_seed
    )
    more = expand_patterns(given.exclude, base, "knowledge.exclude") if given.exclude else ()
    names = tuple(map(str, (*excluded, *more)))
    return given.link_config(exclude=names, exclude_min_bytes=config.exclude_min_bytes), tables


def _base_folder(named: str, base: Path) -> Path:
    """The folder that paths are relative to; $NAME in it is an environment variable."""
    expanded = os.path.expandvars(named)
    if "$" in expanded:
        raise RecipeError(
            f"base: {named!r} names an environment variable that is not set. Set it, or name the "
            "folder with --set base=FOLDER."
        )
    return base / with_home(expanded)


def _given_tokenizer(config: PrepareConfig, base: Path, output: Path) -> Path | None:
    """The folder of the tokenizer to use as it is, if the settings name one."""
    if config.tokenizer.folder is None:
        return None
    folder = tokenizer_folder(config.tokenizer.folder, base)
    if folder.resolve().is_relative_to(output.resolve()):
        raise CorpusError(
            f"{folder}: lies inside the corpus that is to be written. Copy the tokenizer elsewhere "
            "and name the copy in `tokenizer.folder`."
        )
    return folder


def clear_output(output: Path) -> None:
    """Removes an earlier corpus from the folder, but not an interrupted run's finished work."""
    ours = (output / FILE).exists() or (output / _MARKER).exists()
    if not ours and has_files(output):
        raise CorpusError(
            f"{output}: is not empty and is not a prepared corpus. Choose another output folder."
        )
    write_bytes(output / _MARKER, b"")
    with write_errors(output):
        (output / FILE).unlink(missing_ok=True)
        for name in (TOKENIZER_FOLDER, _COOCCURRENCE, INDEX):
            shutil.rmtree(output / name, ignore_errors=True)
        for split in SPLITS:
            for shard in output.glob(f"*/*/{split}-*.arrow*"):
                shard.unlink()
        # deepest first, so that a source's folder is empty when its turn comes
        folders = (path for path in output.glob("[!.]*/**") if path.is_dir())
        for folder in sorted(folders, reverse=True):
            if not any(folder.iterdir()):
                folder.rmdir()


def finish_output(output: Path, manifest: Manifest, moves: dict[Path, Path]) -> None:
    """Moves finished files to their places and writes the manifest, which makes it a corpus."""
    for source, target in moves.items():
        with write_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
    write_manifest(output, manifest)
    _remove_work(output)


def _remove_work(output: Path) -> None:
    shutil.rmtree(output / WORK, ignore_errors=True)
    (output / _MARKER).unlink(missing_ok=True)

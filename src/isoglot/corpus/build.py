"""Prepares a corpus: raw files in, shards of token ids, a tokenizer and a manifest out.

    lay out --> clean (per cell) --> tokenizer --> encode (per cell) --> manifest

A cell is one language of one source. Each stage is one function; the cells of a stage can run in
several processes, and the corpus is the same byte for byte however many there are.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from isoglot.corpus.cells import Cell, SourceConfig, lay_out
from isoglot.corpus.clean import CleanConfig
from isoglot.corpus.cleaned import Cleaned, CleanTask, clean_cell
from isoglot.corpus.corpus import TOKENIZER_FOLDER
from isoglot.corpus.disk import writing
from isoglot.corpus.encode import Encoded, EncodeTask, encode_cell
from isoglot.corpus.engine import run_shards
from isoglot.corpus.heldout import SPLITS
from isoglot.corpus.manifest import FILE, Manifest, TokenizerEntry, file_entry
from isoglot.corpus.output import CLEANED, finish, inputs_of, start_afresh, up_to_date
from isoglot.corpus.pieces import TokenizerConfig, train_tokenizer
from isoglot.corpus.sampling import sample
from isoglot.corpus.summary import summarise
from isoglot.corpus.tokenizer import (
    derive_vocabulary,
    fingerprint_of_tokenizer,
    open_tokenizer,
    save_vocabulary,
)
from isoglot.errors import CorpusError, RecipeError

if TYPE_CHECKING:
    from collections.abc import Iterator

Result = TypeVar("Result")


class Progress(Protocol):
    """Told how far a stage is; `total` is None where it is not known."""

    def __call__(self, stage: str, done: int, total: int | None, /) -> None:
        """`done` of `total` bytes (or steps) of this stage are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareConfig:
    """What a corpus is made of."""

    sources: dict[str, SourceConfig]
    """Name -> one source of raw text; the name becomes a folder of the corpus."""
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    """The tokenizer: trained on the corpus, or taken from a folder."""
    clean: CleanConfig = field(default_factory=CleanConfig)
    """Which records are dropped."""
    heldout_share: float = 0.01
    """Share of the distinct sentences that are kept out of training."""
    heldout_seed: int = 0
    """Which sentences are held out."""
    shard_tokens: int = 4_000_000
    """A new shard begins after about this many tokens."""


def prepare(
    config: PrepareConfig,
    output: Path | str,
    *,
    base: Path | str = ".",
    workers: int = 1,
    progress: Progress | None = None,
) -> Manifest:
    """Prepares a corpus in the folder `output`, unless it is there already, whole and up to date.

    Paths in the settings are relative to `base`. What an interrupted run left is cleared away; a
    corpus of other settings or inputs is replaced.
    """
    output, base, report = Path(output), Path(base), progress or _silent
    _check(config)
    cells = lay_out(config.sources, base)
    given = _given_tokenizer(config.tokenizer, base, output)
    inputs, settings = inputs_of(cells, given, base), _plain(config)
    present = up_to_date(output, settings, inputs)
    if present is not None:
        report("up to date", 1, 1)
        return present
    start_afresh(output)
    cleaned = _clean(config, cells, output, workers, report)
    report("tokenizer", 0, 1)
    tokenizer, forbidden = _make_tokenizer(config.tokenizer, given, cleaned, output)
    report("tokenizer", 1, 1)
    tasks = [
        EncodeTask(
            cleaned=cell,
            corpus=output,
            tokenizer=output / TOKENIZER_FOLDER,
            trained_here=given is None,
            forbidden=forbidden,
            shard_tokens=config.shard_tokens,
        )
        for cell in cleaned
    ]
    encoded = _encode(tasks, workers, report)
    manifest = summarise(cleaned, encoded, tokenizer=tokenizer, settings=settings, inputs=inputs)
    finish(output, manifest)
    return manifest


def is_prepared(config: PrepareConfig, output: Path, *, base: Path) -> bool:
    """Would `prepare` find nothing to do?"""
    if not (output / FILE).is_file():
        return False
    cells = lay_out(config.sources, base)
    inputs = inputs_of(cells, _given_tokenizer(config.tokenizer, base, output), base)
    return up_to_date(output, _plain(config), inputs) is not None


def _plain(config: PrepareConfig) -> dict[str, Any]:
    """Settings as the manifest keeps them."""
    settings: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    return settings


def _silent(stage: str, done: int, total: int | None) -> None:
    """Progress nobody asked for."""


def _check(config: PrepareConfig) -> None:
    """Refuses numbers that make no corpus."""
    if not 0 <= config.heldout_share < 1:
        raise RecipeError(f"heldout_share: {config.heldout_share} is not from 0 to below 1.")
    if not 0 < config.shard_tokens <= 2**30:
        raise RecipeError(f"shard_tokens: {config.shard_tokens} is not from 1 to 2^30.")


def _given_tokenizer(config: TokenizerConfig, base: Path, output: Path) -> Path | None:
    """The folder of the tokenizer to take as it is, if the settings name one."""
    if config.folder is None:
        return None
    folder = base / Path(config.folder).expanduser()
    if folder.resolve().is_relative_to(output.resolve()):
        raise CorpusError(
            f"{folder}: lies inside the corpus that is to be written. Copy the tokenizer elsewhere "
            "and name the copy in `tokenizer.folder`."
        )
    if not folder.is_dir():
        raise CorpusError(f"tokenizer.folder: there is no folder {folder}.")
    return folder


def _clean(
    config: PrepareConfig, cells: list[Cell], output: Path, workers: int, report: Progress
) -> list[Cleaned]:
    """Cleans and splits the text of every cell."""
    tasks = [
        CleanTask(
            cell=cell,
            folder=output / CLEANED / cell.folder,
            config=config.clean,
            heldout_share=config.heldout_share,
            heldout_seed=config.heldout_seed,
        )
        for cell in cells
    ]
    sizes = [sum(path.stat().st_size for path in cell.files) for cell in cells]
    cleaned = _watch("clean", run_shards(clean_cell, tasks, workers), sizes, report)
    if not any(result.rows["train"] for result in cleaned):
        reasons = sum((Counter(result.dropped) for result in cleaned), Counter())
        told = ", ".join(f"{reason}: {number}" for reason, number in reasons.most_common())
        raise CorpusError(f"No line was kept for training ({told or 'the files are empty'}).")
    return cleaned


def _make_tokenizer(
    config: TokenizerConfig, given: Path | None, cleaned: list[Cleaned], output: Path
) -> tuple[TokenizerEntry, tuple[int, ...]]:
    """Trains or copies the tokenizer; also the special ids that no text may hold."""
    folder = output / TOKENIZER_FOLDER
    if given is None:
        sentences = sample(
            cleaned, alpha=config.alpha, limit=config.max_sentences, seed=config.seed
        )
        train_tokenizer(sentences, config, folder)
    else:
        with writing(folder):
            open_tokenizer(given).save_pretrained(str(folder))
    tokenizer = open_tokenizer(folder)
    vocabulary = derive_vocabulary(tokenizer, given or folder)
    save_vocabulary(folder, vocabulary)
    entry = TokenizerEntry(
        fingerprint=fingerprint_of_tokenizer(tokenizer, vocabulary),
        size=vocabulary.size,
        files=tuple(
            file_entry(path, f"{TOKENIZER_FOLDER}/{path.name}") for path in sorted(folder.iterdir())
        ),
    )
    unknown = tokenizer.unk_token_id
    return entry, tuple(index for index in vocabulary.special if index != unknown)


def _encode(tasks: list[EncodeTask], workers: int, report: Progress) -> list[Encoded]:
    """Writes the shards of every cell."""
    sizes = [sum(task.cleaned.path(split).stat().st_size for split in SPLITS) for task in tasks]
    return _watch("encode", run_shards(encode_cell, tasks, workers), sizes, report)


def _watch(
    stage: str, results: Iterator[Result], sizes: list[int], report: Progress
) -> list[Result]:
    """All results of a stage, with a report of the bytes done after each."""
    done, total = 0, sum(sizes)
    report(stage, done, total)
    collected = []
    for result, size in zip(results, sizes, strict=True):
        collected.append(result)
        done += size
        report(stage, done, total)
    return collected

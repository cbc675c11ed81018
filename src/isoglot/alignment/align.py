"""`isoglot.align`: the links between the words of translations, in order, a block at a time.

While a block is on the device, a thread reads and tokenizes the next one. Pharaoh format has a line
for each pair with its links `i-j`, words counted from 0.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.alignment.aligner import Block, Link, WordAligner, Words
from isoglot.alignment.config import AlignConfig
from isoglot.alignment.pair_files import PairFiles
from isoglot.argument_names import public
from isoglot.evaluation.loading import load_for_scoring
from isoglot.folders import model_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Note = Callable[[str], None]
    Sentence = str | Sequence[str]
    Pairs = str | Path | Iterable[tuple[Sentence, Sentence]]

_BLOCK_PAIRS = 1024
_BLOCK_WORDS = 40_000


@public
def align(
    pairs: Pairs,
    model: str | Path,
    *,
    config: AlignConfig | None = None,
    languages: tuple[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
    note: Note | None = None,
) -> Iterator[list[Link]]:
    """The links between the words of each pair, in the order of the pairs.

        for links in isoglot.align("en-de.tsv", "bert-base-multilingual-cased"):
            print(links)  # [(0, 0), (1, 2)]

    Args:
        pairs: a file of pairs (two columns of a TSV, or `first ||| second`), or an iterable of
            pairs. A sentence is a text, whose words have spaces between them, or a list of words.
        model: a Hugging Face folder of an encoder, a run (`runs/NAME`) or a name on the hub.
        config: the aligner, the layer and others.
        languages: those of the two sides, for models that have language embeddings; none: those in
            the file's name.
        progress: called with the number of pairs that are done.
        note: called with sentences about the model and about pairs that are cut.

    Returns:
        An iterator: pairs are read, and links computed, as it advances.
    """
    config = config or AlignConfig()
    if isinstance(pairs, str | Path):
        files = PairFiles([Path(pairs)], note=note)
        languages = languages or files.languages()
        pairs = files
    aligner = load_aligner(model, config, languages=languages, note=note)
    return _links(aligner, pairs, progress, note)


def _links(
    aligner: WordAligner,
    pairs: Iterable[tuple[Sentence, Sentence]],
    progress: Callable[[int], None] | None,
    note: Note | None,
) -> Iterator[list[Link]]:
    done = num_cut = 0
    for block in aligned_blocks(aligner, map(split_words, pairs)):
        yield from block.links
        done += len(block.pairs)
        num_cut += block.num_cut
        if progress is not None:
            progress(done)
    if num_cut and note is not None:
        note(cut_note(num_cut, done))


def load_aligner(
    model: str | Path,
    config: AlignConfig,
    *,
    languages: tuple[str, str] | None = None,
    note: Note | None = None,
) -> WordAligner:
    """A word aligner with the model of a folder, on the GPU if there is one."""
    folder = model_folder(model)
    encoder, tokenizer = load_for_scoring(
        folder, language_embeddings=config.language_embeddings, note=note
    )
    return WordAligner(encoder, tokenizer, config, languages=languages, note=note)


def split_words(pair: tuple[Sentence, Sentence]) -> Words:
    """The words of both sides: those between spaces, or those that are given."""
    first, second = (side.split() if isinstance(side, str) else list(side) for side in pair)
    return first, second


def cut_note(num_cut: int, total: int) -> str:
    """A sentence about pairs that are longer than the model's positions."""
    return (
        f"{num_cut:,} of {total:,} pairs are longer than the model's positions: they are cut "
        "there, and words beyond have no link."
    )


@dataclass(frozen=True, slots=True)
class AlignedBlock:
    """Some pairs with their links."""

    pairs: list[Words]
    links: list[list[Link]]
    num_cut: int
    """Pairs that are longer than the model's positions."""


def aligned_blocks(aligner: WordAligner, pairs: Iterable[Words]) -> Iterator[AlignedBlock]:
    """The pairs in order with their links, a block at a time."""
    blocks = _blocks(pairs)

    def prepare_next() -> tuple[list[Words], Block] | None:
        block = next(blocks, None)
        return None if block is None else (block, aligner.prepare(block))

    with ThreadPoolExecutor(1, thread_name_prefix="align") as thread:
        ahead = thread.submit(prepare_next)
        while (found := ahead.result()) is not None:
            ahead = thread.submit(prepare_next)
            block, tokens = found
            yield AlignedBlock(block, aligner.links(tokens), tokens.num_cut)


def _blocks(pairs: Iterable[Words]) -> Iterator[list[Words]]:
    block: list[Words] = []
    words = 0
    for pair in pairs:
        block.append(pair)
        words += len(pair[0]) + len(pair[1])
        if len(block) == _BLOCK_PAIRS or words >= _BLOCK_WORDS:
            yield block
            block, words = [], 0
    if block:
        yield block


def pharaoh(links: Sequence[Link]) -> str:
    """A line in Pharaoh format, without its end: `0-0 1-2`."""
    return " ".join([f"{i}-{j}" for i, j in links])

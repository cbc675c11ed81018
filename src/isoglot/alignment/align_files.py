"""Files of pairs to a file of links: reading, splitting into words, writing, scoring.

The output has a line for each line of the input, in its order. Files are replaced when all is done,
so an interrupted command leaves none half written.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from isoglot.alignment.align import (
    aligned_blocks,
    cut_note,
    load_aligner,
    pharaoh,
    split_words,
)
from isoglot.alignment.pair_files import BARS, PairFiles
from isoglot.atomic import replace_file
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import IsoglotError
from isoglot.languages import canonical, plain_code
from isoglot.locks import lock_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isoglot.alignment.align import Note
    from isoglot.alignment.aligner import Words
    from isoglot.alignment.config import AlignConfig
    from isoglot.alignment.gold import GoldLinks
    from isoglot.corpus.tokenization.pretokenization import Method

_INDIC = {"as", "bn", "gu", "hi", "kn", "ml", "mr", "ne", "or", "pa", "sa", "ta", "te"}
WITHOUT_RULES = {"ja", "km", "lo", "my"}
"""Languages that write no spaces, and whose words there are no rules for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignSummary:
    """What was aligned."""

    num_pairs: int
    num_links: int
    layer: int
    seconds: float
    """Without loading the model."""


def align_files(
    files: Sequence[Path],
    model: str | Path,
    out: Path | BinaryIO,
    config: AlignConfig,
    *,
    languages: tuple[str, str] | None = None,
    pretokenize: Sequence[str] = (),
    words: Path | None = None,
    gold: GoldLinks | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
    note: Note | None = None,
) -> AlignSummary:
    """Write the links of each pair in Pharaoh format.

    Args:
        files: a file of pairs, or two parallel files.
        model: a Hugging Face folder of an encoder, a run or a name on the hub.
        out: file, or stream, for the links.
        config: the aligner, the layer and others.
        languages: those of the two sides; none: those in the files' names.
        pretokenize: languages whose text is split into words by rules, not at spaces alone.
        words: file for the words that the links count, `first ||| second`.
        gold: compared with the links.
        progress: called with (stage, pairs done, pairs).
        note: called with sentences about the model and about lines.
    """
    pairs = PairFiles(files, note=note)
    languages = languages or pairs.languages()
    split = _word_splitter(languages, pretokenize)
    done = num_links = num_cut = 0
    with ExitStack() as stack:
        stream = _output(stack, out)
        words_stream = None if words is None else _output(stack, words)
        aligner = load_aligner(model, config, languages=languages, note=note)
        total = pairs.num_lines()
        if progress is not None:
            progress("align", 0, total)
        started = time.monotonic()
        for block in aligned_blocks(aligner, map(split, pairs)):
            lines = "".join([f"{pharaoh(links)}\n" for links in block.links])
            stream.write(lines.encode())
            if words_stream is not None:
                words_stream.write(_as_text(block.pairs))
            for pair, links in zip(block.pairs, block.links, strict=True):
                num_links += len(links)
                if gold is not None:
                    gold.add(pair, links)
            done += len(block.pairs)
            num_cut += block.num_cut
            if progress is not None:
                progress("align", done, total if total is None else max(total, done))
        stream.flush()
    if note is not None:
        if num_cut:
            note(cut_note(num_cut, done))
        for reason, number in pairs.faults.items():
            note(f"{number:,} of {done:,} lines ({reason}) are no pair, and have no links.")
    seconds = time.monotonic() - started
    return AlignSummary(num_pairs=done, num_links=num_links, layer=aligner.layer, seconds=seconds)


def _output(stack: ExitStack, out: Path | BinaryIO) -> BinaryIO:
    if not isinstance(out, Path):
        return out
    stack.enter_context(lock_file(out))
    return stack.enter_context(stack.enter_context(replace_file(out)).open("wb"))


def _as_text(pairs: Sequence[Words]) -> bytes:
    lines = [f"{' '.join(first)} {BARS} {' '.join(second)}\n" for first, second in pairs]
    return "".join(lines).encode()


def _word_splitter(
    languages: tuple[str, str] | None, pretokenize: Sequence[str]
) -> Callable[[tuple[str, str]], Words]:
    """A function from a pair of texts to their words."""
    if not pretokenize:
        return split_words
    if languages is None:
        raise IsoglotError("--pretokenize: say the languages of the two sides, --languages en,zh.")
    methods: dict[str, Method] = {}
    for code in map(canonical, pretokenize):
        if code not in languages:
            raise IsoglotError(
                f"--pretokenize {code}: the sides are in {' and '.join(languages)}. Name one of "
                "them, or both."
            )
        if plain_code(code) in WITHOUT_RULES:
            raise IsoglotError(
                f"--pretokenize {code}: there are no rules for words of {code}. Put spaces between "
                "the words with a tool for that language first."
            )
        methods[code] = word_method(code)
    pretokenizer = Pretokenizer(methods)
    pretokenizer.check()

    codes = languages

    def split(pair: tuple[str, str]) -> Words:
        first, second = map(pretokenizer.apply, pair, codes)
        return first.split(), second.split()

    return split


def word_method(language: str) -> Method:
    """How `--pretokenize` splits text of a language into words."""
    match code := plain_code(language):
        case "zh":
            return "zh"
        case "th":
            return "thai"
        case _:
            return "indic" if code in _INDIC else "moses"

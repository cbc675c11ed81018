"""Unigram training beside SentencePiece's own trainer: processor seconds, tokens, unknown bytes.

    python -m benchmarks.prepare.unigram WORK [--data DATA] [--megabytes 10] [--sizes 32000 8000]

Both train on nine lines of ten of the same paragraphs of all languages; the tenth is encoded.
Tokens are counted per word, in Chinese, Japanese and Thai per character. A byte token is a part of
a character without a piece.
"""

from __future__ import annotations

import argparse
import io
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import sentencepiece
from benchmarks.prepare.folders import write_paragraphs

from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.corpus.tokenization.sentencepiece import train_sentencepiece
from isoglot.corpus.tokenization.word_counts import count_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NO_SPACES = ("ja", "th", "zh")
HELD_OUT = 10
"""Every so many lines one is held out."""


def by_sentencepiece(sentences: Sequence[str], size: int) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        vocab_size=size - 1,
        character_coverage=0.9995,
        byte_fallback=True,
        normalization_rule_name="identity",
        max_sentence_length=1 << 20,
        bos_id=0,
        pad_id=1,
        eos_id=2,
        unk_id=3,
        num_threads=4,
        minloglevel=2,
    )
    return model.getvalue()


def by_isoglot(sentences: Sequence[str], size: int) -> bytes:
    return train_sentencepiece(count_words(sentences), TokenizerConfig(vocab_size=size))


TRAINERS: dict[str, Callable[[Sequence[str], int], bytes]] = {
    "SentencePiece": by_sentencepiece,
    "Isoglot": by_isoglot,
}


def encoded(model: bytes, texts: Mapping[str, Sequence[str]]) -> dict[str, tuple[float, float]]:
    """Language -> tokens per word or character, share of bytes among the tokens."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    found = {}
    for language, lines in texts.items():
        ids = [one for row in processor.encode(list(lines)) for one in row]
        words = sum(len(line if language in NO_SPACES else line.split()) for line in lines)
        found[language] = len(ids) / words, sum(map(processor.is_byte, ids)) / len(ids)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Unigram training beside SentencePiece's.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32_000, 8_000])
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    write_paragraphs(given.data, given.work / "raw", given.megabytes)
    training: list[str] = []
    held_out: dict[str, list[str]] = {}
    for path in sorted((given.work / "raw").glob("*.txt")):
        lines = path.read_text("utf-8").splitlines()
        held_out[path.stem] = lines[::HELD_OUT]
        training += [line for number, line in enumerate(lines) if number % HELD_OUT]
    by_isoglot(training[:100], 600)  # loads compiled code
    for size in given.sizes:
        results = {}
        for name, train in TRAINERS.items():
            started = time.process_time()
            model = train(training, size)
            seconds = time.process_time() - started
            results[name] = encoded(model, held_out)
            print(f"{name}, {size:,} ids: {seconds:.1f} CPU s", flush=True)
        print("| | SentencePiece | Isoglot | change | bytes, % |\n|---|--:|--:|--:|--:|")
        for language in held_out:
            (theirs, bytes_before), (own, bytes_now) = (
                found[language] for found in results.values()
            )
            print(
                f"| {language} | {theirs:.3f} | {own:.3f} | {own / theirs - 1:+.1%} | "
                f"{bytes_before:.2%}, {bytes_now:.2%} |"
            )


if __name__ == "__main__":
    main()

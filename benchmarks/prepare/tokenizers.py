"""How fast tokenizers are trained and encode: unigram, BPE and words on the same text.

    python -m benchmarks.prepare.tokenizers WORK [--data DATA] [--sentences 50000] [--size 16000]

Text is that of `memory.py`, in six languages. Encoding is by SentencePiece where it trained the
tokenizer, and by the tokenizers library, as for any tokenizer that is taken from a folder.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import islice
from pathlib import Path

from benchmarks.prepare.memory import LANGUAGES, lines_of

from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.tokenization.build import TokenizerConfig, train_tokenizer
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from isoglot.corpus.tokenization.sentencepiece import SentencePieceEncoder


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of tokenizers.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--sentences", type=int, default=50_000)
    parser.add_argument("--size", type=int, default=16_000)
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    each = given.sentences // len(LANGUAGES)
    texts = [
        normalize_text(line)
        for name in LANGUAGES
        for line in islice(lines_of(given.data, name), each)
    ]
    size = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{len(texts):,} lines, {size:.1f} MB, {given.size:,} ids")
    for model in ("unigram", "bpe", "word"):
        folder = given.work / model
        started = time.process_time()
        train_tokenizer(texts, TokenizerConfig(model=model, vocab_size=given.size), folder)
        print(f"{model}: trained in {time.process_time() - started:.1f} CPU s", flush=True)
        for encoder in (HFEncoder, SentencePieceEncoder) if model != "word" else (HFEncoder,):
            opened = encoder(folder)
            started = time.process_time()
            tokens = sum(
                len(opened.encode(texts[i : i + 4096])[0]) for i in range(0, len(texts), 4096)
            )
            seconds = time.process_time() - started
            print(f"  {encoder.__name__}: {size / seconds:.1f} MB/s, {tokens:,} tokens", flush=True)


if __name__ == "__main__":
    main()

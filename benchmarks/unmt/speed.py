"""How fast translations are written, beside transformers' `generate` on the same batches.

    python -m benchmarks.unmt.speed MODEL FILE --from en --to es [--rounds 5]

`generate` is given the very batches that the translator makes: the same sentences, padded alike,
the same first token, the same limit. Rounds alternate; the medians are what to quote.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM
from transformers.utils import logging

from isoglot.models.seq2seq import Seq2Seq
from isoglot.models.translator import Translator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", dest="target", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    translator = Translator.open(arguments.model)
    device = next(translator.seq2seq.parameters()).device
    plain = AutoModelForSeq2SeqLM.from_pretrained(arguments.model).eval().to(device)
    lines = arguments.file.read_text(encoding="utf-8").splitlines()
    batches = batches_of(translator, lines, arguments.source, arguments.target)
    times: dict[str, list[float]] = {"translator": [], "generate": []}
    for _ in range(arguments.rounds + 1):
        started = time.perf_counter()
        written = sum(1 for _ in translator.translate(lines, arguments.source, arguments.target))
        times["translator"].append(time.perf_counter() - started)
        started = time.perf_counter()
        for batch in batches:
            plain.generate(**batch)
        times["generate"].append(time.perf_counter() - started)
    ours, theirs = (statistics.median(found[1:]) for found in times.values())
    print(f"{written} sentences, {len(batches)} batches, {device}")
    share = 100 * theirs / ours
    print(f"translator {ours:.2f} s, generate {theirs:.2f} s: {share:.0f} % of its speed")


def batches_of(
    translator: Translator, lines: list[str], source: str, target: str
) -> list[dict[str, Any]]:
    """What `generate` is to be given: the translator's own batches."""
    found: list[dict[str, Any]] = []
    usual = Seq2Seq.generate

    def noting(seq2seq, rows, languages, settings):
        there = rows.sequences >= 0
        limit = int(settings.max_lengths(there.sum(dim=1) - 2).max())
        first = translator.seq2seq.vocabulary.language_token(int(languages[0]))
        found.append(
            {
                "input_ids": rows.ids,
                "attention_mask": there.long(),
                "decoder_start_token_id": first,
                "max_length": 1 + limit,
                "num_beams": 1,
                "do_sample": False,
                "suppress_tokens": seq2seq.suppress_tokens,
            }
        )
        return usual(seq2seq, rows, languages, settings)

    Seq2Seq.generate = noting
    try:
        for _ in translator.translate(lines, source, target):
            pass
    finally:
        Seq2Seq.generate = usual
    return found


if __name__ == "__main__":
    main()

"""Sentence pairs a second of `isoglot align` beside simalign, on one model, with the same links?

    python -m benchmarks.align DATA [--number 2000] [--theirs 200] [--model FOLDER] [--layer 8]

DATA is the folder of real data that tests read (ISOGLOT_DATA): pairs are Multi30k's captions in
English and German and the verses of two Bibles. Without --model, a BERT of base size with random
weights is made, with mBERT's vocabulary. Runs on the GPU if there is one, both sides alike, in
float32; on a GPU also in bfloat16. simalign aligns one pair at a time and gets fewer pairs; its
speed does not depend on their number. Prints a table and the number of pairs whose links differ.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from isoglot.alignment.align import aligned_blocks, load_aligner, split_words
from isoglot.alignment.config import AlignConfig
from isoglot.cli.console import print_table

if TYPE_CHECKING:
    from isoglot.alignment.aligner import Link

Pair = tuple[str, str]
METHODS = {"argmax": "inter", "itermax": "itermax"}
"""Our name of an aligner -> simalign's."""


def read_pairs(data: Path, number: int) -> list[Pair]:
    """Half of the pairs captions (10 words), half verses (25 words)."""
    captions = [data / f"parallel/multi30k/train.{code}.txt.xz" for code in ("en", "de")]
    verses = [data / f"parallel/bible/{name}.tsv.xz" for name in ("en-web", "de")]
    sides = [_lines(file) for file in captions]
    by_verse = [dict(line.split("\t", 1) for line in _lines(file)) for file in verses]
    common = [verse for verse in by_verse[0] if verse in by_verse[1]][: number // 2]
    pairs = [(by_verse[0][verse], by_verse[1][verse]) for verse in common]
    return [*zip(*sides, strict=True)][: number - len(pairs)] + pairs


def _lines(file: Path) -> list[str]:
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        return stream.read().splitlines()


def make_model(data: Path, folder: Path, **shape: int) -> Path:
    """A BERT, of base size unless `shape` says else, with random weights and mBERT's vocabulary."""
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    words = _lines(data / "tokenizer/mbert-tydiqa-vocab.txt.xz")
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=False)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **shape)).save_pretrained(folder)
    return folder


def time_ours(
    folder: Path, pairs: list[Pair], config: AlignConfig
) -> tuple[float, list[list[Link]]]:
    """Pairs a second, and the links."""
    aligner = load_aligner(folder, config)
    words = [split_words(pair) for pair in pairs]
    list(aligned_blocks(aligner, words[:64]))  # the first kernels of a shape are slow
    started = time.perf_counter()
    found = [links for block in aligned_blocks(aligner, words) for links in block.links]
    return len(pairs) / (time.perf_counter() - started), found


def time_theirs(
    folder: Path, pairs: list[Pair], layer: int, device: str
) -> tuple[float, list[dict[str, Any]]]:
    """Pairs a second of simalign, and its links by method."""
    import simalign

    aligner = simalign.SentenceAligner(
        model=str(folder), matching_methods="ai", layer=layer, device=device
    )
    for first, second in pairs[:3]:
        aligner.get_word_aligns(first, second)
    started = time.perf_counter()
    found = [aligner.get_word_aligns(first, second) for first, second in pairs]
    return len(pairs) / (time.perf_counter() - started), found


def main() -> None:
    parser = argparse.ArgumentParser(description="Word alignment: speed and links.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--number", type=int, default=2000, help="pairs for Isoglot")
    parser.add_argument("--theirs", type=int, default=200, help="pairs for simalign")
    parser.add_argument("--model", type=Path, help="a BERT or XLM-R folder")
    parser.add_argument("--layer", type=int, default=8)
    parser.add_argument("--out", type=Path, help="JSON file of the table")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pairs = read_pairs(given.data, given.number)
    # evenly spaced, so that both align sentences of the same lengths
    sample = list(range(0, len(pairs), max(1, len(pairs) // given.theirs)))[: given.theirs]
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.model or make_model(given.data, Path(temporary))
        speed, theirs = time_theirs(folder, [pairs[n] for n in sample], given.layer, device)
        rows = [["simalign 0.4: both at once", "float32", f"{speed:,.1f}", "1.0", ""]]
        kinds = ("float32", "bfloat16") if device == "cuda" else ("float32",)
        for aligner, method in METHODS.items():
            for kind in kinds:
                config = AlignConfig(layer=given.layer)
                config = replace(config, aligner=aligner, encode_type=kind)  # type: ignore[arg-type]
                ours, links = time_ours(folder, pairs, config)
                differing = sum(
                    links[n] != one[method] for n, one in zip(sample, theirs, strict=True)
                )
                said = f"{differing} of {len(sample)}"
                rows.append(
                    [f"isoglot: {aligner}", kind, f"{ours:,.1f}", f"{ours / speed:.1f}", said]
                )
    where = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} cores"
    print(f"{len(pairs):,} pairs, {len(sample)} for simalign; layer {given.layer}; {where}")
    headings = ["aligner", "type", "pairs/s", "times as fast", "pairs with other links"]
    print_table(headings, rows, markdown=True)
    if given.out:
        found = [dict(zip(headings, row, strict=True)) for row in rows]
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

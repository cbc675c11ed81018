"""Has anything become slower? Ratios to other libraries, compared with those of a stored file.

    python -m benchmarks.guard             measure and compare with benchmarks/guard.json
    python -m benchmarks.guard --write     measure and store the ratios

Every number is the speed of Isoglot divided by that of another library in the same run, with the
same model and text, so that it depends little on the machine:

    rows, pairs    training tokens/s, beside transformers' Trainer with its best flags
    embed          sentence vectors a second, beside sentence-transformers' `encode`
    tokenize       bytes a second in one process, beside the `tokenizers` library

The model is tiny and the text generated. Each side of a ratio is measured two or three times, in
turn, and its best time counts. Takes 90 seconds on two cores; nothing else should run there, since
other work changes the ratios. The exit code is 1 if a ratio is below `SHARE` of the stored one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from benchmarks.race import machine
from benchmarks.race.run import make_model, run_one
from isoglot.cli.console import print_table
from isoglot.corpus import Corpus
from isoglot.demo.testbed_corpus import named_corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STORED = Path(__file__).with_suffix(".json")
SHARE = 0.7
"""A ratio below this share of the stored one is a fault; repetitions on one machine differ less."""
TIMES = 3
SENTENCES = 3000
SHAPE = {"rows": 8, "row_length": 128, "micro_rows": 8, "steps": 12, "warm_up": 3, "workers": 0}


def training_ratio(kind: str, model: Path, corpus: Path) -> float:
    """Tokens/s of `rows` or `pairs` beside the Trainer's; each in a process of its own."""
    given = Namespace(corpus=corpus, set=[], profile=False, **SHAPE)
    speeds: dict[str, list[float]] = {"Isoglot": [], "Trainer, best flags": []}
    for _, name in itertools.product(range(TIMES - 1), speeds):
        found = run_one(f"{kind}: {name}", model, given)
        if "error" in found:
            raise SystemExit(f"{kind}: {name} ends with an error: {found['error']}")
        speeds[name].append(found["tokens_per_second"])
    ours, theirs = map(max, speeds.values())
    return ours / theirs


def embedding_ratio(model: Path, sentences: Sequence[str]) -> float:
    """Vectors a second of the last layer's mean state."""
    from sentence_transformers import SentenceTransformer
    from transformers import AutoTokenizer

    from isoglot.evaluation.embed import embed
    from isoglot.evaluation.loading import load_encoder

    encoder, tokenizer = load_encoder(model), AutoTokenizer.from_pretrained(model)
    device = "cuda" if machine.on_gpu() else "cpu"
    encoder = encoder.to(device)
    other = SentenceTransformer(str(model), device=device)  # with the mean of the last states
    return faster(
        lambda: embed(encoder, tokenizer, sentences, layers=[-1]),
        lambda: other.encode(list(sentences), show_progress_bar=False),
    )


def tokenizing_ratio(corpus: Corpus, sentences: Sequence[str]) -> float:
    """Ids of the sentences, beside those of the library in one thread."""
    from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
    from isoglot.corpus.tokenization.unigram import UnigramEncoder

    ours, theirs = (kind(corpus.tokenizer_folder) for kind in (UnigramEncoder, HFEncoder))
    many = [*sentences] * 4
    if any((a != b).any() for a, b in zip(ours.encode(many), theirs.encode(many), strict=True)):
        raise SystemExit("tokenize: the ids of the two differ")
    return faster(lambda: ours.encode(many), lambda: theirs.encode(many))


def faster(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """How many times as fast; both run once before they are timed."""
    best = {ours: float("inf"), theirs: float("inf")}
    for turn, do in itertools.product(range(TIMES + 1), best):
        began = time.perf_counter()
        do()
        machine.synchronize()
        if turn:
            best[do] = min(best[do], time.perf_counter() - began)
    return best[theirs] / best[ours]


def measure() -> dict[str, float]:
    """All ratios."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        corpus = named_corpus("testbed-en-es", work / "testbed", Console(quiet=True))
        opened = Corpus.open(corpus)
        size = opened.vocabulary.size
        shape = Namespace(corpus=corpus, size="tiny", vocabulary=size, row_length=128)
        make_model(work / "model", shape)
        sentences = read_sentences(work)
        return {
            "rows": training_ratio("rows", work / "model", corpus),
            "pairs": training_ratio("pairs", work / "model", corpus),
            "embed": embedding_ratio(work / "model", sentences),
            "tokenize": tokenizing_ratio(opened, sentences),
        }


def read_sentences(work: Path) -> list[str]:
    """Sentences of the testbed, as text."""
    from isoglot.testbed import write_raw_files

    write_raw_files(work / "raw", languages=("en", "es"), num_sentences=SENTENCES, num_pairs=1)
    files = [work / "raw" / "text" / f"{code}.txt" for code in ("en", "es")]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line][:SENTENCES]


def slower(found: dict[str, float], stored: dict[str, float]) -> list[str]:
    """What is slower than it was, in sentences."""
    return [
        f"{name}: {found[name]:.2f} times as fast as the other library, {ratio:.2f} before."
        for name, ratio in stored.items()
        if found[name] < SHARE * ratio
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the ratios, compare nothing")
    given = parser.parse_args()
    kind = "cuda" if machine.on_gpu() else "cpu"
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.is_file() else {}
    began = time.perf_counter()
    found = measure()
    before = {} if given.write else stored.get(kind, {}).get("ratios", {})
    rows = [
        [name, f"{x:.2f}", f"{before[name]:.2f}" if before else ""] for name, x in found.items()
    ]
    print_table(["times as fast", "now", "stored"], rows, markdown=True)
    print(f"{machine.name()}, {time.perf_counter() - began:.0f} s")
    if given.write:
        rounded = {name: round(ratio, 3) for name, ratio in found.items()}
        stored[kind] = {"machine": machine.name(), "ratios": rounded}
        STORED.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")
    if faults := slower(found, before):
        sys.exit("Slower than before:\n" + "\n".join(faults))


if __name__ == "__main__":
    main()

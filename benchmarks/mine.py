"""`isoglot mine` beside sentence-transformers and FAISS: the same model, sentences and margin.

    python -m benchmarks.mine --model runs/mine/model --data DATA --num 100000

DATA is the folder of real data that tests read (ISOGLOT_DATA); of it, files of the Tatoeba
Challenge (`lang1 TAB lang2 TAB text1 TAB text2`, .xz). Without --model, a BERT of --shape (tiny: 2
layers × 128, small, base) with random weights and mBERT's vocabulary is made; with the tiny one the
search takes most of the time. The first `--num` different sentences of each language are mined. The
other side follows the bitext mining example of sentence-transformers: `encode`, an exact
inner-product index of FAISS for each direction (without FAISS: `util.semantic_search`), ratio
margins, both directions, each sentence once. Encoding and search are timed apart and in turns.
Ratios are of CPU seconds (of all threads), which say the same on a busy machine; with a GPU they
are of seconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import lzma
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.align import make_model
from benchmarks.race import machine
from benchmarks.race_tasks import SHAPES
from isoglot.evaluation.mining_strategies import propose_pairs
from isoglot.mining.faiss_search import search_faiss
from isoglot.mining.search import search_exact
from isoglot.mining.sentences import read_sentences
from isoglot.mining.vectors import SentenceEncoder, VectorFile
from isoglot.models.encoder import position_range

K = 4
Pairs = dict[tuple[int, int], float]
"""Indices of both sides -> margin."""


def sentences(data: Path, languages: list[str], num: int) -> tuple[list[list[str]], set[Any]]:
    """Different sentences of each language, those of their common files first; and gold pairs."""
    found: list[dict[str, None]] = [{}, {}]
    gold: set[tuple[str, str]] = set()
    names = set(languages)
    files = sorted(data.glob("*.tsv.xz"), key=lambda f: not names <= set(f.name[:7].split("-")))
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8") as stream:
            for line in stream:
                codes, texts = (
                    line.rstrip("\n").split("\t")[:2],
                    line.rstrip("\n").split("\t")[2:],
                )
                named = {c.split("_")[0]: t.strip() for c, t in zip(codes, texts, strict=False)}
                for side, code in zip(found, languages, strict=True):
                    if named.get(code) and len(side) < num:
                        side[named[code]] = None
                if names <= set(named):
                    gold.add(tuple(named[code] for code in languages))
    sides = [list(side) for side in found]
    kept = [set(side) for side in sides]
    return sides, {pair for pair in gold if pair[0] in kept[0] and pair[1] in kept[1]}


def timed(name: str, seconds: dict[str, float], work: Any) -> Any:
    began = time.perf_counter(), time.process_time()
    result = work()
    machine.synchronize()
    cpu, wall = time.process_time() - began[1], time.perf_counter() - began[0]
    seconds[name] = wall if machine.on_gpu() else cpu
    print(f"{name:<44} {cpu:8.1f} CPU seconds, {wall:8.1f} s", flush=True)
    return result


def reference_pairs(
    one: Any, other: Any, seconds: dict[str, float]
) -> dict[tuple[int, int], float]:
    """Pairs as the example of sentence-transformers mines them."""
    search = _faiss_search if has_faiss() else _semantic_search

    def both() -> Any:
        return search(one, other), search(other, one)

    (cos_ahead, ahead), (cos_back, back) = timed("sentence-transformers: search", seconds, both)
    around = cos_ahead.mean(axis=1), cos_back.mean(axis=1)
    margins = cos_ahead / ((around[0][:, None] + around[1][ahead]) / 2)
    margins_back = cos_back / ((around[1][:, None] + around[0][back]) / 2)
    rows, columns = np.arange(len(one)), np.arange(len(other))
    proposals = [
        *zip(margins.max(1), rows, ahead[rows, margins.argmax(1)], strict=True),
        *zip(margins_back.max(1), back[columns, margins_back.argmax(1)], columns, strict=True),
    ]
    seen: tuple[set[int], set[int]] = (set(), set())
    accepted = {}
    for margin, i, j in sorted(proposals, key=lambda proposal: -proposal[0]):
        if i not in seen[0] and j not in seen[1]:
            seen[0].add(i)
            seen[1].add(j)
            accepted[int(i), int(j)] = float(margin)
    return accepted


def has_faiss() -> bool:
    return importlib.util.find_spec("faiss") is not None


def _faiss_search(queries: Any, vectors: Any) -> Any:
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index.search(queries, K)


def _semantic_search(queries: Any, vectors: Any) -> Any:
    """Cosines and indices by sentence-transformers' own search, on the GPU if there is one."""
    from sentence_transformers.util import dot_score, semantic_search

    device = "cuda" if machine.on_gpu() else "cpu"
    sides = (torch.from_numpy(side).to(device) for side in (queries, vectors))
    hits = semantic_search(*sides, score_function=dot_score, top_k=K, query_chunk_size=1000)
    cosines = np.array([[hit["score"] for hit in of] for of in hits], np.float32)
    return cosines, np.array([[hit["corpus_id"] for hit in of] for of in hits])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--model", type=Path, help="a folder of (sentence-)transformers")
    parser.add_argument("--data", type=Path, required=True, help="the folder of real data")
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--languages", default="deu,eng")
    parser.add_argument("--num", type=int, default=100_000, help="sentences of each side")
    parser.add_argument("--threshold", type=float, default=1.0)
    parser.add_argument("--out", type=Path, help="JSON file of the numbers")
    given = parser.parse_args()
    files = given.data / "parallel" / "tatoeba-challenge"
    texts, gold = sentences(files, given.languages.split(","), given.num)
    print(f"{len(texts[0]):,} x {len(texts[1]):,} sentences, {len(gold):,} known translations, "
          f"{torch.get_num_threads()} threads")  # fmt: skip
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or make_model(given.data, Path(folder), **SHAPES[given.shape])
        ours, theirs = encode_both(model, texts, Path(folder), seconds)
        found = timed("isoglot: exact search", seconds, lambda: search_exact(*ours, K))
        expected = reference_pairs(*theirs, seconds)
        near = None
        if has_faiss():
            near = timed("isoglot: FAISS, inverted lists", seconds, lambda: search_faiss(*ours, K))
    result: dict[str, Any] = {"sentences": [len(side) for side in texts], "seconds": seconds}
    exact = as_pairs(found)
    result["exact"] = compare(exact, expected, given.threshold)
    if near is not None:
        result["faiss"] = compare(as_pairs(near), exact, given.threshold)
    kept = {(texts[0][i], texts[1][j]) for (i, j), m in exact.items() if m >= given.threshold}
    result["gold"] = {"pairs": len(gold), "mined": len(kept), "right": len(kept & gold)}
    result["ratios"] = {
        "encoding": seconds["sentence-transformers: encode"] / seconds["isoglot: encode"],
        "search": seconds["sentence-transformers: search"] / seconds["isoglot: exact search"],
    }
    print(json.dumps(result, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


def encode_both(
    model: Path, texts: list[list[str]], folder: Path, seconds: dict[str, float]
) -> tuple[list[Any], list[Any]]:
    """Vectors of both libraries, encoded in turns; reading of models is not timed."""
    from sentence_transformers import SentenceTransformer

    encoder, library = SentenceEncoder(model), SentenceTransformer(str(model))
    encoder.encode(["x"])
    # positions of XLM-R's shape begin at 2, which sentence-transformers does not subtract
    positions = position_range(library[0].auto_model)[1]
    library.max_seq_length = min(library.max_seq_length or positions, positions)
    library.encode(["x"])
    ours, theirs = [], []
    parts: dict[str, float] = {}
    for number, side in enumerate(texts):
        file = VectorFile(folder / str(number), "", len(side), "float32")
        named = read_sentences(side, "side")
        timed(f"isoglot {number}", parts, lambda f=file, n=named: f.write(encoder, n, None))
        ours.append(file.read())
        size = 256 if machine.on_gpu() else 32
        found = timed(f"st {number}", parts, lambda s=side, n=size: library.encode(s, batch_size=n))
        theirs.append(found / np.linalg.norm(found, axis=1, keepdims=True))
    seconds["isoglot: encode"] = parts["isoglot 0"] + parts["isoglot 1"]
    seconds["sentence-transformers: encode"] = parts["st 0"] + parts["st 1"]
    worst = max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))
    print(f"largest difference of a number of the vectors: {worst:.1e}")
    return ours, theirs


def as_pairs(neighbors: Any) -> Pairs:
    found = propose_pairs(*neighbors, "max")
    indices = zip(found.first.tolist(), found.second.tolist(), strict=True)
    return dict(zip(indices, found.margins.tolist(), strict=True))


def compare(
    found: dict[Any, float], expected: dict[Any, float], threshold: float
) -> dict[str, Any]:
    """How many pairs above a threshold are the same, and how far shared margins differ."""
    ours = {pair for pair, margin in found.items() if margin >= threshold}
    theirs = {pair for pair, margin in expected.items() if margin >= threshold}
    shared = found.keys() & expected.keys()
    return {
        "pairs": len(ours),
        "expected": len(theirs),
        "same": len(ours & theirs),
        "largest difference of a margin": max(abs(found[p] - expected[p]) for p in shared),
    }


if __name__ == "__main__":
    main()

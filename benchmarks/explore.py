"""How long `isoglot explore` takes to find the nearest sentences, and the memory that it needs.

    python -m benchmarks.explore --model runs/mine --text en=en.txt --text de=de.txt --num 100000

The first `--num` different lines of all files together are searched. A question is what a click on
*Search* computes: tokenizing, the encoder, the product with all vectors, the HTML. With
`--random-vectors` the sentences get random unit vectors, because a large model would encode them
for hours; questions cost the same. CPU milliseconds are of all threads.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time

import torch
import torch.nn.functional as F

from isoglot.explore.neighbors import NeighborSearch, Question
from isoglot.explore.session import open_session

QUESTIONS = 50


def memory_mib() -> float:
    """The process's memory at this moment."""
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", action="append", required=True, help="sw=FILE, may be repeated")
    parser.add_argument("--num", type=int, default=100_000, help="sentences in all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--random-vectors", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    each = -(-given.num // len(given.text))
    session = open_session([given.model], text=given.text, limit=each, device="cpu")
    model, search = session.models[0], NeighborSearch(session)
    texts = search.collections["text"].sentences
    width = len(model.sentence_encoder.encode(["a"])[0])
    before = memory_mib()
    began = time.perf_counter()
    for language, own in texts.items():
        if given.random_vectors:
            vectors = F.normalize(torch.randn(len(own), width), dim=-1)
            search.index.vectors[model.name, "text", language] = vectors
        else:
            search.index.get(model, search.collections["text"], language, lambda *_: None)
    number = sum(map(len, texts.values()))
    print(f"{number:,} sentences in {len(texts)} languages, width {width}: vectors take "
          f"{memory_mib() - before:.0f} MiB, the process {memory_mib():.0f} MiB; "
          f"{time.perf_counter() - began:.0f} s to compute them")  # fmt: skip
    walls, cpus = [], []
    every = [text for own in texts.values() for text in own]
    for text in every[:: max(1, len(every) // QUESTIONS)][:QUESTIONS]:
        wall, cpu = time.perf_counter(), time.process_time()
        question = Question(text=text, collection="text", languages=tuple(texts))
        search.answer(model, question, lambda *_: None)
        walls.append(1000 * (time.perf_counter() - wall))
        cpus.append(1000 * (time.process_time() - cpu))
    for name, values in (("wall", walls), ("CPU", cpus)):
        print(f"{name} ms of a question: median {statistics.median(values):.0f}, least "
              f"{min(values):.0f}, most {max(values):.0f} ({len(values)} questions)")  # fmt: skip


if __name__ == "__main__":
    main()

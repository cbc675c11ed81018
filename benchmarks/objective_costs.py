"""What the objectives' own passes cost: BTMLM's writing, momentum contrast's keys.

    python benchmarks/objective_costs.py CORPUS [--size base] [--vocabulary 250002] [--rows 64]

For each mix, the median time of a step with everything, and with one part left out: BTMLM without
its first pass, contrast without encoding keys, moving averages and filling the queue. Also the
tokens that CAMLM encodes for a pair, beside the two masked copies that give the same conditionals.
Every number is of this machine, in one run; the ratios are what to quote.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate import Accelerator

from isoglot.batching.loader import Loader, LoaderConfig, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, StreamConfig, TextStream
from isoglot.corpus import Corpus
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.btmlm import BTMLM
from isoglot.objectives.camlm import CAMLM
from isoglot.objectives.mlm import MLM
from isoglot.objectives.moco import MoCo
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.config import LossConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig, make_optimizer
from isoglot.pretraining.runtime import enable_determinism
from isoglot.pretraining.train_module import TrainModule
from isoglot.pretraining.train_step import StageContext, training_steps
from isoglot.types import Cursor

if TYPE_CHECKING:
    from isoglot.objectives import Objective

WARM_UP, MEASURED = 4, 12
Change = Callable[[TrainModule], None]


def milliseconds(
    given: argparse.Namespace,
    corpus: Corpus,
    streams: Mapping[str, StreamConfig],
    objectives: Mapping[str, Objective],
    change: Change | None = None,
    *,
    optimize: bool = True,
) -> tuple[float, float]:
    """The median step in milliseconds, and its real tokens, after an optional change."""
    on_gpu = torch.cuda.is_available()
    accelerator = Accelerator(mixed_precision="bf16" if on_gpu else "no", cpu=not on_gpu)
    opened = open_streams(corpus, streams, objectives, row_length=given.row_length)
    shape = BatchConfig(rows=given.rows, micro_rows=given.rows, row_length=given.row_length)
    workers = LoaderConfig(num_workers=given.workers)
    loader = Loader(corpus, opened, shape, workers=workers, pad_targets=on_gpu, pin_memory=on_gpu)
    torch.manual_seed(0)
    settings = ModelConfig(size=given.size, max_positions=512, dropout=0.1)
    vocabulary = given.vocabulary or corpus.vocabulary.size
    encoder = Encoder.from_scratch(settings, vocabulary, 1, languages=corpus.languages)
    train_module = TrainModule(encoder, objectives, corpus).to(accelerator.device)
    for name in objectives:
        train_module.objective(name).on_stage_start()
    if on_gpu:
        train_module.compile()
    if change is not None:
        change(train_module)
    config = OptimizerConfig()
    weights = [weight for weight in train_module.parameters() if weight.requires_grad]
    stage = StageContext(
        module=train_module,
        wrapped=train_module,
        optimizer=make_optimizer(weights, config),
        optimizer_config=config,
        loss=LossConfig(),
        objectives=objectives,
        steps=WARM_UP + MEASURED,
        seed=0,
    )
    if not optimize:
        stage.optimizer.step = lambda: None  # type: ignore[assignment, method-assign]
    train_module.train()
    times, tokens, last = [], [], time.perf_counter()
    for step in training_steps(stage, loader.steps(Cursor()), accelerator):
        if on_gpu:
            torch.cuda.synchronize()
        now = time.perf_counter()
        times.append(1000 * (now - last))
        tokens.append(step.num_tokens)
        last = now
    return statistics.median(times[WARM_UP:]), statistics.mean(tokens[WARM_UP:])


def without_writing(train_module: TrainModule) -> None:
    """BTMLM's second pass alone: the slots stay [MASK]."""
    module: Any = train_module.objective("btmlm")
    module.before_forward = lambda *_: None


def without_keys(train_module: TrainModule) -> None:
    """Contrast with keys that cost nothing, no moving average and no queue to fill."""
    module: Any = train_module.objective("moco")

    def before_forward(_name: str, batch: Any, _inference: Any) -> None:
        places = batch.aux_markers["moco"]["key"]
        module._keys = torch.ones(  # noqa: SLF001
            len(places), module.projection.size, device=places.device
        )

    module.before_forward = before_forward
    module.after_step = lambda **_: module.queue.enqueue_staged(taken=False)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the objectives' own passes cost.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--size", default="base")
    parser.add_argument("--vocabulary", type=int, default=0, help="0: the corpus's own")
    parser.add_argument("--row-length", type=int, default=512)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    corpus = Corpus.open(given.corpus)
    text = TextStream(objectives=("mlm",), across_documents=True)
    written = TextStream(objectives=("btmlm",), across_documents=True)
    pairs = ParallelStream(objectives=("moco", "tlm"), order="shuffled")
    mixes: dict[str, tuple[dict[str, StreamConfig], dict[str, Objective], Change | None]] = {
        "mlm": ({"text": text}, {"mlm": MLM()}, None),
        "btmlm": ({"text": written}, {"btmlm": BTMLM()}, None),
        "btmlm, second pass": ({"text": written}, {"btmlm": BTMLM()}, without_writing),
        "moco + tlm": ({"parallel": pairs}, {"moco": MoCo(), "tlm": TLM()}, None),
        "moco + tlm, no keys": ({"parallel": pairs}, {"moco": MoCo(), "tlm": TLM()}, without_keys),
    }
    found: dict[str, float] = {}
    for name, (streams, objectives, change) in mixes.items():
        took, tokens = milliseconds(given, corpus, streams, objectives, change)
        found[f"{name} ms"], found[f"{name} tokens/s"] = took, 1000 * tokens / took
        print(f"{name:<22} {took:8.1f} ms  {1000 * tokens / took:10,.0f} tokens/s", flush=True)
    if torch.cuda.is_available():
        enable_determinism()
        took, tokens = milliseconds(given, corpus, {"text": text}, {"mlm": MLM()})
        found["mlm deterministic ms"] = took
        print(f"{'mlm, deterministic':<22} {took:8.1f} ms  {1000 * tokens / took:10,.0f} tokens/s")
    alone, _ = milliseconds(
        given, corpus, {"text": written}, {"btmlm": BTMLM()}, without_writing, optimize=False
    )
    writing = (found["btmlm ms"] - found["btmlm, second pass ms"]) / alone
    keys = 1 - found["moco + tlm, no keys ms"] / found["moco + tlm ms"]
    print(f"BTMLM's first pass: {100 * writing:.0f} % of the second, the optimizer left out")
    print(f"keys, averages and queue: {100 * keys:.0f} % of the step")
    print(f"CAMLM: {two_passes(corpus):.2f} times fewer tokens than two masked copies of each pair")
    if given.out:
        given.out.write_text(json.dumps(found, indent=1), encoding="utf-8")


def two_passes(corpus: Corpus) -> float:
    """Tokens of two masked copies of all pairs over those of CAMLM's two sequences."""
    stream = ParallelStream(objectives=("camlm",))
    opened = open_streams(corpus, {"parallel": stream}, {"camlm": CAMLM()}, row_length=512)
    copies = slots = 0
    for part in opened[0].slices:
        everything = torch.arange(part.num_examples).numpy()
        sizes = part.sizes(everything, everything + 1.0)
        copies += 2 * int(TLM().lengths(sizes).sum())
        slots += int(CAMLM().lengths(sizes).sum())
    return copies / slots


if __name__ == "__main__":
    main()

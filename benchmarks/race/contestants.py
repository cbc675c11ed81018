"""One contestant in a process of its own: prints a line of JSON with its speed and memory.

`trainer` is transformers' Trainer with default flags and bf16; `trainer-best` is compiled, with the
fused optimizer and, where lengths differ, batches of similar length (`--eager`: not compiled, since
every new length may be compiled again). `isoglot` runs the stage of any recipe through `pretrain`.
All start from one folder of weights. The first steps, in which models are compiled, are not timed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.utils import counters
from transformers import AutoConfig

from benchmarks.race import machine
from benchmarks.race.flops import StepCounts, count_batches, count_lengths
from benchmarks.race.kernel_profile import KernelProfile
from isoglot.corpus import Corpus

if TYPE_CHECKING:
    from isoglot.pretraining.train_step import StepResult

MASK_RATE = 0.15


class Enough(Exception):  # noqa: N818
    """All steps are done."""


class Clock:
    """Times all steps after the warm-up together.

    It synchronizes with the device only when it starts and stops, so that a loop may launch work
    ahead. A step in which something was compiled counts as warm-up, whenever it comes: it restarts
    the clock, at most five times, and not with several processes, which must all stop at one step.
    """

    RESTARTS = 5

    def __init__(self, warm_up: int, steps: int) -> None:
        assert warm_up > 0, "the clock starts when a step ends"
        self.first, self.steps = warm_up, steps
        self.ended = 0
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        """Of all threads: what can be compared where other programs share the cores."""
        self._started = self._cpu_started = 0.0
        self._graphs = 0
        self._restarts = self.RESTARTS if os.environ.get("WORLD_SIZE", "1") == "1" else 0

    def step_ended(self) -> None:
        if self.over:
            return
        self.ended += 1
        before, self._graphs = self._graphs, counters["stats"]["unique_graphs"]
        if self._graphs > before and self.ended > self.first and self._restarts:
            self.first, self._restarts = self.ended, self._restarts - 1
        if self.ended in {self.first, self.first + self.steps}:
            machine.synchronize()
            self.seconds, self._started = time.perf_counter() - self._started, time.perf_counter()
            cpu = time.process_time()
            self.cpu_seconds, self._cpu_started = cpu - self._cpu_started, cpu

    @property
    def over(self) -> bool:
        return self.ended == self.first + self.steps

    @property
    def counted(self) -> range:
        """The timed steps."""
        return range(self.first, self.first + self.steps)


def isoglot(given: argparse.Namespace) -> None:
    from isoglot.pretraining.run import pretrain
    from isoglot.recipe import load_recipe

    corpus = Corpus.open(given.corpus)
    config = load_recipe(given.recipe, given.set)
    stage = replace(config.stages[given.stage], steps=10**6, epochs=None)
    config = replace(
        config,
        stages=(stage,),
        model=replace(config.model, init_from=str(given.model), size=None),
        batch=replace(
            config.batch,
            rows=given.rows,
            micro_rows=min(given.micro_rows, given.rows // int(os.environ.get("WORLD_SIZE", "1"))),
            row_length=given.row_length,
        ),
        loader=replace(config.loader, num_workers=given.workers),
        logging=replace(config.logging, every_steps=10, validate_every_steps=0, trackers=()),
        checkpoint=replace(config.checkpoint, every_steps=10**9),
        deterministic=given.deterministic,
        precision="bf16" if given.bf16 else config.precision,
    )
    clock, kernels = Clock(given.warm_up, given.steps), KernelProfile(given.profile)
    tokens: list[int] = []

    def listen(step: StepResult) -> None:
        tokens.append(step.num_tokens)
        clock.step_ended()
        if clock.over and not kernels.step_ended():
            raise Enough

    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Enough):
        pretrain(config, corpus, Path(folder), on_step=listen)
    _print_result(given, clock, sum(tokens[i] for i in clock.counted), _step_counts(config, corpus))


def _step_counts(config: Any, corpus: Corpus) -> StepCounts:
    """Tokens and targets of a step, from batches of the same recipe."""
    from isoglot.batching.loader import Loader, open_streams
    from isoglot.pretraining.config import objectives_of
    from isoglot.types import Cursor

    streams = config.stages[0].streams
    opened = open_streams(
        corpus, streams, objectives_of(config), row_length=config.batch.row_length
    )
    steps = Loader(corpus, opened, config.batch).steps(Cursor())
    return count_batches([next(steps) for _ in range(3)])


def trainer(given: argparse.Namespace, *, best: bool) -> None:
    from transformers import (
        AutoModelForMaskedLM,
        AutoTokenizer,
        DataCollatorForLanguageModeling,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    corpus = Corpus.open(given.corpus)
    examples = list(
        map(list, text_blocks(corpus, given) if given.input == "rows" else pairs(corpus, given))
    )
    mean = statistics.mean(map(len, examples))
    split = given.rows // given.micro_rows
    per_step = round(given.rows * given.row_length / mean)
    clock, kernels = Clock(given.warm_up, given.steps), KernelProfile(given.profile)
    lengths: list[list[int]] = []

    class Listening(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            del args, state
            clock.step_ended()
            if clock.over and not kernels.step_ended():
                control.should_training_stop = True

    class Counting(DataCollatorForLanguageModeling):
        def __call__(self, features: Any, return_tensors: Any = None) -> Any:
            lengths.append([len(feature["input_ids"]) for feature in features])
            return super().__call__(features, return_tensors)

    on_gpu = torch.cuda.is_available()
    flags: dict[str, Any] = {}
    if best:
        flags = {"torch_compile": on_gpu and not given.eager, "optim": "adamw_torch_fused"}
        if given.input != "rows":
            flags["train_sampling_strategy"] = "group_by_length"
            # torch prefers cuDNN's attention on Hopper and plans it again for every width
            torch.backends.cuda.enable_cudnn_sdp(enabled=False)
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=max(1, per_step // split),
        gradient_accumulation_steps=split,
        max_steps=10**6,
        bf16=on_gpu or given.bf16,
        use_cpu=not on_gpu,
        report_to=[],
        save_strategy="no",
        logging_steps=10**6,
        disable_tqdm=True,
        dataloader_drop_last=True,
        **flags,
    )
    rows = [{"input_ids": ids} for ids in examples]
    Trainer(
        model=AutoModelForMaskedLM.from_pretrained(given.model),
        args=arguments,
        train_dataset=rows,
        data_collator=Counting(
            tokenizer=AutoTokenizer.from_pretrained(corpus.tokenizer_folder),
            mlm_probability=MASK_RATE,
        ),
        callbacks=[Listening()],
    ).train()
    first, end = clock.counted.start * split, clock.counted.stop * split
    counted = [length for batch in lengths[first:end] for length in batch]
    _print_result(given, clock, sum(counted), count_lengths(counted, MASK_RATE, given.steps))


def text_blocks(corpus: Corpus, given: argparse.Namespace) -> list[list[int]]:
    """Running text in full blocks: the Trainer's best case."""
    block, found = given.row_length - 2, []
    vocabulary = corpus.vocabulary
    for source, languages in _cells(corpus, "ids"):
        for language in languages:
            table = corpus.table(source, language, "train")
            number = min(given.limit, table.num_rows)
            flat = [token for i in range(number) for token in table.ids("ids", i).tolist()]
            found += [
                [vocabulary.cls, *flat[i : i + block], vocabulary.sep]
                for i in range(0, len(flat) - block, block)
            ]
    torch.manual_seed(0)
    return [found[i] for i in torch.randperm(len(found)).tolist()]


def pairs(corpus: Corpus, given: argparse.Namespace) -> list[list[int]]:
    """Translation pairs as one sequence each, of very different lengths."""
    found, vocabulary = [], corpus.vocabulary
    for source, languages in _cells(corpus, "first"):
        for language in languages:
            table = corpus.table(source, language, "train")
            for i in range(min(given.limit, table.num_rows)):
                first, second = (table.ids(side, i).tolist() for side in ("first", "second"))
                joined = [vocabulary.cls, *first, vocabulary.sep, *second, vocabulary.sep]
                found.append(joined[: given.row_length])
    torch.manual_seed(0)
    return [found[i] for i in torch.randperm(len(found)).tolist()]


def _cells(corpus: Corpus, column: str) -> list[tuple[str, list[str]]]:
    kind = "text" if column == "ids" else "pairs"
    return [
        (name, list(source.languages))
        for name, source in corpus.manifest.sources.items()
        if source.kind == kind
    ]


def _print_result(given: argparse.Namespace, clock: Clock, tokens: int, counts: StepCounts) -> None:
    flops = counts.flops(AutoConfig.from_pretrained(given.model))
    found = {
        "tokens_per_second": tokens / clock.seconds,
        "tokens_per_cpu_second": tokens / clock.cpu_seconds,
        "step_ms": 1000 * clock.seconds / clock.steps,
        "tokens_a_step": tokens / clock.steps,
        "peak_gib": machine.peak_gib(),
        "operations_per_second": flops * clock.steps / clock.seconds,
    }
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("who", choices=["trainer", "trainer-best", "isoglot"])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--input", choices=["rows", "pairs"], default="rows")
    parser.add_argument("--bf16", action="store_true", help="autocast on a CPU, too")
    parser.add_argument("--eager", action="store_true", help="the Trainer's best, not compiled")
    parser.add_argument("--recipe", default="xlm-mlm")
    parser.add_argument("--stage", type=int, default=0)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--row-length", type=int, default=512)
    parser.add_argument(
        "--micro-rows", type=int, help="rows of a micro-batch; none: all rows of a step"
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=8)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--limit", type=int, default=10_000, help="lines read of each language")
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--profile", type=Path, help="write a kernel profile to this file")
    given = parser.parse_args()
    given.micro_rows = given.micro_rows or given.rows
    if given.who == "isoglot":
        isoglot(given)
    else:
        trainer(given, best=given.who == "trainer-best")


if __name__ == "__main__":
    main()

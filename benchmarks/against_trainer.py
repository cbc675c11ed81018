"""A race on this machine: transformers' Trainer against Isoglot, same text, model and tokens.

    python benchmarks/against_trainer.py [--vocabulary 250002] [--size small] [--steps 6]

Two kinds of input: `rows`, running text cut into full blocks (the Trainer's best case), and
`sentences`, single sentences of very different lengths (padded by the Trainer, packed by Isoglot).
Each contestant runs in a process of its own: tokens/s over real tokens, padding not counted, from
the third step on, and the peak of its memory. Ratios are what to quote.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROW_LENGTH, ROWS, WARM_UP = 128, 16, 2


def trainer(corpus_folder: Path, kind: str, size: str, vocabulary: int, steps: int) -> None:
    from torch.utils.data import Dataset
    from transformers import (
        AutoTokenizer,
        DataCollatorForLanguageModeling,
        Trainer,
        TrainerCallback,
        TrainingArguments,
        XLMRobertaForMaskedLM,
    )

    corpus, settings = _corpus(corpus_folder, size)
    examples = _examples(corpus, kind)
    per_step = ROWS if kind == "rows" else round(ROWS * ROW_LENGTH / _mean_length(examples))

    class Examples(Dataset):
        def __len__(self):
            return len(examples)

        def __getitem__(self, index):
            return {"input_ids": examples[index]}

    class Clock(TrainerCallback):
        def __init__(self):
            self.ends = []

        def on_step_end(self, *_, **__):
            self.ends.append(time.perf_counter())

    from isoglot.models.scratch import scratch_config

    config = scratch_config(settings, vocabulary_size=vocabulary, pad=1, cls=0, sep=2)
    clock = Clock()
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=per_step,
        max_steps=steps,
        use_cpu=not _on_gpu(),
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        dataloader_drop_last=True,
    )
    tokenizer = AutoTokenizer.from_pretrained(corpus.tokenizer_folder)
    seen: list[int] = []

    class Counting(DataCollatorForLanguageModeling):
        def __call__(self, features, return_tensors=None):
            seen.append(sum(len(feature["input_ids"]) for feature in features))
            return super().__call__(features, return_tensors)

    Trainer(
        model=XLMRobertaForMaskedLM(config),
        args=arguments,
        train_dataset=Examples(),
        data_collator=Counting(tokenizer=tokenizer, mlm_probability=0.15),
        callbacks=[clock],
    ).train()
    _say(seen[WARM_UP:steps], clock.ends[steps - 1] - clock.ends[WARM_UP - 1])


def isoglot(corpus_folder: Path, kind: str, size: str, vocabulary: int, steps: int) -> None:
    import torch
    from accelerate import Accelerator

    from isoglot.batching.loader import Loader, open_streams
    from isoglot.batching.planner import BatchConfig
    from isoglot.batching.streams import TextStream
    from isoglot.models import Encoder
    from isoglot.objectives import MLM
    from isoglot.pretrain.loop import LossConfig, Stage, training_steps
    from isoglot.pretrain.optim import OptimizerConfig, make_optimizer
    from isoglot.pretrain.trainee import Trainee
    from isoglot.types import Cursor

    corpus, settings = _corpus(corpus_folder, size)
    accelerator = Accelerator(cpu=not _on_gpu())
    objectives = {"mlm": MLM()}
    stream = TextStream(
        objectives=("mlm",),
        unit="stream" if kind == "rows" else "sentence",
        across_documents=True,
    )
    opened = open_streams(corpus, {"text": stream}, objectives, row_length=ROW_LENGTH)
    shape = BatchConfig(rows=ROWS, micro_rows=ROWS, row_length=ROW_LENGTH)
    loader = Loader(corpus, opened, shape)
    torch.manual_seed(0)
    encoder = Encoder.make(settings, vocabulary, corpus.vocabulary.pad)
    trainee = Trainee(encoder, objectives, corpus).to(accelerator.device)
    config = OptimizerConfig()
    stage = Stage(
        trainee=trainee,
        wrapped=trainee,
        optimizer=make_optimizer(trainee.parameters(), config),
        optimizer_config=config,
        loss=LossConfig(),
        weights={"mlm": 1.0},
        steps=steps,
        seed=0,
    )
    tokens, ends = [], []
    for step in training_steps(stage, loader.steps(Cursor()), accelerator):
        tokens.append(step.num_tokens)
        ends.append(time.perf_counter())
    _say(tokens[WARM_UP:], ends[-1] - ends[WARM_UP - 1])


def _corpus(folder: Path, size: str):
    from isoglot.corpus import Corpus
    from isoglot.models import ModelConfig

    return Corpus.open(folder), ModelConfig(size=size, max_positions=ROW_LENGTH, dropout=0.1)


def _examples(corpus, kind: str) -> list[list[int]]:
    """The same text for the Trainer: full blocks of running text, or single sentences."""
    rows = []
    for language in corpus.languages:
        table = corpus.table("text", language, "train")
        sentences = [table.ids("ids", i).tolist() for i in range(min(3000, table.num_rows))]
        if kind == "sentences":
            rows += [[0, *ids, 2] for ids in sentences]
        else:
            flat = [token for ids in sentences for token in ids]
            block = ROW_LENGTH - 2
            rows += [[0, *flat[i : i + block], 2] for i in range(0, len(flat) - block, block)]
    return rows


def _mean_length(examples: list[list[int]]) -> float:
    return sum(map(len, examples)) / len(examples)


def _on_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _say(tokens: list[int], seconds: float) -> None:
    import torch

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    if _on_gpu():
        peak = torch.cuda.max_memory_allocated() / 2**30
    print(json.dumps({"tokens_per_second": sum(tokens) / seconds, "peak_gib": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", type=int, default=250_002)
    parser.add_argument("--size", default="small")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--run", nargs=3, metavar=("WHO", "KIND", "CORPUS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        who, kind, corpus = arguments.run
        contestant = {"trainer": trainer, "isoglot": isoglot}[who]
        contestant(Path(corpus), kind, arguments.size, arguments.vocabulary, arguments.steps)
        return
    from rich.console import Console

    from isoglot.demo import generated_corpus

    results = {}
    with tempfile.TemporaryDirectory() as folder:
        corpus = generated_corpus(Path(folder), Console(), sentences=4000, pairs=10)
        for kind in ("rows", "sentences"):
            for who in ("trainer", "isoglot"):
                command = [sys.executable, __file__, "--run", who, kind, str(corpus)]
                command += ["--size", arguments.size, "--steps", str(arguments.steps)]
                command += ["--vocabulary", str(arguments.vocabulary)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(done.stderr[-3000:])
                results[kind, who] = json.loads(done.stdout.strip().splitlines()[-1])
                print(f"{kind:<10} {who:<8}", results[kind, who], flush=True)
    print(
        f"\n{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"{arguments.size}, {arguments.vocabulary:,} words, {ROWS} x {ROW_LENGTH} tokens a step"
    )
    print("| input | Trainer tokens/s | Isoglot | faster | Trainer's peak GiB | Isoglot | less |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for kind in ("rows", "sentences"):
        one, two = results[kind, "trainer"], results[kind, "isoglot"]
        print(
            f"| {kind} | {one['tokens_per_second']:,.0f} | {two['tokens_per_second']:,.0f} "
            f"| {two['tokens_per_second'] / one['tokens_per_second']:.1f}× "
            f"| {one['peak_gib']:.2f} | {two['peak_gib']:.2f} "
            f"| {one['peak_gib'] / two['peak_gib']:.1f}× |"
        )


if __name__ == "__main__":
    main()

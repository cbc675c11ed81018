"""Sentence vectors and fine-tuning raced: Isoglot beside sentence-transformers and the Trainer.

    python -m benchmarks.race_tasks DATA                       small shape on a CPU, some minutes
    python -m benchmarks.race_tasks DATA --shape base --sentences 100000 --steps 60   on a GPU

DATA is the folder of real data that tests read (ISOGLOT_DATA). The model is a BERT with random
weights and mBERT's vocabulary, which is enough for speed; scores mean nothing. Each library runs in
a process of its own, and all get the same sentences or the same windows of a task:

    embed      Tatoeba Challenge (four fifths) and NTREX: the mean state of the last layer
    sick       sentence pairs, 3 labels      ud-pos     words with tags      tydiqa     answers

Tokenizing is part of `embed`; of fine-tuning only the steps are timed, after a few others. On a GPU
the time is that of the clock, on a CPU that of all threads (CPU seconds), which other work on the
machine changes little. Prints a Markdown table, and ends with an error if vectors differ by more
than 1e-4 (float32) or the losses of one batch by more than 1e-4.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.align import make_model
from benchmarks.race import machine
from isoglot.cli.console import print_table

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES: dict[str, dict[str, int]] = {
    "tiny": {
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 512,
    },
    "small": {
        "hidden_size": 384,
        "num_hidden_layers": 6,
        "num_attention_heads": 6,
        "intermediate_size": 1536,
    },
    "base": {},
}
TASKS = {"sick": 128, "ud-pos": 128, "tydiqa": 384}
"""Task -> tokens of a window."""
BATCH_SIZE = 32
WARM_UP = 3
TOLERANCE = 1e-4
MARK = "result "
"""Begins a line of a process with a result."""
Turn = tuple[str, str]
"""Race and contestant."""


def contestants(given: argparse.Namespace) -> list[list[Turn]]:
    """Turns of each process."""
    gpu = machine.on_gpu()
    library = ["sentence-transformers", "sentence-transformers, large batches"]
    library += ["sentence-transformers, large batches, bf16"] if gpu else []
    ours = ["Isoglot", "Isoglot, bf16"] if gpu else ["Isoglot"]
    # on a GPU all train in bf16
    trainer = ["Trainer, best flags"] if gpu else ["Trainer, best flags", "Trainer, bf16"]
    training = ["Isoglot", "Isoglot, CUDA graphs"] if gpu else ["Isoglot", "Isoglot, bf16"]
    processes = [
        [("embed", name) for name in library],
        [(task, "Trainer") for task in TASKS],
        [(task, name) for task in TASKS for name in trainer],
        [("embed", name) for name in ours] + [(t, name) for t in TASKS for name in training],
    ]
    chosen = [
        [turn for turn in turns if not given.only or turn[0] in given.only] for turns in processes
    ]
    return [turns for turns in chosen if turns]


def read_sentences(data: Path, number: int) -> list[str]:
    """Different sentences in a random order, a fifth of them NTREX's, which are longer."""
    short: dict[str, None] = {}
    for file in sorted((data / "parallel" / "tatoeba-challenge").glob("*.tsv.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                short.update(dict.fromkeys(line.rstrip("\n").split("\t")[2:4]))
        if len(short) > 2 * number:
            break
    news: list[str] = []
    for file in sorted((data / "parallel" / "ntrex").glob("??.txt.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            news += lines.read().splitlines()
    rng = random.Random(0)
    chosen = rng.sample(news, min(len(news), number // 5))
    return rng.sample(list(short), number - len(chosen)) + chosen


def clock() -> float:
    """Seconds: of the wall with a GPU, of all threads without."""
    machine.synchronize()
    return time.perf_counter() if machine.on_gpu() else time.process_time()


def embed_one(name: str, model: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Sentences a second of one contestant; its vectors go to a file."""
    sentences = read_sentences(given.data, given.sentences)
    encode = _isoglot_vectors(name, model) if name.startswith("Isoglot") else _library(name, model)
    if machine.on_gpu() and name == "sentence-transformers":
        sentences = sentences[::5]  # batches of 32 keep a GPU waiting: enough for a rate
    encode(sentences[:200])
    best = float("inf")
    for _ in range(given.times):
        began = clock()
        vectors = encode(sentences)
        best = min(best, clock() - began)
    np.save(given.work / f"{name}.npy", vectors)
    return {"per_second": len(sentences) / best, "seconds": best, "peak_gib": machine.peak_gib()}


def _isoglot_vectors(name: str, model: Path) -> Callable[[list[str]], Any]:
    from isoglot.evaluation.embed import embed
    from isoglot.evaluation.loading import load_for_scoring

    encoder, tokenizer = load_for_scoring(model)
    kind: Any = "bfloat16" if name.endswith("bf16") else "float32"
    return lambda texts: embed(encoder, tokenizer, texts, layers=[-1], encode_type=kind)[0].numpy()


def _library(name: str, model: Path) -> Callable[[list[str]], Any]:
    from sentence_transformers import SentenceTransformer

    options = {"model_kwargs": {"dtype": torch.bfloat16}} if name.endswith("bf16") else {}
    library = SentenceTransformer(
        str(model), device="cuda" if machine.on_gpu() else "cpu", **options
    )
    size = (1024 if machine.on_gpu() else 128) if "large" in name else 32
    return lambda texts: library.encode(texts, batch_size=size, show_progress_bar=False)


def train_one(name: str, task: str, model: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Windows a second of one contestant, and its loss on the first batch."""
    from transformers import set_seed

    from isoglot.finetuning.settings import FinetuneConfig

    batch_size = given.batch_size
    config = FinetuneConfig(
        epochs=1,
        batch_size=batch_size,
        max_length=TASKS[task],
        warmup_ratio=0.0,
        selection="last",
        cuda_graphs=name.endswith("graphs"),
        precision="bf16" if name.endswith("bf16") else "auto",
    )
    head, windows = _windows(task, model, config, given.data)
    windows = windows[: batch_size * (WARM_UP + given.steps)]
    steps = len(windows) // batch_size
    windows = windows[: batch_size * steps]
    set_seed(0)
    task_model = head.load_model().to("cuda" if machine.on_gpu() else "cpu")
    losses = _graphed_loss if config.cuda_graphs else _first_loss
    loss = losses(name, head, task_model, windows[:batch_size])
    times: list[float] = []

    def stepped(done: int) -> None:
        if done in (WARM_UP, steps):
            times.append(clock())

    with tempfile.TemporaryDirectory() as scratch:
        if name.startswith("Isoglot"):
            _train_isoglot(head, task_model, windows, config, Path(scratch), stepped)
        else:
            _train_library(name, head, task_model, windows, config, scratch, stepped)
    seconds = times[1] - times[0]
    lengths = np.array([len(window.sequences[0]["input_ids"]) for window in windows])
    return {
        "per_second": batch_size * (steps - WARM_UP) / seconds,
        "seconds": seconds,
        "loss": loss,
        "tokens": float(lengths.mean()),
        "padding": _padding(lengths, batch_size),
        "peak_gib": machine.peak_gib(),
    }


def _windows(task: str, model: Path, config: Any, data: Path) -> tuple[Any, list[Any]]:
    from isoglot.finetuning.finetune import HEADS
    from isoglot.tasks import find_task

    found = find_task(task)
    examples = found.read(found.find_split((data / "eval",), "en", "train"))
    kind = HEADS[found.kind]
    head = kind(model, config, kind.labels_of(examples))
    return head, head.windows(examples, training=True)


def _padding(lengths: Any, batch_size: int) -> float:
    """Share of padding in batches in a random order."""
    batches = np.random.default_rng(0).permutation(lengths).reshape(-1, batch_size)
    return float(1 - batches.sum() / (batches.max(axis=1) * batch_size).sum())


@torch.no_grad()
def _first_loss(name: str, head: Any, model: Any, windows: list[Any]) -> float:
    """The loss of one batch without dropout.

    Of transformers' models it is that of the padded batch; of answers, whose loss there depends on
    padding, the mean over windows alone. Of Isoglot it is the sum over its parts.
    """
    from isoglot.finetuning.length_groups import length_groups
    from isoglot.finetuning.loss import batch_loss
    from isoglot.models.length_batches import cpu_batch_tokens

    model.eval()

    def batch(chosen: list[Any]) -> dict[str, torch.Tensor]:
        return {key: tensor.to(model.device) for key, tensor in head.collate(chosen).items()}

    if name.startswith("Isoglot"):
        parts = length_groups(batch(windows), cpu_batch_tokens())
        return float(sum(share * batch_loss(model, inputs) for inputs, share in parts))
    if "start_positions" in windows[0].targets:
        return float(np.mean([float(model(**batch([window])).loss) for window in windows]))
    return float(model(**batch(windows)).loss)


def _graphed_loss(name: str, head: Any, model: Any, windows: list[Any]) -> float:
    """The loss of one batch replayed from a graph; ends with an error if gradients differ."""
    from isoglot.finetuning.graphed_step import GraphedStep
    from isoglot.finetuning.loss import batch_loss

    model.eval()
    batch = {key: tensor.to(model.device) for key, tensor in head.collate(windows).items()}

    def passes(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        loss = batch_loss(model, inputs)
        loss.backward()
        return loss.detach()

    weights = list(model.parameters())
    step = GraphedStep(passes, weights, head.tokenizer.pad_token_id)
    step(batch)  # as usual
    expected = [weight.grad.clone() for weight in weights if weight.grad is not None]
    for _ in range(3):  # as usual with rounded lengths, recorded, replayed
        model.zero_grad()
        loss = step(batch)
    found = [weight.grad for weight in weights if weight.grad is not None]
    far = [
        float((a - b).abs().max() / b.abs().max().clamp(min=1e-6))
        for a, b in zip(found, expected, strict=True)
    ]
    if not step.is_usable or max(far) > 1e-3:
        raise SystemExit(f"{name}: graphs usable {step.is_usable}, gradients differ by {max(far)}")
    model.zero_grad()
    return float(loss)


def _train_isoglot(
    head: Any, model: Any, windows: list[Any], config: Any, scratch: Path, stepped: Any
) -> None:
    from isoglot.finetuning.train import BestEpoch, train

    best = BestEpoch(None, scratch, higher_is_better=True)
    train(
        model,
        head,
        windows,
        [],
        config,
        seed=0,
        scratch=scratch,
        best=best,
        progress=lambda done, _: stepped(done),
    )


def _train_library(
    name: str, head: Any, model: Any, windows: list[Any], config: Any, scratch: str, stepped: Any
) -> None:
    """transformers' Trainer as its examples call it."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Times(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
            stepped(state.global_step)

    gpu = machine.on_gpu()
    options: dict[str, Any] = {"optim": "adamw_torch"}
    if name != "Trainer":
        options = {"optim": "adamw_torch_fused", "train_sampling_strategy": "group_by_length"}
        options |= {"dataloader_num_workers": 2} if gpu else {}
    features = [
        {"input_ids": window.sequences[0]["input_ids"], "window": window} for window in windows
    ]
    arguments = TrainingArguments(
        output_dir=scratch,
        num_train_epochs=1,
        per_device_train_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        bf16=gpu or name.endswith("bf16"),
        use_cpu=not gpu,
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        save_strategy="no",
        remove_unused_columns=False,
        **options,
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=features,
        data_collator=lambda rows: head.collate([row["window"] for row in rows]),
        callbacks=[Times()],
    )
    trainer.train()


def run_turns(turns: list[Turn], given: argparse.Namespace) -> dict[Turn, dict[str, Any]]:
    """Some turns in a process of their own; those that it did not finish have an error."""
    command = [sys.executable, "-m", "benchmarks.race_tasks", str(given.data)]
    command += ["--turns", json.dumps(turns), "--work", str(given.work)]
    command += ["--times", str(given.times), "--batch-size", str(given.batch_size)]
    command += ["--sentences", str(given.sentences), "--steps", str(given.steps)]
    found: dict[Turn, dict[str, Any]] = {}
    errors = given.work / "errors.txt"
    with (
        errors.open("w", encoding="utf-8") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(MARK):
                turn = turns[len(found)]
                found[turn] = json.loads(line.removeprefix(MARK))
                print(f"{': '.join(turn)}: {found[turn]}", flush=True)
    last = (errors.read_text(encoding="utf-8").strip().splitlines() or ["it was ended"])[-1]
    return {turn: found.get(turn, {"error": last}) for turn in turns}


def take_turns(given: argparse.Namespace) -> None:
    """Run the turns of one process, and print a line for each."""
    model = given.work / "model"
    for race, name in json.loads(given.turns):
        if machine.on_gpu():
            torch.cuda.reset_peak_memory_stats()
        one = (
            embed_one(name, model, given)
            if race == "embed"
            else train_one(name, race, model, given)
        )
        print(MARK + json.dumps(one), flush=True)


def faults(race: str, found: dict[str, dict[str, Any]], work: Path) -> list[str]:
    """What does not agree, in sentences; bf16 is not compared."""
    exact = [name for name, one in found.items() if "error" not in one and "bf16" not in name]
    if race != "embed":
        losses = [found[name]["loss"] for name in exact]
        differ = max(losses) - min(losses) > TOLERANCE
        return [f"{race}: the losses of one batch are {losses}."] if differ else []
    vectors = {name: np.load(work / f"{name}.npy") for name in found if "error" not in found[name]}
    if len({len(v) for v in vectors.values()}) > 1:  # one contestant got every fifth sentence
        least = min(map(len, vectors.values()))
        vectors = {name: v if len(v) == least else v[::5] for name, v in vectors.items()}
    worst = {n: float(np.abs(vectors[n] - vectors[exact[0]]).max()) for n in vectors}
    for name, difference in worst.items():
        found[name]["largest_difference"] = difference
    return [f"embed: {n} differs by {worst[n]:.1e}." for n in exact if worst[n] > TOLERANCE]


def race_all(given: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """All results, and what does not agree."""
    results: dict[str, dict[str, Any]] = {race: {} for race in ("embed", *TASKS)}
    for turns in contestants(given):
        for (race, name), one in run_turns(turns, given).items():
            results[race][name] = one
    wrong: list[str] = []
    for race, found in results.items():
        if found and all("error" not in one for one in found.values()):
            wrong += faults(race, found, given.work)
        else:
            wrong += [f"{race}: {n}: {one['error']}" for n, one in found.items() if "error" in one]
    return results, wrong


def table(results: dict[str, Any]) -> None:
    rows = []
    for race, found in results.items():
        for name, one in found.items():
            if "error" in one:
                rows.append([race, name, "failed", "", ""])
                continue
            ratios = [
                f"{one['per_second'] / other['per_second']:.2f}"
                for label, other in found.items()
                if label != name and not label.startswith("Isoglot") and "error" not in other
            ]
            said = ", ".join(ratios) if name.startswith("Isoglot") else ""
            speed = f"{one['per_second']:,.1f}"
            rows.append([race, name, speed, said, f"{one['peak_gib']:.1f}"])
    headings = ["race", "contestant", "sentences or windows/s", "times the others", "peak GiB"]
    print_table(headings, rows, markdown=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=6, help="timed steps of each training")
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE)
    parser.add_argument("--times", type=int, default=2, help="how often sentences are encoded")
    parser.add_argument("--only", nargs="*", help="names of races")
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    parser.add_argument("--turns", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.turns:
        take_turns(given)
        return
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as work:
        given.work = Path(work)
        (given.work / "model").mkdir()
        make_model(given.data, given.work / "model", **SHAPES[given.shape])
        results, wrong = race_all(given)
    table(results)
    print(
        f"{given.shape} shape, random weights; {machine.name()}, {torch.get_num_threads()} threads;"
        f" {given.sentences:,} sentences, batches of {given.batch_size}, {given.steps} steps;"
        f" {time.perf_counter() - began:.0f} s"
    )
    if given.out:
        given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()

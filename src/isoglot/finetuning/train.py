"""One training with transformers' Trainer: batch order, learning rates by layer, epoch selection.

- Batches: shuffled in each epoch; pairs of code-switched windows stay together. On a CPU a batch is
  computed in parts of similar lengths (`length_groups`), with the same loss and gradient.
- Words: embeddings of tokens that the training data lacks are left out (`trained_rows`).
- Learning rates: layer-wise decay from the head down (ERNIE-M's fine-tuning, after ELECTRA).
- Selection: the epoch with the best dev score is restored. The rule is part of the result, because
  it changes published scores. `source-dev` uses dev data of the training languages, which a user
  without data in the target languages has too; `all-dev` the mean over all test languages (XLM-K).
"""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import load_model, save_model
from torch.utils.data import DataLoader, Sampler
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from typing_extensions import override

from isoglot.atomic import write_errors
from isoglot.errors import ModelError
from isoglot.finetuning.graphed_step import GraphedStep
from isoglot.finetuning.length_groups import length_groups
from isoglot.finetuning.loss import batch_loss
from isoglot.finetuning.parameter_groups import parameter_groups
from isoglot.finetuning.trained_rows import TrainedRows, token_ids
from isoglot.models.attention import attention_kernels
from isoglot.models.cpu_memory import keep_freed_memory
from isoglot.models.length_batches import cpu_batch_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from isoglot.finetuning.head import TaskHead, Window
    from isoglot.finetuning.settings import FinetuneConfig


def train(
    model: Any,
    head: TaskHead[Any, Any],
    windows: Sequence[Window],
    pairs: Sequence[tuple[int, int]],
    settings: FinetuneConfig,
    *,
    seed: int,
    scratch: Path,
    best: BestEpoch,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Train a model in place and restore its best epoch; windows of a pair share a batch."""
    accumulation = settings.gradient_accumulation_steps
    batches = PairedBatchSampler(
        len(windows), settings.batch_size // accumulation, seed=seed, pairs=pairs
    )
    steps = math.ceil(len(batches) / accumulation) * settings.epochs
    warmup = settings.warmup_steps
    warmup = round(settings.warmup_ratio * steps) if warmup is None else warmup
    arguments = _training_arguments(settings, seed=seed, scratch=scratch, warmup_steps=warmup)
    model.to(arguments.device)
    rows: TrainedRows | None = None
    if TrainedRows.are_possible(model):
        rows = TrainedRows(model, token_ids(windows, head.tokenizer.pad_token_id))
    if arguments.device.type == "cpu":
        keep_freed_memory()
    with rows or nullcontext(), attention_kernels("sdpa"):
        trainer = _Trainer(
            model,
            arguments,
            settings=settings,
            batches=batches,
            rows=rows,
            train_dataset=list(windows),
            data_collator=head.collate,
            callbacks=[_EpochCallback(best, progress, rows)],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        trainer.check_loss()
    best.restore(model)


class _Trainer(Trainer):
    """Trainer with a batch sampler and parameter groups of our own."""

    def __init__(
        self,
        model: Any,
        arguments: TrainingArguments,
        *,
        settings: FinetuneConfig,
        batches: PairedBatchSampler,
        rows: TrainedRows | None,
        **others: Any,
    ) -> None:
        self._settings, self._batches, self._rows = settings, batches, rows
        self._unchecked: tuple[int, float, torch.Tensor] | None = None
        self._graphed: GraphedStep | None = None
        super().__init__(model, arguments, **others)

    @override
    def get_train_dataloader(self) -> Any:
        loader: DataLoader[Window] = DataLoader(
            self.train_dataset,
            batch_sampler=self._batches,
            collate_fn=self.data_collator,
            pin_memory=self.args.device.type == "cuda",
        )
        return self.accelerator.prepare(loader)

    @override
    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        optimizer: torch.optim.Optimizer = torch.optim.AdamW(
            parameter_groups(self.model, self._settings),
            betas=self._settings.betas,
            eps=self._settings.eps,
            fused=True,
        )
        if self._rows is not None:
            self._rows.follow(optimizer)
        self.optimizer = optimizer
        return optimizer

    @override
    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        del num_items_in_batch  # a loss is the mean of its micro-batch
        model.train()
        inputs = self._prepare_inputs(inputs)
        on_cpu = self.args.device.type == "cpu"

        def passes(part: Any, share: float = 1.0) -> torch.Tensor:
            with self.compute_loss_context_manager():
                loss = batch_loss(model, part) * share
            self.accelerator.backward(loss / self.current_gradient_accumulation_steps)
            return loss.detach()

        if on_cpu:
            parts = length_groups(inputs, cpu_batch_tokens())
            loss = torch.stack([passes(*part) for part in parts]).sum()
        elif self._settings.cuda_graphs:
            if self._graphed is None:
                trained = [weight for weight in model.parameters() if weight.requires_grad]
                self._graphed = GraphedStep(passes, trained, self.model.config.pad_token_id or 0)
            loss = self._graphed(inputs, self.current_gradient_accumulation_steps)
        else:
            loss = passes(inputs)
        if not on_cpu:
            # the GPU has done the step before: to read its loss does not wait for this one
            self.check_loss()
        rate = max(group["lr"] for group in self.optimizer.param_groups)
        self._unchecked = self.state.global_step + 1, rate, loss
        if on_cpu:
            self.check_loss()
        return loss / self.current_gradient_accumulation_steps

    def check_loss(self) -> None:
        """Refuse the last loss that was not checked if it is not finite."""
        if self._unchecked is None:
            return
        (step, rate, loss), self._unchecked = self._unchecked, None
        if not torch.isfinite(loss):
            raise ModelError(
                f"The loss is {float(loss)} at step {step} of "
                f"{self.state.max_steps} (learning rate {rate:.3g}). Set a lower learning rate "
                f"(--set learning_rate={self._settings.learning_rate / 10:g}), or a longer warm-up."
            )


class _EpochCallback(TrainerCallback):
    """Scores epochs and reports progress."""

    def __init__(
        self,
        best: BestEpoch,
        progress: Callable[[int, int], None] | None,
        rows: TrainedRows | None,
    ) -> None:
        self._best, self._progress, self._rows = best, progress, rows

    @override
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._progress is not None:
            self._progress(state.global_step, state.max_steps)

    @override
    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        with nullcontext() if self._rows is None else self._rows.whole():
            self._best.after_epoch(kwargs["model"])


def _training_arguments(
    settings: FinetuneConfig, *, seed: int, scratch: Path, warmup_steps: int
) -> TrainingArguments:
    gpu = torch.cuda.is_available()
    has_bf16 = gpu and torch.cuda.is_bf16_supported()
    arguments = TrainingArguments(
        output_dir=str(scratch / "trainer"),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size // settings.gradient_accumulation_steps,
        gradient_accumulation_steps=settings.gradient_accumulation_steps,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear" if settings.schedule == "linear" else "constant_with_warmup",
        warmup_steps=warmup_steps,
        max_grad_norm=settings.max_grad_norm,
        bf16=settings.precision == "bf16" or (settings.precision == "auto" and has_bf16),
        use_cpu=not gpu,
        seed=seed,
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        save_strategy="no",
        eval_strategy="no",
    )
    if arguments.n_gpu > 1:  # one run, one GPU: DataParallel would multiply the batch
        arguments._n_gpu = 1  # noqa: SLF001 (there is no public setter)
    return arguments


class PairedBatchSampler(Sampler[list[int]]):
    """Indices of each batch, in a new order in each epoch (each pass is another epoch).

    Windows without a partner are paired at random in each epoch, so that a batch of even size
    consists of whole pairs.
    """

    def __init__(
        self, num_windows: int, batch_size: int, *, seed: int, pairs: Sequence[tuple[int, int]] = ()
    ) -> None:
        assert not pairs or batch_size % 2 == 0, "an odd batch size splits a pair"
        paired = {index for pair in pairs for index in pair}
        self.num_windows, self.batch_size, self.seed = num_windows, batch_size, seed
        self.pairs = np.array(pairs, np.int64).reshape(-1, 2)
        self.singles = np.array([i for i in range(num_windows) if i not in paired], np.int64)
        self.epoch = 0

    def __len__(self) -> int:
        return math.ceil(self.num_windows / self.batch_size)

    @override
    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng((self.seed, self.epoch))
        self.epoch += 1
        singles = rng.permutation(self.singles)
        even = len(singles) // 2 * 2
        pairs = np.concatenate([self.pairs, singles[:even].reshape(-1, 2)])
        order = np.concatenate([rng.permutation(pairs).reshape(-1), singles[even:]])
        for begin in range(0, self.num_windows, self.batch_size):
            yield order[begin : begin + self.batch_size].tolist()


def paired_windows(
    windows: Sequence[Window], pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Pairs of windows from pairs of examples: the n-th with the n-th, while both have one."""
    of_example: dict[int, list[int]] = defaultdict(list)
    for index, window in enumerate(windows):
        of_example[window.example].append(index)
    return [
        pair
        for first, second in pairs
        for pair in zip(of_example[first], of_example[second], strict=False)
    ]


class BestEpoch:
    """Scores the model after each epoch and keeps the best weights in a temporary file."""

    def __init__(
        self, dev_score: Callable[[], float] | None, scratch: Path, *, higher_is_better: bool
    ) -> None:
        """Without a `dev_score` the last epoch is kept."""
        self._dev_score, self._file = dev_score, scratch / "best.safetensors"
        self._sign = 1 if higher_is_better else -1
        self.scores: list[float] = []
        """The dev score of each epoch."""

    @property
    def epoch(self) -> int | None:
        """The best epoch, from 0, the first of equals; None without dev scores."""
        signed = [self._sign * score for score in self.scores]
        return signed.index(max(signed)) if signed else None

    def after_epoch(self, model: Any) -> None:
        """Score the model and keep its weights if they are the best."""
        if self._dev_score is None:
            return
        self.scores.append(self._dev_score())
        if self.epoch == len(self.scores) - 1:
            with write_errors(self._file):
                save_model(model, str(self._file))

    def restore(self, model: Any) -> None:
        """Load the best weights into the model."""
        if self.epoch is not None and self.epoch < len(self.scores) - 1:
            load_model(model, str(self._file))

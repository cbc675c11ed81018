"""One fine-tuning run, by transformers' Trainer: our order, our learning rates, our selection."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from typing_extensions import override

from isoglot.finetune.batches import Batches
from isoglot.finetune.layerwise import parameter_groups
from isoglot.models.attention import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from isoglot.finetune.head import Head, Piece
    from isoglot.finetune.selection import Best
    from isoglot.finetune.settings import FinetuneConfig


def train(
    model: Any,
    head: Head[Any, Any],
    pieces: Sequence[Piece],
    couples: Sequence[tuple[int, int]],
    settings: FinetuneConfig,
    *,
    seed: int,
    scratch: Path,
    best: Best,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Train a model in place and leave it at its best epoch.

    Args:
        model: an encoder under a head.
        head: makes tensors of pieces.
        pieces: what to train on.
        couples: pieces, by index, that must share a batch.
        settings: for how long and how fast.
        seed: decides the order and dropout.
        scratch: a folder for files that nobody needs afterwards.
        best: judges each epoch.
        progress: told (steps done, all steps) after every step.
    """
    batches = Batches(
        len(pieces), settings.batch_size // settings.accumulate, seed=seed, couples=couples
    )
    steps = math.ceil(len(batches) / settings.accumulate) * settings.epochs
    warmup = settings.warmup if settings.warmup >= 1 else settings.warmup * steps
    trainer = _Trainer(
        model,
        _arguments(settings, seed=seed, scratch=scratch, warmup=round(warmup)),
        settings=settings,
        batches=batches,
        train_dataset=list(pieces),
        data_collator=head.collate,
        callbacks=[_Listener(best, progress)],
    )
    trainer.remove_callback(PrinterCallback)
    with kernels("sdpa"):
        trainer.train()
    best.restore(model)


def coupled_pieces(
    pieces: Sequence[Piece], couples: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Couples of pieces from couples of examples: window by window, as far as both have one."""
    of_example: dict[int, list[int]] = defaultdict(list)
    for index, piece in enumerate(pieces):
        of_example[piece.example].append(index)
    return [
        pair
        for first, second in couples
        for pair in zip(of_example[first], of_example[second], strict=False)
    ]


class _Trainer(Trainer):
    """Trainer with our batches and our parameter groups."""

    def __init__(
        self,
        model: Any,
        arguments: TrainingArguments,
        *,
        settings: FinetuneConfig,
        batches: Batches,
        **others: Any,
    ) -> None:
        self._settings, self._batches = settings, batches
        super().__init__(model, arguments, **others)

    @override
    def get_train_dataloader(self) -> Any:
        loader: DataLoader[Piece] = DataLoader(
            self.train_dataset, batch_sampler=self._batches, collate_fn=self.data_collator
        )
        return self.accelerator.prepare(loader)

    @override
    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        optimizer: torch.optim.Optimizer = torch.optim.AdamW(
            parameter_groups(self.model, self._settings),
            betas=self._settings.betas,
            eps=self._settings.eps,
        )
        self.optimizer = optimizer
        return optimizer


class _Listener(TrainerCallback):
    """Judges epochs and tells how far the training is."""

    def __init__(self, best: Best, progress: Callable[[int, int], None] | None) -> None:
        self._best, self._progress = best, progress

    @override
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._progress is not None:
            self._progress(state.global_step, state.max_steps)

    @override
    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._best.after_epoch(kwargs["model"])


def _arguments(
    settings: FinetuneConfig, *, seed: int, scratch: Path, warmup: int
) -> TrainingArguments:
    gpu = torch.cuda.is_available()
    able = gpu and torch.cuda.is_bf16_supported()
    arguments = TrainingArguments(
        output_dir=str(scratch / "trainer"),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size // settings.accumulate,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear" if settings.schedule == "linear" else "constant_with_warmup",
        warmup_steps=warmup,
        max_grad_norm=settings.clip,
        bf16=settings.precision == "bf16" or (settings.precision == "auto" and able),
        use_cpu=not gpu,
        seed=seed,
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        save_strategy="no",
        eval_strategy="no",
    )
    if arguments.n_gpu > 1:  # one run, one GPU: DataParallel would multiply the batch
        arguments._n_gpu = 1  # noqa: SLF001 (there is no public way to say it)
    return arguments

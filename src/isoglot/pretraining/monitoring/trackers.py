"""accelerate's trackers (TensorBoard, W&B, ...): numbers of each record, recipe, samples, scores.

    hyperparameters   every setting by its path, and the recipe as text
    NAME/loss, ...    the numbers of each record
    samples/stage-N   rows of the first batch of a stage as text (`text_samples.py`)
    scores            at the end: the held-out scores of the last validation, as a table

Text goes to trackers that take it: as a table where they have tables (W&B), otherwise as Markdown
(TensorBoard). Nothing of it happens during a step, and no random number is drawn for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.pretraining.environment import hyperparameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accelerate import Accelerator

    from isoglot.pretraining.config import PretrainConfig
    from isoglot.pretraining.monitoring.writers import Record

_NUMBERS_ONLY = ("aim", "mlflow", "dvclive", "swanlab")
"""Trackers whose `log` refuses text."""


class TrackerWriter:
    """Sends the settings of a run, the numbers of each record and texts to the trackers."""

    def __init__(
        self,
        accelerator: Accelerator,
        name: str,
        config: PretrainConfig,
        *,
        recipe_text: str | None = None,
        step: int = 0,
    ) -> None:
        """`step` is the last one that was taken before: 0 for a run that begins."""
        self._accelerator, self._step = accelerator, step
        self._scores: Mapping[str, float] = {}
        accelerator.init_trackers(name, config=hyperparameters(config))
        if recipe_text is not None:
            self.write_text("recipe", recipe_text)

    def write(self, record: Record) -> None:
        """Log the numbers of a record under their names."""
        self._step = int(record["step"])
        numbers = {k: v for k, v in record.items() if k != "step" and not isinstance(v, str)}
        found = {name: float(v) for name, v in numbers.items() if name.startswith("valid/")}
        self._scores = found or self._scores
        self._accelerator.log(numbers, step=self._step)

    def write_text(self, name: str, text: str) -> None:
        """Show a text as it is, at the present step."""
        # four spaces make it code in Markdown: nothing in it is formatted
        code = "".join(f"    {line}\n" for line in text.splitlines())
        self._write_text(name, text, code)

    def _write_text(self, name: str, text: str, markdown: str) -> None:
        for tracker in self._accelerator.trackers:
            if hasattr(tracker, "log_table"):
                tracker.log_table(name, columns=["text"], data=[[text]], step=self._step)
            elif tracker.name not in _NUMBERS_ONLY:
                tracker.log({name: markdown}, step=self._step)

    def close(self) -> None:
        """Send the last held-out scores, flush and close the trackers."""
        if self._scores:
            table = score_table(self._scores)
            self._write_text("scores", table, f"After step {self._step}:\n\n{table}")
        self._accelerator.end_training()


def score_table(scores: Mapping[str, float]) -> str:
    """The scores of a validation as a Markdown table: objective, metric, language, value."""
    lines = ["| objective | metric | language | held-out value |", "| --- | --- | --- | ---: |"]
    for name, value in scores.items():
        _, *objective, language, metric = name.split("/") if name.count("/") > 2 else ("",) * 4
        if metric:
            lines.append(f"| {'/'.join(objective)} | {metric} | {language} | {value:.4g} |")
    return "\n".join(lines)

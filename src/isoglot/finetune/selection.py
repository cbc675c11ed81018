"""Which epoch's model is scored. The rule is part of the result: it moves published scores.

`source-dev` takes the best on dev of the languages trained on: what a user without any data in the
other languages can do. `all-dev` takes the best mean over dev of all scored languages (XLM-K).
`last` needs no dev data. Models are kept as files in a scratch folder, one at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safetensors.torch import load_model, save_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Best:
    """The best model so far, by a score that is asked for after each epoch."""

    def __init__(
        self, judge: Callable[[], float] | None, scratch: Path, *, higher_is_better: bool
    ) -> None:
        """Without a judge, the last model is the best."""
        self._judge, self._file = judge, scratch / "best.safetensors"
        self._sign = 1 if higher_is_better else -1
        self.scores: list[float] = []
        """The score of each epoch."""

    @property
    def epoch(self) -> int | None:
        """The best epoch, from 0, the first of equals; none where nothing was judged."""
        ranked = [self._sign * score for score in self.scores]
        return ranked.index(max(ranked)) if ranked else None

    def after_epoch(self, model: Any) -> None:
        """Judge the model and keep it if it is the best."""
        if self._judge is None:
            return
        self.scores.append(self._judge())
        if self.epoch == len(self.scores) - 1:
            save_model(model, str(self._file))

    def restore(self, model: Any) -> None:
        """Put the best weights back into the model."""
        if self.epoch is not None and self.epoch < len(self.scores) - 1:
            load_model(model, str(self._file))

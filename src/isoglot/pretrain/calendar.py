"""What a stage does after which of its steps: validate, save a checkpoint, keep the model.

The loop asks it too: between two such moments nobody looks at the weights, and steps can be sent to
the device before the numbers of the one before have come back.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Moments of one stage, counted over the whole run; its last step has all but models."""

    before: int
    """Steps of the run before this stage."""
    last: int
    """The stage's last step."""
    validate_every: int
    save_every: int
    keep_every: int
    """Steps between two; 0: never, but for checkpoints."""

    def validates(self, step: int) -> bool:
        """Is the held-out loss taken after this step of the stage?"""
        return step == self.last or self._falls(step, self.validate_every)

    def saves(self, step: int) -> bool:
        """Is there a checkpoint of this step?"""
        return step == self.last or self._falls(step, self.save_every)

    def keeps(self, step: int) -> bool:
        """Is the model of this step exported, along the way?"""
        return self._falls(step, self.keep_every)

    def looks(self, step: int) -> bool:
        """Does anybody look at the weights after this step?"""
        return self.validates(step) or self.saves(step) or self.keeps(step)

    def _falls(self, step: int, every: int) -> bool:
        return every > 0 and (self.before + step) % every == 0

"""How many steps a stage takes that is told its epochs.

An epoch is as many draws as the streams have examples. How many draws a step of packed rows holds
depends on their lengths, so the first steps are planned and counted; what comes out depends on the
recipe and the corpus alone, not on devices or processes, and is the same when a run is resumed.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from isoglot.batching.loader import check_shape, open_streams
from isoglot.batching.mixture import Mixture
from isoglot.batching.padded import planner_of
from isoglot.types import Cursor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.batching.planner import BatchConfig
    from isoglot.batching.streams import SequenceMaker
    from isoglot.corpus import Corpus
    from isoglot.pretrain.config import StageConfig

_PLANNED = 64
"""Steps that are planned to count their draws."""


def steps_of(
    stage: StageConfig,
    corpus: Corpus,
    makers: Mapping[str, SequenceMaker],
    shape: BatchConfig,
    *,
    seed: int,
    number: int,
) -> int:
    """The steps of a stage: those it names, those that its epochs take, or the fewer of both.

    Args:
        stage: its settings.
        corpus: what it draws from.
        makers: the objectives of the run, by name.
        shape: of a step.
        seed: of the run.
        number: of the stage, from 0.
    """
    if stage.epochs is None:
        assert stage.steps is not None
        return stage.steps
    opened = open_streams(corpus, stage.streams, makers, row_length=shape.row_length)
    check_shape(shape, 1, opened)
    mixture = Mixture(opened, seed=seed, stage=number)
    planner = planner_of(mixture, shape, site_capacity=None)
    *_, last = itertools.islice(planner.steps(Cursor()), _PLANNED)
    cursor = last[0].cursor
    draws_per_step = (cursor.draws - len(cursor.pending)) / _PLANNED
    examples = sum(cell.num_examples for cell in mixture.cells)
    steps = max(1, round(stage.epochs * examples / draws_per_step))
    return steps if stage.steps is None else min(steps, stage.steps)

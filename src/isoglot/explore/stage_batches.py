"""Real micro-batches of a recipe's stage: those that training would read, built without a model.

    recipe + corpus --open_stage--> StageBatches --micro_batch(step, n)--> BuiltBatch

What a model writes into a batch before its forward pass (BTMLM's pseudo-tokens, the translations of
`backtranslate`) is not there: its slots are still mask tokens, its translations empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isoglot.batching.builder import PlacedSequence
from isoglot.batching.loader import Loader, LoaderConfig, open_streams
from isoglot.errors import IsoglotError, RecipeError
from isoglot.folders import find_model
from isoglot.types import Batch, Cursor

if TYPE_CHECKING:
    from isoglot.batching.planner import BatchConfig, MicroBatchPlan
    from isoglot.corpus import Corpus
    from isoglot.objectives.base import Objective
    from isoglot.pretraining.config import PretrainConfig, Recipe

MAX_STEP = 1000
"""The last step that can be shown: each step before it is planned first."""
MAX_STEP_TOKENS = 2**25
"""Tokens of a step that is planned here, at most."""
MAX_MICRO_TOKENS = 2**20
"""Tokens of a micro-batch that is built here, at most."""
_MICRO_ROWS = 16
"""Rows of a micro-batch where the recipe leaves them open (`micro_rows: auto`), at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltBatch:
    """A micro-batch, and where its sequences are and come from."""

    batch: Batch
    placed: tuple[PlacedSequence, ...]
    origins: tuple[str, ...]
    """The `source/language` of each draw."""


class StageBatches:
    """The micro-batches of one stage of a recipe on a corpus."""

    def __init__(
        self,
        config: PretrainConfig,
        corpus: Corpus,
        stage: int,
        objectives: dict[str, Objective],
        loader: Loader,
    ) -> None:
        """Use `open_stage`."""
        self.config, self.corpus, self.stage = config, corpus, stage
        self.objectives, self._loader = objectives, loader
        self._cursors = [Cursor()]

    def micro_batches(self, step: int = 1) -> int:
        """Micro-batches of a step, from 1."""
        return self._loader.planner.num_micro(step - 1)

    def micro_batch(self, step: int = 1, number: int = 0) -> BuiltBatch:
        """Micro-batch `number`, from 0, of a step of the stage, from 1."""
        if not 1 <= step <= MAX_STEP:
            raise IsoglotError(f"step {step}: choose one from 1 to {MAX_STEP:,}.")
        if not 0 <= number < self.micro_batches(step):
            last = self.micro_batches(step) - 1
            raise IsoglotError(f"micro-batch {number}: a step has those from 0 to {last}.")
        while len(self._cursors) < step:
            self._cursors.append(self._plans(self._cursors[-1])[0].cursor)
        plan = self._plans(self._cursors[step - 1])[number]
        batch, placed = self._loader.builder.build(plan)
        return BuiltBatch(batch=batch, placed=tuple(placed), origins=tuple(self._origins(plan)))

    def _plans(self, cursor: Cursor) -> list[MicroBatchPlan]:
        return self._loader.planner.plan(cursor)

    def _origins(self, plan: MicroBatchPlan) -> list[str]:
        components = self._loader.mixture.components
        found = []
        for number, example in zip(plan.draws.components, plan.draws.examples, strict=True):
            examples, _ = components[int(number)].locate(int(example))
            found.append(examples.name)
        return found


def open_stage(
    config: PretrainConfig, corpus: Corpus, stage: int = 0, *, fetch_models: bool = False
) -> StageBatches:
    """Open a stage of a recipe on a corpus, as training does; no model is read.

    Args:
        config: the recipe.
        corpus: what it draws from.
        stage: index of the stage.
        fetch_models: download a teacher, whose tokenizer `distill` needs, from the hub.

    Raises:
        RecipeError: the recipe has no such stage, or its settings do not fit together.
        CorpusError: the corpus lacks what the recipe reads.
    """
    from isoglot.pretraining.config import objectives_of, objectives_to_fit
    from isoglot.pretraining.stage_data import num_steps, with_corpus_defaults

    if not 0 <= stage < len(config.stages):
        last = len(config.stages) - 1
        raise RecipeError(f"stage {stage}: the recipe has stages.0 to stages.{last}.")
    config = with_corpus_defaults(config, corpus)
    needed = config.objectives_in(stage)
    chosen = {name: one for name, one in objectives_of(config).items() if name in needed}
    if not fetch_models:
        for name, one in chosen.items():
            _check_models(name, one)
    objectives = {name: _prepared(one, corpus) for name, one in chosen.items()}
    known = {**objectives_to_fit(config), **objectives}
    shape = _with_rows(config)
    streams = config.stages[stage].streams
    opened = open_streams(corpus, streams, known, row_length=shape.row_length)
    own = config.stages[stage]
    steps = 1
    if own.changing:  # epochs are counted only where steps matter
        steps = num_steps(own, corpus, known, shape, seed=config.seed, number=stage)
    loader = Loader(
        corpus,
        opened,
        shape,
        seed=config.seed,
        stage=stage,
        workers=LoaderConfig(num_workers=0),
        schedules=own.schedules(steps),
    )
    return StageBatches(config, corpus, stage, objectives, loader)


def fitting_recipes(corpus: Corpus) -> list[str]:
    """The built-in recipes whose streams find their sources and languages in a corpus."""
    from isoglot.recipe import load_recipe, recipe_names

    found = []
    for name in recipe_names():
        recipe: Recipe = load_recipe(name)
        try:
            for stage in recipe.stages:
                for stream in stage.streams.values():
                    stream.selected(corpus)
        except IsoglotError:
            continue
        found.append(name)
    return found


def _check_models(name: str, objective: Objective) -> None:
    """Refuse an objective whose models are not on this machine."""
    for model in objective.models():
        if find_model(model) is None:
            raise IsoglotError(
                f"objectives.{name}: {model} is not a folder on this machine, and nothing is "
                "downloaded to show a batch. Name a folder that has it."
            )


def _prepared(objective: Objective, corpus: Corpus) -> Objective:
    """The objective with what its sequences need of a corpus.

    One that adds no sequences (`cooccurrence`) counts pairs for its loss alone: left out here.
    """
    if objective.depends_on() and not objective.num_aux_sequences:
        return objective
    return objective.prepare(corpus)


def _with_rows(config: PretrainConfig) -> BatchConfig:
    """The shape of a step with a number of rows in place of `micro_rows: auto`; not too large."""
    shape, unit = config.batch, config.row_unit
    if shape.micro_rows == "auto":
        rows = next(n for n in range(min(_MICRO_ROWS, unit), 0, -1) if unit % n == 0)
        shape = replace(shape, micro_rows=rows)
    for setting, rows, limit in (
        ("rows", shape.rows, MAX_STEP_TOKENS),
        ("micro_rows", shape.micro_batch_rows, MAX_MICRO_TOKENS),
    ):
        if rows * shape.row_length > limit:
            raise RecipeError(
                f"batch.{setting}: {rows:,} rows of {shape.row_length:,} tokens are too many to "
                f"show. Set it to {max(1, limit // shape.row_length):,} or fewer."
            )
    return shape

"""A short run of three stages with a decoder: MLM, MASS, denoising and back-translation."""

from __future__ import annotations

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import TextStream
from isoglot.models.config import DecoderConfig, GenerationConfig, ModelConfig
from isoglot.objectives.backtranslate import BackTranslate
from isoglot.objectives.cooccurrence import Cooccurrence
from isoglot.objectives.denoise import Denoise
from isoglot.pretraining.checkpoints.checkpoint import CheckpointConfig
from isoglot.pretraining.config import LoggingConfig, PretrainConfig, StageConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig


def stage(steps, *objectives):
    text = TextStream(
        objectives=objectives,
        unit="sentence",
        languages=("aa", "bb"),
        target_languages=("aa", "bb"),
    )
    return StageConfig(steps=steps, streams={"text": text})


def config(**changes):
    settings = {
        "model": ModelConfig(
            size="tiny",
            num_layers=1,
            hidden_size=32,
            num_heads=2,
            max_positions=64,
            dropout=0.1,
            decoder=DecoderConfig(),
        ),
        "stages": (
            stage(3, "mlm", "cooccurrence"),
            stage(4, "mass", "cooccurrence"),
            stage(5, "denoise", "backtranslate"),
        ),
        "objectives": {
            "cooccurrence": Cooccurrence(target_objectives=("mlm", "mass")),
            "backtranslate": BackTranslate(generation=GenerationConfig(method="sample")),
            "denoise": Denoise(weight_schedule=((0, 1.0), (4, 0.1))),
        },
        "batch": BatchConfig(rows=16, micro_rows=8, row_length=64),
        "optimizer": OptimizerConfig(learning_rate=3e-3),
        "checkpoint": CheckpointConfig(every_steps=2, keep=20),
        "logging": LoggingConfig(validate_every_steps=0, validate_examples=5, trackers=()),
        **changes,
    }
    return PretrainConfig(**settings)

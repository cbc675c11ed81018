"""A short run of three stages with a decoder: MLM, MASS, denoising and back-translation."""

from __future__ import annotations

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import TextStream
from isoglot.models import DecoderConfig, ModelConfig
from isoglot.models.writing import WritingConfig
from isoglot.objectives import BackTranslate, Cooccurrence, Denoise
from isoglot.pretrain.checkpoint import CheckpointConfig
from isoglot.pretrain.config import PretrainConfig, StageConfig, WatchConfig
from isoglot.pretrain.optim import OptimizerConfig


def stage(steps, *objectives):
    text = TextStream(
        objectives=objectives, unit="sentence", languages=("aa", "bb"), others=("aa", "bb")
    )
    return StageConfig(steps=steps, streams={"text": text})


def config(**changes):
    settings = {
        "model": ModelConfig(
            size="tiny",
            layers=1,
            hidden=32,
            heads=2,
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
            "cooccurrence": Cooccurrence(on=("mlm", "mass")),
            "backtranslate": BackTranslate(writing=WritingConfig(method="sample")),
            "denoise": Denoise(schedule=((0, 1.0), (4, 0.1))),
        },
        "batch": BatchConfig(rows=16, micro_rows=8, row_length=64),
        "optimizer": OptimizerConfig(learning_rate=3e-3),
        "checkpoints": CheckpointConfig(every=2, keep=20),
        "watch": WatchConfig(validate_every=0, validate_most=5, trackers=()),
        **changes,
    }
    return PretrainConfig(**settings)

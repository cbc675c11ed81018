"""A folder in which every built-in recipe runs: a corpus in all their languages, and their models.

The recipes' own names of models (`xlm-roberta-base`, `runs/metaxlm-tiny-meta/model`) are folders of
tiny models here, so that recipes are run as they are, but for their size.
"""

from __future__ import annotations

import gc
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from isoglot.batching.loader import LoaderConfig
from isoglot.batching.planner import BatchConfig
from isoglot.corpus import Corpus
from isoglot.corpus.cleaning.cleaner import CleanConfig
from isoglot.corpus.knowledge.store import FOLDER
from isoglot.corpus.knowledge.store_writer import KnowledgeWriter
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.storage.shards import SPLITS
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from isoglot.languages import canonical_name, is_pair
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.objectives import Objective
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.pretraining.config import LoggingConfig, Recipe, objectives_of

ROW_LENGTH = 64
_SYLLABLES = ("ka", "lo", "mi", "tu", "se", "ra", "no", "pe", "du", "vi", "zo", "ba")
FEW = frozenset(("en", "de", "es", "tr", "en-de", "en-es", "en-tr"))
"""Languages and pairs that are enough for most recipes."""
_ENTITIES = 6


def languages_of(recipe: Recipe) -> set[str]:
    """The languages and pairs that a recipe names."""
    streams = [stream for stage in recipe.stages for stream in stage.streams.values()]
    return {
        canonical_name(language)
        for owner in (*streams, *recipe.objectives.values())
        for setting in ("languages", "target_languages", "description_languages")
        for language in getattr(owner, setting, ())
    }


def make_world(folder: Path, named: Collection[str]) -> Corpus:
    """A corpus in the named languages and pairs, with knowledge."""
    pairs = {name for name in named if is_pair(name)}
    languages = set(named) - pairs | {code for pair in pairs for code in pair.split("-")}
    rng = np.random.default_rng(0)
    vocabulary = [a + b + c for a in _SYLLABLES for b in _SYLLABLES for c in ("", "n", "s")]

    def say(number: int) -> str:
        return " ".join(rng.choice(vocabulary, number)) + "."

    raw = folder / "raw"
    raw.mkdir(parents=True)
    for code in languages:
        (raw / f"{code}.txt").write_text("".join(f"{say(6)} {say(7)}\n" for _ in range(12)))
    for pair in pairs:
        (raw / f"{pair}.tsv").write_text("".join(f"{say(9)}\t{say(9)}\n" for _ in range(12)))
    settings = PrepareConfig(
        sources={
            "text": SourceConfig(files={code: (f"{code}.txt",) for code in languages}),
            "pairs": SourceConfig(
                kind="pairs", format="tsv", files={pair: (f"{pair}.tsv",) for pair in pairs}
            ),
        },
        tokenizer=TokenizerConfig(vocab_size=260, byte_fallback=False),
        clean=CleanConfig(min_script_share=0.0),
        heldout_share=0.02,
    )
    prepare(settings, folder / "corpus", base=raw)
    corpus = Corpus.open(folder / "corpus")
    _write_knowledge(corpus, rng, vocabulary)
    # a run collects garbage, which takes the longer the more there is
    gc.collect()
    gc.freeze()
    return corpus


def small(recipe: Recipe) -> Recipe:
    """The recipe for two steps in each stage, of a few short rows and one or two narrow layers."""
    model = recipe.model
    if model.init_from is None:
        layers = 1 if model.decoder is None else 2
        model = replace(
            model, num_layers=layers, hidden_size=32, num_heads=2, max_positions=ROW_LENGTH
        )
    return replace(
        recipe,
        model=model,
        objectives={name: _small_objective(found) for name, found in recipe.objectives.items()},
        stages=tuple(replace(stage, steps=2, epochs=None) for stage in recipe.stages),
        batch=BatchConfig(row_length=ROW_LENGTH, rows=6, micro_rows=6),
        loader=LoaderConfig(),
        logging=LoggingConfig(validate_every_steps=0, validate_examples=1, trackers=()),
    )


def _small_objective(objective: Objective) -> Objective:
    """An objective that reads no layer beyond the first, with a short queue."""
    changes: dict[str, Any] = {}
    if getattr(objective, "layer", None) is not None:
        changes["layer"] = 1
    if isinstance(queue := getattr(objective, "queue", None), QueueConfig):
        changes["queue"] = replace(queue, size=min(queue.size, 64))
    return replace(objective, **changes)


def _write_knowledge(corpus: Corpus, rng: np.random.Generator, vocabulary: list[str]) -> None:
    encoder = HFEncoder(corpus.tokenizer_folder)

    def tokens(number: int) -> list[int]:
        ids, _ = encoder.encode([" ".join(rng.choice(vocabulary, number))])
        return ids.tolist()

    fingerprint = corpus.manifest.tokenizer.fingerprint
    writer = KnowledgeWriter(corpus.folder / FOLDER, tokenizer=fingerprint, settings={})
    items = list(range(1, _ENTITIES + 1))
    writer.entities([pa.table({"item": items, "label": [f"Q{item}" for item in items]})])
    entities = list(range(_ENTITIES))
    for language in corpus.languages:
        described = [tokens(3) for _ in entities]
        writer.descriptions(language, [pa.table({"entity": entities, "tokens": described})])
        texts = [tokens(5) for _ in entities]
        mentions = pa.table(
            {"sentence": entities, "start": [0] * 6, "end": [1] * 6, "entity": entities}
        )
        for split in SPLITS:
            writer.sentences(language, split, [pa.table({"page": entities, "tokens": texts})])
            writer.mentions(language, split, [mentions])
    writer.relations([pa.table({"relation": [5, 7], "label": ["in", "of"], "count": [9, 9]})])
    for split, shift in zip(SPLITS, (1, 2), strict=True):
        objects = [(entity + shift) % _ENTITIES for entity in entities]
        relations = [entity % 2 for entity in entities]
        table = {"subject": entities, "relation": relations, "object": objects}
        writer.triples(split, [pa.table(table)])
    writer.finish(dropped={})


def write_inputs(corpus: Corpus, recipe: Recipe) -> None:
    """The files that a recipe names, beside the corpus: dictionaries, models to start from."""
    for pattern in () if recipe.transplant is None else recipe.transplant.dictionaries:
        file = corpus.folder.parent / pattern.replace("*", "en-xx")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("kalo lomi\nmitu sera\n")
    names = {recipe.model.init_from}
    for objective in objectives_of(recipe).values():
        names |= set(objective.models())
    for name in filter(None, names):
        folder = corpus.folder.parent / name
        if folder.exists():
            continue
        torch.manual_seed(0)
        config = ModelConfig(
            size="mbert" if name.startswith("bert") else "tiny",
            num_layers=1,
            hidden_size=32,
            num_heads=2,
            max_positions=512,
        )
        encoder = Encoder.build(config, corpus.vocabulary)
        export_encoder(encoder, folder, tokenizer_folder=corpus.tokenizer_folder, card="")

"""The scoring steps of an adaptation: both encoders on held-out data, and what is chosen before.

    before --> (training) --> choose layers on development pairs --> after --> link --> speed

Development pairs are the held-out pairs of the corpus, as text. Layers and poolings are chosen on
them, never on the held-out data that the scores are of. The corpus holds token ids, so texts are
decoded; what a tokenizer normalizes (case, spaces) stays so. Sentences per second are those of the
encoder on this machine, without tokenization.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from isoglot.adaptation.comparison import Development
from isoglot.adaptation.folder import hash_files, hash_folder, hash_model, hash_sentences
from isoglot.adaptation.scores import (
    HeldoutData,
    ModelScores,
    gold_alignments,
    score_model,
    score_pairs,
)
from isoglot.atomic import replace_folder, write_text
from isoglot.batching.mixture import evenly_spaced
from isoglot.corpus.tokenization.vocabulary import open_tokenizer, text_decoder
from isoglot.errors import ModelError
from isoglot.evaluation.embed import encode_in_batches
from isoglot.evaluation.exported import SentenceModule, exported_vectors
from isoglot.evaluation.loading import load_for_scoring
from isoglot.evaluation.pairs import read_pairs
from isoglot.evaluation.tokenize_texts import tokenize_texts
from isoglot.tasks.base import subsample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from isoglot.adaptation.carry_out import Adaptation
    from isoglot.adaptation.comparison import Choice, Comparison
    from isoglot.corpus import Corpus

MAX_PAIRS = 1000
"""Development pairs of each pair of languages."""
TIMED_SENTENCES, TIMINGS = 256, 3
"""Sentences that the speed is measured with, and how often; the median counts."""


def score(work: Adaptation, name: str, model: Path, sentences: Path | None = None) -> ModelScores:
    """The scores of the encoder, before or after."""
    folders = [Path(one).expanduser() for one in work.config.alignments]
    gold = gold_alignments(folders, work.config.languages)

    def measure() -> dict[str, Any]:
        def report(sentence: str, share: float) -> None:
            work.display.say(f"  {sentence}")
            work.display.advance(share)

        data = HeldoutData.read(work.folder.heldout, gold)
        found = score_model(model, data, sentences=sentences, report=report, note=work.note)
        return found.to_json()

    inputs = {
        "model": hash_model(model),
        "heldout": hash_folder(work.folder.heldout),
        "alignments": [hash_files(split.files) for _, split in gold],
        "sentences": None if sentences is None else hash_sentences(sentences),
    }
    found = work.step(name, inputs, measure)
    seconds = work.records.seconds(name)
    if name == "before" and seconds is not None:
        work.display.expect("after", seconds)
    return ModelScores.from_json(found)


def own_vectors(folder: Path) -> SentenceModule | None:
    """The sentence vectors that a model folder gives by modules of its own.

    None where they are the mean of the last layer, or cannot be computed here.
    """
    try:
        found = exported_vectors(folder)
    except ModelError:
        return None
    return None if found.name == SentenceModule().name else found


def choose_layers(work: Adaptation, corpus: Corpus) -> Development:
    """Choose layers and pooling on the development pairs; write the folder for sentences."""
    pairs, model, out = work.folder.development, work.trained_model, work.folder.sentence_model

    def measure() -> dict[str, Any]:
        write_development_pairs(corpus, pairs)
        before = score_development(work.base, pairs)
        work.display.advance(0.3)
        after = score_development(model, pairs)
        work.display.advance(0.6)
        vectors = export_sentences(model, out, pairs, work.console)
        own = own_vectors(work.base)
        return {
            "before": before,
            "after": after,
            "vectors": vectors,
            "own_vectors": "" if own is None else own.name,
        }

    inputs = {
        "before": hash_model(work.base),
        "after": hash_model(model),
        "corpus": corpus.fingerprint,
    }
    found = Development(**work.step("choose", inputs, measure, [pairs]))
    if found.vectors and not out.is_dir():  # it was removed
        work.records.forget("export")  # which writes its card, with the scores
        export_sentences(model, out, pairs, work.console)
    return found


def score_knowledge(work: Adaptation, corpus: Corpus) -> tuple[list[Comparison], list[Choice]]:
    """Both models on held-out mentions and facts; nothing without knowledge."""
    if work.plan.prepare.knowledge is None:
        return [], []
    from isoglot.adaptation.linking import LinkingScores, compare_linking, score_both

    both, folder = (work.base, work.trained_model), work.folder.linking
    measure = partial(
        score_both, corpus, both, folder, advance=work.display.advance, note=work.note
    )
    inputs = {
        "models": [hash_model(model) for model in both],
        "knowledge": corpus.knowledge.fingerprint,
    }
    found = work.step("link", inputs, measure, [folder])
    return compare_linking(*map(LinkingScores.from_json, found.values())) if found else ([], [])


def compare_speed(work: Adaptation) -> tuple[float, float]:
    """Sentences per second of both encoders, timed side by side."""

    def measure() -> dict[str, Any]:
        lines = HeldoutData.read(work.folder.heldout).lines.values()
        both = [work.base, work.trained_model]
        found = sentences_per_second(both, [line for own in lines for line in own])
        return {"before": found[0], "after": found[1]}

    models = [hash_model(work.base), hash_model(work.trained_model)]
    found = work.step("speed", {"models": models}, measure)
    return found["before"], found["after"]


def write_development_pairs(corpus: Corpus, folder: Path) -> dict[str, int]:
    """Write `A-B.tsv` of each pair of languages with held-out pairs; gives how many there are."""
    tokenizer = open_tokenizer(corpus.tokenizer_folder)
    counts: dict[str, int] = {}
    with replace_folder(folder) as new:
        for name, rows in _heldout_pairs(corpus, tokenizer).items():
            if rows:
                counts[name] = len(rows)
                write_text(new / f"{name}.tsv", "".join(f"{a}\t{b}\n" for a, b in rows))
    return counts


def _heldout_pairs(corpus: Corpus, tokenizer: Any) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, dict[tuple[str, str], None]] = {}
    decode = text_decoder(tokenizer)
    for source in corpus.sources("pairs"):
        for name in corpus.manifest.sources[source].languages:
            table = corpus.table(source, name, "heldout")
            for row in evenly_spaced(table.num_rows, MAX_PAIRS).tolist():
                first, second = (
                    decode(table.ids(column, row).tolist()) for column in table.columns
                )
                # others would be left out of the scores: any model retrieves the same text
                if first and second and first.casefold() != second.casefold():
                    found.setdefault(name, {})[first, second] = None
    return {name: list(rows)[:MAX_PAIRS] for name, rows in found.items()}


def score_development(model: Path, folder: Path) -> dict[str, list[str]]:
    """Retrieval of a model on the development pairs, as `ModelScores.retrieval`."""
    files = sorted(folder.glob("*.tsv"))
    if not files:
        return {}
    encoder, tokenizer = load_for_scoring(model)
    pairs = read_pairs(files, MAX_PAIRS)
    return {name: score_pairs(encoder, tokenizer, name, sides) for name, sides in pairs.items()}


def export_sentences(model: Path, out: Path, folder: Path, console: Console) -> str:
    """Write the sentence-transformers folder of a model; gives its vectors in words.

    Pooling and layer are chosen on the development pairs. A model that such a folder cannot hold
    (language embeddings without position embeddings) gets none, a note says so, and the vectors
    are an empty text.
    """
    from isoglot.exporting.export import ExportOptions, export_model

    files = tuple(sorted(folder.glob("*.tsv")))
    options = ExportOptions(
        formats=("sentence-transformers",), pairs=files, pooling=None if files else "mean"
    )
    try:
        choice = export_model(model, out, options, console=console).pooling
    except ModelError as error:
        console.print(f"note: no {out.name}: {error}", highlight=False, soft_wrap=True)
        return ""
    assert choice is not None, "a sentence-transformers folder has a pooling"
    return choice.describe()


def sentences_per_second(folders: Sequence[Path], lines: Sequence[str]) -> list[float]:
    """The speed of encoders on the same sentences, the median of several passes.

    The encoders take turns, so that other work on the machine slows all of them alike. Their first
    passes, which warm up, do not count.
    """
    chosen = subsample(list(lines), TIMED_SENTENCES)
    loaded = [load_for_scoring(folder) for folder in folders]
    encoded = [tokenize_texts(of, chosen, encoder.max_positions) for encoder, of in loaded]
    seconds: list[list[float]] = [[] for _ in folders]
    for _ in range(TIMINGS + 1):
        for (encoder, tokenizer), ids, taken in zip(loaded, encoded, seconds, strict=True):
            began = time.monotonic()
            for _, _, states in encode_in_batches(encoder, ids, tokenizer.pad_token_id):
                states.hidden.sum().item()  # waits for the GPU
            taken.append(time.monotonic() - began)
    return [len(chosen) / median(taken[1:]) for taken in seconds]

"""The scores of one model, each at a layer that was chosen on other data than it is scored on.

| score | chosen on | scored on |
|---|---|---|
| ntrex, tatoeba | layer and pooling: NTREX, every other document | the other documents; Tatoeba |
| aer_joint, aer_alone | layer: odd pairs of the gold links | even pairs (transport; argmax) |
| lexicon | layer or table: 500 words of the training lexicon | 2,000 test words, CSLS |
| pos, ner | nothing: one setting for all | zero-shot from 4,000 English sentences |
| nli | nothing: one setting for all | zero-shot from 2,490 English pairs |
| questions | nothing: one setting for all | zero-shot from 2,500 English questions |
| facts | layer and pooling: development facts | test facts (`facts.py`), if the tests have them |

`development` has the values of the data that layers were chosen on, and of more sentences for
parts of speech: a recipe is chosen by these, and tested by the scores.
"""

from __future__ import annotations

import time
import traceback
from collections import defaultdict
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch import Tensor

    from isoglot.types import Rows

Choice = tuple[str, int]
"""A pooling and a layer."""
POOLINGS: dict[str, Callable[[Rows], Tensor]] = {
    "mean": lambda rows: rows.sequences >= 0,
    "first token": lambda rows: (rows.sequences >= 0) & (rows.positions == 0),
}
"""Of a sentence: which tokens of padded rows are averaged."""
TRAINED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pos": ("ud-pos", "accuracy", {"epochs": 2}),
    "ner": ("wikiann", "f1", {"epochs": 2}),
    "nli": ("xnli", "accuracy", {"epochs": 3}),
    "questions": (
        "tydiqa",
        "f1",
        {"epochs": 3, "max_length": 256, "stride": 64, "n_best": 5, "max_answer_tokens": 20},
    ),
}
"""Score -> task, metric and settings of fine-tuning."""
FINETUNE_SETTINGS = {
    "learning_rate": 3e-4,
    "batch_size": 32,
    "warmup_ratio": 0.1,
    "selection": "last",
}
SMALL_TESTS = 12
"""Examples of each test that `--small` reads."""
DEV = "dev"
"""The treebank of parts of speech that recipes are chosen by."""


def best(values: Mapping[Any, list[float]]) -> Any:
    """The key with the highest mean."""
    return max(values, key=lambda key: fmean(values[key]))


def sentence_scores(
    encoder: Any, tokenizer: Any, tests: Path, limit: int | None = None
) -> dict[str, Any]:
    """Accuracy@1, mean over languages and both directions, in percent."""
    accuracies = {
        name: _retrieval(encoder, tokenizer, tests / place, limit)
        for name, place in (("dev", "ntrex/dev"), ("ntrex", "ntrex/test"), ("tatoeba", "tatoeba"))
    }
    chosen = best(accuracies["dev"])
    by_pooling = {
        pooling: best({key: of for key, of in accuracies["dev"].items() if key[0] == pooling})
        for pooling in POOLINGS
    }
    return {
        "ntrex": fmean(accuracies["ntrex"][chosen]),
        "tatoeba": fmean(accuracies["tatoeba"][chosen]),
        "development": {"ntrex": fmean(accuracies["dev"][chosen])},
        "details": {
            "sentences chosen": f"{chosen[0]}, layer {chosen[1]}",
            **{
                f"{test}, {pooling}": fmean(accuracies[test][key])
                for test in ("ntrex", "tatoeba")
                for pooling, key in by_pooling.items()
            },
        },
    }


def _retrieval(
    encoder: Any, tokenizer: Any, folder: Path, limit: int | None
) -> dict[Choice, list[float]]:
    """(pooling, layer) -> accuracies of all languages and directions."""
    from benchmarks.claims.pooling import accuracies_by_layer, pooled_layers

    found: dict[Choice, list[float]] = defaultdict(list)
    known: dict[tuple[str, ...], dict[str, Tensor]] = {}
    for file in sorted(folder.glob("*.tsv")):
        rows = _rows(file, limit)
        sides = [tuple(column) for column in zip(*rows, strict=True)]
        for side in sides:
            if side not in known:
                known[side] = pooled_layers(encoder, tokenizer, side, POOLINGS)
        for pooling in POOLINGS:
            one, other = (known[side][pooling] for side in sides)
            for query, key, texts in ((one, other, sides[1]), (other, one, sides[0])):
                for layer, value in enumerate(accuracies_by_layer(query, key, texts)):
                    found[pooling, layer].append(100 * value)
    return found


def _rows(file: Path, limit: int | None) -> list[list[str]]:
    """The columns of each line; `limit`: the first lines."""
    lines = file.read_text(encoding="utf-8").splitlines()[:limit]
    return [line.split("\t") for line in lines]


def alignment_scores(
    encoder: Any, tokenizer: Any, tests: Path, limit: int | None = None
) -> dict[str, Any]:
    """Alignment error rate of two aligners, mean over pairs of languages, in percent."""
    from isoglot.evaluation.settings import FeatureConfig
    from isoglot.evaluation.word_alignment import align_words
    from isoglot.tasks import find_task
    from isoglot.tasks.base import data_folders

    task = find_task("alignment")
    scores: dict[str, Any] = {"details": {}, "development": {}}
    for name, aligner in (("aer_joint", "transport"), ("aer_alone", "argmax")):
        halves: dict[str, dict[int, list[float]]] = {
            "dev": defaultdict(list),
            "test": defaultdict(list),
        }
        for split in task.splits_in(data_folders(tests / "eval")):
            examples = task.read(split)[:limit]
            settings = FeatureConfig(aligner=aligner)  # type: ignore[arg-type]
            for layer, links in enumerate(align_words(encoder, tokenizer, examples, settings)):
                for start, half in enumerate(("test", "dev")):
                    found = task.score(examples[start::2], links[start::2], split.language)
                    halves[half][layer].append(100 * found["aer"])
        layer = min(halves["dev"], key=lambda one: fmean(halves["dev"][one]))
        scores[name] = fmean(halves["test"][layer])
        scores["development"][name] = fmean(halves["dev"][layer])
        scores["details"][f"{name} layer"] = layer
    return scores


def lexicon_scores(
    encoder: Any, tokenizer: Any, tests: Path, limit: int | None = None
) -> dict[str, Any]:
    """Precision@1 by CSLS, mean over pairs of languages, in percent."""
    parts: dict[str, dict[Any, list[float]]] = {}
    for part in ("train.freq.500", "test.freq.2k"):
        parts[part] = defaultdict(list)
        for file in sorted((tests / "eval" / "bli").glob(f"*/*/yacle.{part}.*.tsv")):
            for layer, value in _lexicon(encoder, tokenizer, file, limit).items():
                parts[part][layer].append(value)
    chosen = best(parts["train.freq.500"])
    return {
        "lexicon": fmean(parts["test.freq.2k"][chosen]),
        "development": {"lexicon": fmean(parts["train.freq.500"][chosen])},
        "details": {"lexicon layer": "table" if chosen is None else chosen},
    }


def _lexicon(
    encoder: Any, tokenizer: Any, file: Path, limit: int | None
) -> dict[int | None, float]:
    """Layer (none: the embedding table) -> precision@1."""
    from isoglot.evaluation.word_vectors import csls, word_vectors

    language, other = file.parent.name.split("-")
    rows = _rows(file, limit)
    words, targets = (list(dict.fromkeys(column)) for column in zip(*rows, strict=True))
    right = {(first, second) for first, second in rows}
    told = [(word, language) for word in words] + [(word, other) for word in targets]
    found = {}
    for vectors in word_vectors(encoder, tokenizer, told):
        similar = csls(vectors.unit(words, language) @ vectors.unit(targets, other).T)
        nearest = similar.argmax(dim=1).tolist()
        hits = [(word, targets[place]) in right for word, place in zip(words, nearest, strict=True)]
        found[vectors.layer] = 100 * fmean(hits)
    return found


def trained_score(name: str, model: Path, tests: Path, seed: int, *, small: bool) -> dict[str, Any]:
    """A fine-tuned score, zero-shot: the mean over languages other than English, in percent."""
    from benchmarks.claims.questions import FOLDER, chance
    from isoglot.finetuning.finetune import finetune

    task, metric, own = TRAINED[name]
    settings = {**FINETUNE_SETTINGS, **own}
    if small:
        settings |= {"epochs": 1, "max_train_examples": 64, "max_test_examples": 8}
    results = finetune(
        model, [task], tests / "eval", protocol="xtreme", settings=settings, seeds=[seed]
    )
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for score in results.scores:
        kind, _, treebank = score.metric.partition(" ")
        if kind == metric:
            values[score.language][treebank] = 100 * score.value
    # a language with two treebanks has their mean, too
    tested = {
        code: next((of[one] for one in of if one not in ("", DEV)), of[""])
        for code, of in values.items()
    }
    details: dict[str, Any] = {f"{name} by language": tested}
    if name == "questions":
        details["questions chance"] = chance(tests / "eval" / FOLDER)
    development = [of[DEV] for code, of in values.items() if code != "en" and DEV in of]
    return {
        name: fmean(value for code, value in tested.items() if code != "en"),
        "development": {name: fmean(development)} if development else {},
        "details": details,
    }


def all_scores(model: Path, tests: Path, seed: int, *, small: bool = False) -> dict[str, Any]:
    """All scores of a model folder, how they were chosen, and the seconds that each kind took.

    A kind that fails is left out; `errors` says why.
    """
    from benchmarks.claims.facts import fact_scores
    from isoglot.evaluation.loading import load_for_scoring

    encoder, tokenizer = load_for_scoring(model)
    limit = SMALL_TESTS if small else None
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "sentences": partial(sentence_scores, encoder, tokenizer, tests, limit),
        "alignment": partial(alignment_scores, encoder, tokenizer, tests, limit),
        "lexicon": partial(lexicon_scores, encoder, tokenizer, tests, limit),
        "facts": partial(fact_scores, encoder, tokenizer, tests, limit),
    } | {name: partial(trained_score, name, model, tests, seed, small=small) for name in TRAINED}
    found: dict[str, dict[str, Any]] = {
        part: {} for part in ("scores", "development", "details", "seconds_of", "errors")
    }
    for kind, score in kinds.items():
        began = time.perf_counter()
        try:
            values = score()
        except Exception:  # the other scores of a trained model are worth keeping
            found["errors"][kind] = traceback.format_exc(limit=-6)
            continue
        for part in ("development", "details"):
            found[part] |= values.pop(part, {})
        found["scores"] |= values
        found["seconds_of"][kind] = round(time.perf_counter() - began, 1)
    if not found["errors"]:
        del found["errors"]
    return found

"""The scores of one model, each at a layer that was chosen on other data than it is scored on.

| score | chosen on | scored on |
|---|---|---|
| ntrex, tatoeba | layer and pooling: NTREX, every other document | the other documents; Tatoeba |
| aer_joint, aer_alone | layer: odd pairs of the gold links | even pairs (transport; argmax) |
| lexicon | layer or table: 500 words of the training lexicon | 2,000 test words, CSLS |
| pos | nothing: one epoch setting for all | zero-shot from 4,000 English sentences |
| facts | layer and pooling: development facts | test facts (`facts.py`), if the tests have them |
"""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

Choice = tuple[str, int]
"""A pooling and a layer."""
POOLINGS = ("mean", "first token")
POS_SETTINGS = {
    "epochs": 2,
    "learning_rate": 3e-4,
    "batch_size": 32,
    "warmup_ratio": 0.1,
    "selection": "last",
}


def best(values: Mapping[Any, list[float]]) -> Any:
    """The key with the highest mean."""
    return max(values, key=lambda key: fmean(values[key]))


def sentence_scores(encoder: Any, tokenizer: Any, tests: Path) -> dict[str, Any]:
    """Accuracy@1, mean over languages and both directions, in percent."""
    accuracies = {
        name: _retrieval(encoder, tokenizer, tests / place)
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
        "details": {
            "sentences chosen": f"{chosen[0]}, layer {chosen[1]}",
            **{
                f"{test}, {pooling}": fmean(accuracies[test][key])
                for test in ("ntrex", "tatoeba")
                for pooling, key in by_pooling.items()
            },
        },
    }


def _retrieval(encoder: Any, tokenizer: Any, folder: Path) -> dict[Choice, list[float]]:
    """(pooling, layer) -> accuracies of all languages and directions."""
    import torch

    from isoglot.evaluation.embed import embed
    from isoglot.evaluation.retrieval import retrieval_accuracy

    device = "cuda" if torch.cuda.is_available() else "cpu"
    found: dict[Choice, list[float]] = defaultdict(list)
    known: dict[tuple[str, tuple[str, ...]], Tensor] = {}
    for file in sorted(folder.glob("*.tsv")):
        rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
        sides = [tuple(column) for column in zip(*rows, strict=True)]
        for pooling in POOLINGS:
            for side in sides:
                if (pooling, side) not in known:
                    vectors = embed(encoder, tokenizer, side, first_token=pooling == "first token")
                    known[pooling, side] = vectors.to(device)
            one, other = (known[pooling, side] for side in sides)
            for layer in range(len(one)):
                for query, key, texts in ((one, other, sides[1]), (other, one, sides[0])):
                    value = retrieval_accuracy(query[layer], key[layer], texts)
                    found[pooling, layer].append(100 * value)
    return found


def alignment_scores(encoder: Any, tokenizer: Any, tests: Path) -> dict[str, Any]:
    """Alignment error rate of two aligners, mean over pairs of languages, in percent."""
    from isoglot.evaluation.settings import FeatureConfig
    from isoglot.evaluation.word_alignment import align_words
    from isoglot.tasks import find_task
    from isoglot.tasks.base import data_folders

    task = find_task("alignment")
    scores: dict[str, Any] = {"details": {}}
    for name, aligner in (("aer_joint", "transport"), ("aer_alone", "argmax")):
        halves: dict[str, dict[int, list[float]]] = {
            "dev": defaultdict(list),
            "test": defaultdict(list),
        }
        for split in task.splits_in(data_folders(tests / "eval")):
            examples = task.read(split)
            settings = FeatureConfig(aligner=aligner)  # type: ignore[arg-type]
            for layer, links in enumerate(align_words(encoder, tokenizer, examples, settings)):
                for start, half in enumerate(("test", "dev")):
                    found = task.score(examples[start::2], links[start::2], split.language)
                    halves[half][layer].append(100 * found["aer"])
        layer = min(halves["dev"], key=lambda one: fmean(halves["dev"][one]))
        scores[name] = fmean(halves["test"][layer])
        scores["details"][f"{name} layer"] = layer
    return scores


def lexicon_scores(encoder: Any, tokenizer: Any, tests: Path) -> dict[str, Any]:
    """Precision@1 by CSLS, mean over pairs of languages, in percent."""
    parts: dict[str, dict[Any, list[float]]] = {}
    for part in ("train.freq.500", "test.freq.2k"):
        parts[part] = defaultdict(list)
        for file in sorted((tests / "eval" / "bli").glob(f"*/*/yacle.{part}.*.tsv")):
            for layer, value in _lexicon(encoder, tokenizer, file).items():
                parts[part][layer].append(value)
    chosen = best(parts["train.freq.500"])
    return {
        "lexicon": fmean(parts["test.freq.2k"][chosen]),
        "details": {"lexicon layer": "table" if chosen is None else chosen},
    }


def _lexicon(encoder: Any, tokenizer: Any, file: Path) -> dict[int | None, float]:
    """Layer (none: the embedding table) -> precision@1."""
    from isoglot.evaluation.word_vectors import csls, word_vectors

    language, other = file.parent.name.split("-")
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
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


def token_scores(model: Path, tests: Path, seed: int, *, small: bool) -> dict[str, Any]:
    """Zero-shot UD-POS, mean accuracy over languages other than English, in percent."""
    from isoglot.finetuning.finetune import finetune

    settings = dict(POS_SETTINGS)
    if small:
        settings |= {"epochs": 1, "max_train_examples": 64, "max_test_examples": 8}
    results = finetune(
        model, ["ud-pos"], tests / "eval", protocol="xtreme", settings=settings, seeds=[seed]
    )
    by_language = {
        score.language: 100 * score.value for score in results.scores if score.metric == "accuracy"
    }
    others = [value for code, value in by_language.items() if code != "en"]
    return {"pos": fmean(others), "details": {"pos by language": by_language}}


def all_scores(model: Path, tests: Path, seed: int, *, small: bool = False) -> dict[str, Any]:
    """All scores of a model folder, and how they were chosen."""
    from benchmarks.claims.facts import fact_scores
    from isoglot.evaluation.loading import load_for_scoring

    encoder, tokenizer = load_for_scoring(model)
    parts = [
        sentence_scores(encoder, tokenizer, tests),
        alignment_scores(encoder, tokenizer, tests),
        lexicon_scores(encoder, tokenizer, tests),
        fact_scores(encoder, tokenizer, tests),
    ]
    del encoder
    parts.append(token_scores(model, tests, seed, small=small))
    details = {key: value for part in parts for key, value in part.pop("details").items()}
    return {"scores": {key: value for part in parts for key, value in part.items()}} | {
        "details": details
    }

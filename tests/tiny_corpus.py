"""A small prepared corpus made in code: three made-up languages that translate word for word."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig

LANGUAGES = ("aa", "bb", "cc")
_SYLLABLES = {
    "aa": ["ka", "lo", "mi", "tu", "se", "ra", "no", "pe"],
    "bb": ["бо", "да", "ги", "му", "ле", "ря", "со", "ты"],
    "cc": ["zha", "quo", "xi", "wue", "vy", "jax", "kro", "fli"],
}


@cache
def words(language: str, number: int = 120) -> list[str]:
    rng = np.random.default_rng(LANGUAGES.index(language))
    found: dict[str, None] = {}
    while len(found) < number:
        found["".join(rng.choice(_SYLLABLES[language], rng.integers(1, 4)))] = None
    return list(found)


def write_raw(folder: Path, *, sentences: int = 300, pairs: int = 200, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    lexicon = {language: words(language) for language in LANGUAGES}

    def meaning() -> np.ndarray:
        return (rng.zipf(1.3, rng.integers(3, 14)) - 1) % 120

    def say(language: str, ideas: np.ndarray) -> str:
        ordered = ideas[::-1] if language == "cc" else ideas
        return " ".join(lexicon[language][i] for i in ordered) + "."

    (folder / "text").mkdir(parents=True, exist_ok=True)
    (folder / "pairs").mkdir(exist_ok=True)
    for number, language in enumerate(LANGUAGES):
        lines = []
        for i in range(sentences // (number + 1)):
            lines.append(say(language, meaning()))
            if i % 7 == 6:
                lines.append("")
        (folder / "text" / f"{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for other in LANGUAGES[1:]:
        rows = []
        for _ in range(pairs):
            ideas = meaning()
            rows.append(f"{say('aa', ideas)}\t{say(other, ideas)}")
        file = folder / "pairs" / f"aa-{other}.tsv"
        file.write_text("\n".join(rows) + "\n", encoding="utf-8")


def config(**changes: object) -> PrepareConfig:
    settings: dict[str, object] = {
        "sources": {
            "text": SourceConfig(
                kind="text",
                format="lines",
                files={language: (f"text/{language}.txt",) for language in LANGUAGES},
            ),
            "pairs": SourceConfig(
                kind="pairs",
                format="tsv",
                files={f"aa-{other}": (f"pairs/aa-{other}.tsv",) for other in LANGUAGES[1:]},
            ),
        },
        "tokenizer": TokenizerConfig(vocab_size=400, byte_fallback=False),
        "heldout_share": 0.05,
        **changes,
    }
    return PrepareConfig(**settings)  # type: ignore[arg-type]


def make_corpus(
    folder: Path,
    *,
    seed: int = 0,
    sentences: int = 300,
    pairs: int = 200,
    vocabulary: int = 400,
) -> Corpus:
    raw = folder / "raw"
    write_raw(raw, sentences=sentences, pairs=pairs, seed=seed)
    tokenizer = TokenizerConfig(vocab_size=vocabulary, byte_fallback=False)
    prepare(config(tokenizer=tokenizer), folder / "corpus", base=raw)
    return Corpus.open(folder / "corpus")

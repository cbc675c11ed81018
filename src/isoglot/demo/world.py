"""A prepared corpus of generated text: the testbed on disk, prepared as any other text is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

PIVOT = "en"
TEST_PAIRS = 300


def generated_corpus(
    folder: Path,
    terminal: Console,
    *,
    languages: tuple[str, ...] | None = None,
    sentences: int = 20_000,
    pairs: int = 10_000,
    concepts: int | None = None,
    entities: int | None = None,
    vocabulary: int = 4000,
) -> Path:
    """Generate text and translations into a folder and prepare them; gives the corpus folder."""
    from isoglot import testbed
    from isoglot.corpus import PrepareConfig, SourceConfig, TokenizerConfig, prepare

    languages = languages or testbed.LANGUAGES
    others = [language for language in languages if language != PIVOT]
    corpus, raw = folder / "corpus", folder / "raw"
    if not (corpus / "manifest.json").is_file():
        terminal.print(f"writing text and translations in {', '.join(languages)} to {raw}")
        testbed.write(
            raw,
            languages=languages,
            sentences=sentences,
            pairs=pairs,
            test_pairs=TEST_PAIRS,
            concepts=concepts,
            entities=entities,
        )
        terminal.print(f"preparing {corpus}: cleaning, training a tokenizer, encoding")
    config = PrepareConfig(
        sources={
            "text": SourceConfig(
                kind="text",
                format="lines",
                files={code: (f"text/{code}.txt",) for code in languages},
            ),
            "pairs": SourceConfig(
                kind="pairs",
                format="tsv",
                files={f"{PIVOT}-{code}": (f"pairs/{PIVOT}-{code}.tsv",) for code in others},
            ),
        },
        tokenizer=TokenizerConfig(size=vocabulary, byte_fallback=False, max_sentences=40_000),
    )
    prepare(config, corpus, base=raw)
    return corpus

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from isoglot.corpus.cleaning.cleaner import CleanConfig
from isoglot.corpus.cleaning.column_order import are_swapped
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import CorpusError
from tests.corpus.sentences import SENTENCES

ROWS = 60


def sides(*codes: str, rows: int = ROWS) -> list[list[str]]:
    """Sentences of each language, numbered so that none is a duplicate."""
    parts = [[one for one in SENTENCES[code].split(". ") if one] for code in codes]
    return [[f"{of[n % len(of)]}, {n}" for n in range(rows)] for of in parts]


def write(path: Path, *columns: list[str]) -> Path:
    rows = zip(*columns, strict=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_sides_in_the_language_of_the_other():
    english, swahili = sides("en", "sw")
    assert are_swapped(swahili, english, ("en", "sw"))
    assert are_swapped(swahili, english, ("en_GB", "sw_KE"))
    assert not are_swapped(english, swahili, ("en", "sw"))
    # one side alone says nothing, as two languages may be mixed
    assert not are_swapped(swahili, swahili, ("en", "sw"))
    half = swahili[: ROWS // 2] + english[ROWS // 2 :]
    assert not are_swapped(half, english, ("en", "sw"))


def test_what_identification_does_not_know():
    english, swahili = sides("en", "sw")
    for unknown in (("xx", "sw"), ("en", "xx"), ("en", "en_GB")):
        assert not are_swapped(swahili, english, unknown)
    assert not are_swapped([], [], ("en", "sw"))


def prepared(folder: Path, source: SourceConfig, tokenizer: Path, caplog, **clean: float) -> str:
    """What `prepare` warns of."""
    settings = PrepareConfig(
        sources={"news": source},
        tokenizer=TokenizerConfig(folder=str(tokenizer)),
        clean=CleanConfig(**clean),  # type: ignore[arg-type]
    )
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="isoglot"):
        prepare(settings, folder / "corpus", base=folder, overwrite=True)
    return "\n".join(record.getMessage() for record in caplog.records)


def test_prepare_names_the_file_and_the_remedy(tmp_path, tokenizer, caplog):
    english, german = sides("en", "de")
    for name in ("b.tsv", "c.tsv"):
        write(tmp_path / name, german, english)
    write(tmp_path / "a.tsv", english, german)
    source = SourceConfig(kind="pairs", format="tsv", files={"eng-de": ("*.tsv",)})
    assert prepared(tmp_path, source, tokenizer, caplog) == (
        f"{tmp_path}/b.tsv and 1 more: the first side looks like de and the second like en, and "
        "sources.news.files.eng-de says that eng is first. Name the pair de-eng, or exchange "
        "`first` and `second` in the options of the source."
    )
    # the remedies
    right = SourceConfig(kind="pairs", format="tsv", files={"de-eng": ("[bc].tsv",)})
    assert prepared(tmp_path, right, tokenizer, caplog) == ""
    options: dict[str, str | int | bool] = {"first": 2, "second": 1}
    right = SourceConfig(
        kind="pairs", format="tsv", options=options, files={"en-de": ("[bc].tsv",)}
    )
    assert prepared(tmp_path, right, tokenizer, caplog) == ""


def test_two_files_and_fields_in_the_other_order(tmp_path, tokenizer, caplog):
    english, german = sides("en", "de")
    one, other = write(tmp_path / "one", german), write(tmp_path / "other", english)
    files: dict[str, tuple[str, ...]] = {"en-de": (one.name, other.name)}
    found = prepared(
        tmp_path, SourceConfig(kind="pairs", format="moses", files=files), tokenizer, caplog
    )
    assert found.startswith(f"{one} and {other}: the first side looks like de")
    assert found.endswith("List the file of en first.")
    objects = [json.dumps({"src": a, "tgt": b}) for a, b in zip(german, english, strict=True)]
    write(tmp_path / "a.jsonl", objects)
    fields = SourceConfig(
        kind="pairs",
        format="jsonl",
        options={"first": "src", "second": "tgt"},
        files={"en-de": ("a.jsonl",)},
    )
    assert "a.jsonl: the first side looks like de" in prepared(tmp_path, fields, tokenizer, caplog)


@pytest.mark.parametrize(
    ("codes", "clean"), [(("ru", "en"), {}), (("de", "en"), {"language_confidence": 0.5})]
)
def test_sides_that_are_all_dropped(codes, clean, tmp_path, tokenizer, caplog):
    """For their script, or their language: the warning says why nothing is left."""
    write(tmp_path / "a.tsv", *sides(*codes))
    first, second = codes
    source = SourceConfig(kind="pairs", format="tsv", files={f"{second}-{first}": ("a.tsv",)})
    with pytest.raises(CorpusError, match="was kept for training"):
        prepared(tmp_path, source, tokenizer, caplog, **clean)
    assert f"the first side looks like {first} and the second like {second}" in caplog.text


def test_a_continued_preparation_warns_again(tmp_path, tokenizer, caplog, monkeypatch):
    """Files that were cleaned before the interruption are not read again."""
    from isoglot.corpus.pipeline import run

    write(tmp_path / "a.tsv", *sides("de", "en"))
    source = SourceConfig(kind="pairs", format="tsv", files={"en-de": ("a.tsv",)})

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "encode_all", stopped)
        with pytest.raises(KeyboardInterrupt):
            prepared(tmp_path, source, tokenizer, caplog)
    monkeypatch.setattr("isoglot.corpus.cleaning.stage.are_swapped", stopped)
    assert "a.tsv: the first side looks like de" in prepared(tmp_path, source, tokenizer, caplog)


def test_few_pairs_say_nothing(tmp_path, tokenizer, caplog):
    write(tmp_path / "a.tsv", *sides("de", "en", rows=19))
    source = SourceConfig(kind="pairs", format="tsv", files={"en-de": ("a.tsv",)})
    assert prepared(tmp_path, source, tokenizer, caplog) == ""

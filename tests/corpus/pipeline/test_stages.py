"""The same bytes wherever and however the work is done: killed, interrupted, on a Ray cluster."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.cleaning.cleaner import DROP_REASONS
from isoglot.corpus.deduplication.hashing import DuplicatesConfig
from isoglot.corpus.engine.runner import Timings
from isoglot.corpus.pipeline import splitting, stages
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import CorpusError
from tests.corpus.conftest import LANGUAGES
from tests.corpus.conftest import config as usual
from tests.corpus.pipeline.test_run import add_up, contents
from tests.corpus.sentences import lines


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Four files of each language, of unequal size, with lines in common."""
    folder: Path = tmp_path_factory.mktemp("files")
    for language in LANGUAGES:
        for number in range(4):
            drawn = [*lines(language, 20 + 30 * number, seed=number), *lines(language, 5), "", "12"]
            (folder / f"{language}-{number}.txt").write_text("\n".join(drawn) + "\n", "utf-8")
    (folder / "test.txt").write_text("\n".join(lines("en", 3)), "utf-8")
    return folder


@pytest.fixture(scope="module")
def settings(tokenizer) -> PrepareConfig:
    return usual(
        sources={
            "text": SourceConfig(
                files={language: (f"{language}-*.txt",) for language in LANGUAGES}
            ),
        },
        tokenizer=TokenizerConfig(folder=str(tokenizer)),
        duplicates=DuplicatesConfig(scope="language", near=True),
        exclude=("test.txt",),
        shard_tokens=400,
    )


@pytest.fixture(scope="module")
def whole(files, settings, tmp_path_factory) -> dict[str, bytes]:
    """What one process makes at one go."""
    folder = tmp_path_factory.mktemp("whole")
    manifest = prepare(settings, folder / "corpus", base=files)
    counts = add_up(manifest)["text"].counts["en"]
    assert {"blank", "contaminated", "duplicate"} <= set(counts.dropped)
    return contents(folder / "corpus")


@pytest.mark.slow
def test_killed_workers_change_nothing(files, settings, whole, tmp_path):
    killed = Counter[str]()

    def kill(stage: str, done: int, total: int | None) -> None:
        children = multiprocessing.active_children()
        if done and children and killed[stage] < 2:
            os.kill(children[0].pid or 0, signal.SIGKILL)
            killed[stage] += 1

    prepare(settings, tmp_path / "corpus", base=files, workers=2, progress=kill)
    assert killed["clean"] == killed["encode"] == 2
    assert contents(tmp_path / "corpus") == whole


def noted_calls(monkeypatch, name: str, interrupted_at: int | None = None) -> list[Any]:
    """From now on, the tasks that a function of the stages is called with."""
    function = getattr(stages, name)
    calls: list[Any] = []

    def noted(task: Any) -> Any:
        calls.append(task)
        if len(calls) == interrupted_at:
            raise KeyboardInterrupt
        return function(task)

    monkeypatch.setattr(stages, name, noted)
    return calls


@pytest.mark.parametrize("stage", ["clean", "duplicates", "encode"])
def test_an_interrupted_run_goes_on_where_it_stopped(
    files, settings, whole, tmp_path, monkeypatch, stage
):
    functions = {
        "clean": "clean_files",
        "duplicates": "find_duplicates",
        "encode": "encode_group",
    }
    name = functions[stage]
    monkeypatch.setattr(stages, "_SMALL_ROWS", 0)
    calls = noted_calls(monkeypatch, name, interrupted_at=6)
    with pytest.raises(KeyboardInterrupt):
        prepare(settings, tmp_path / "corpus", base=files)
    with pytest.raises(CorpusError, match="interrupted"):
        Corpus.open(tmp_path / "corpus")
    finished, begun = calls[:5], calls[5]
    calls = noted_calls(monkeypatch, name)
    prepare(settings, tmp_path / "corpus", base=files)
    assert contents(tmp_path / "corpus") == whole
    assert begun in calls
    assert not [task for task in finished if task in calls]


def test_a_source_that_is_added_after_an_interruption(files, settings, tmp_path, monkeypatch):
    """Finished units stay good while what they repeat, and so what is dropped of them, changes."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("isoglot.corpus.pipeline.run.finish_output", interrupt)
        with pytest.raises(KeyboardInterrupt):
            prepare(settings, tmp_path / "corpus", base=files)
    # `a` comes before `text`, and has its lines first
    sources = {"a": SourceConfig(files={"en": ("en-3.txt",)}), **settings.sources}
    more = usual(
        sources=sources,
        tokenizer=settings.tokenizer,
        duplicates=settings.duplicates,
        exclude=settings.exclude,
        shard_tokens=400,
    )
    prepare(more, tmp_path / "corpus", base=files)
    prepare(more, tmp_path / "afresh", base=files)
    assert contents(tmp_path / "corpus") == contents(tmp_path / "afresh")


@pytest.mark.parametrize(
    ("change", "at"),
    [
        ({"exclude": ("other.txt", "test.txt")}, 1),
        ({"duplicates": DuplicatesConfig(scope="source", near=True)}, 12),
        ({"duplicates": DuplicatesConfig(scope="language", near=True, partitions=3)}, 12),
    ],
    ids=["exclude", "scope", "partitions"],
)
def test_settings_that_are_changed_and_changed_back(
    files, settings, whole, tmp_path, monkeypatch, change, at
):
    """What the second run wrote in the place of the first one's is not taken for it."""
    (files / "other.txt").write_text("Something else altogether.\n")
    for chosen in (settings, replace(settings, **change)):
        with monkeypatch.context() as patch:
            noted_calls(patch, "clean_files", interrupted_at=at)
            with pytest.raises(KeyboardInterrupt):
                prepare(chosen, tmp_path / "corpus", base=files)
    prepare(settings, tmp_path / "corpus", base=files)
    assert contents(tmp_path / "corpus") == whole


def test_what_was_finished_before_a_damaged_file_stays(files, settings, tmp_path, monkeypatch):
    broken = tmp_path / "broken.txt.gz"
    content = gzip.compress(b"A line of text.\n" * 1000)
    broken.write_bytes(content[:-9])
    sources = {**settings.sources, "a": SourceConfig(files={"en": (str(broken),)})}
    chosen = usual(sources=sources, tokenizer=settings.tokenizer)
    with pytest.raises(CorpusError, match=r"broken\.txt\.gz: is damaged or cut short"):
        prepare(chosen, tmp_path / "corpus", base=files)
    broken.write_bytes(content)
    calls = noted_calls(monkeypatch, "clean_files")
    add_up(prepare(chosen, tmp_path / "corpus", base=files))
    # it is the smallest, and so was the last to be begun
    assert [task.group.files for task in calls] == [(broken,)]


def test_dropped_lines_of_an_earlier_run_go(tmp_path, tokenizer):
    (tmp_path / "a.txt").write_text("A line of text.\n123\n")
    (tmp_path / "b.txt").write_text("Another line of text.\n456\n")
    chosen = usual(
        sources={"s": SourceConfig(files={"en": ("a.txt", "b.txt")})},
        tokenizer=TokenizerConfig(folder=str(tokenizer)),
        dropped_folder=str(tmp_path / "dropped"),
    )
    prepare(chosen, tmp_path / "corpus", base=tmp_path)
    assert len(contents(tmp_path / "dropped")) == 2
    (tmp_path / "a.txt").write_text("A line of text.\n")
    sources = {"s": SourceConfig(files={"en": ("a.txt",)})}
    changed = replace(chosen, sources=sources)
    prepare(changed, tmp_path / "corpus", base=tmp_path, overwrite=True)
    assert not contents(tmp_path / "dropped")


def test_dropped_lines_that_nobody_asks_for_again_change_nothing(tmp_path, tokenizer, monkeypatch):
    (tmp_path / "a.txt").write_text("A line of text.\n123\n")
    plain = usual(
        sources={"s": SourceConfig(files={"en": ("a.txt",)})},
        tokenizer=TokenizerConfig(folder=str(tokenizer)),
    )
    chosen = replace(plain, dropped_folder=str(tmp_path / "dropped"))
    prepare(plain, tmp_path / "corpus", base=tmp_path)
    calls = noted_calls(monkeypatch, "clean_files")
    prepare(chosen, tmp_path / "corpus", base=tmp_path)
    assert len(calls) == 1
    assert contents(tmp_path / "dropped")
    prepare(plain, tmp_path / "corpus", base=tmp_path)
    assert len(calls) == 1


def test_every_dropped_line_is_written_with_its_reason(files, settings, tmp_path):
    chosen = usual(
        sources=settings.sources,
        tokenizer=settings.tokenizer,
        duplicates=settings.duplicates,
        exclude=settings.exclude,
        dropped_folder=str(tmp_path / "dropped"),
    )
    manifest = prepare(chosen, tmp_path / "corpus", base=files, timings=(times := Timings()))
    rows = [
        json.loads(line)
        for path in sorted((tmp_path / "dropped").rglob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()
    ]
    found = Counter((row["source"], row["language"], row["reason"]) for row in rows)
    assert found == {
        (source, language, reason): number
        for source, entry in manifest.sources.items()
        for language, counts in entry.counts.items()
        for reason, number in counts.dropped.items()
    }
    assert {row["reason"] for row in rows} <= set(DROP_REASONS)
    for row in rows:
        line = Path(row["file"]).read_text("utf-8").split("\n")[row["line"] - 1]
        assert [line] == row["text"]
    assert set(times.folders) == {f"text/{language}" for language in LANGUAGES}
    expected = ["hash files", "exclude", "clean", "duplicates", "collect duplicates"]
    assert list(times.stages) == [*expected, "tokenizer", "encode", "index"]


@pytest.mark.slow
def test_a_ray_cluster_writes_the_same_bytes(
    files, settings, whole, tmp_path, monkeypatch, ray_cluster
):
    monkeypatch.setattr(splitting, "PART_BYTES", 2000)
    monkeypatch.setattr(stages, "_SMALL_ROWS", 0)
    prepare(settings, tmp_path / "corpus", base=files, cluster="auto")
    assert contents(tmp_path / "corpus") == whole
    broken = tmp_path / "broken.txt.gz"
    broken.write_bytes(b"no gzip at all")
    sources = {"s": SourceConfig(files={"en": (str(broken),)})}
    with pytest.raises(CorpusError, match=r"broken\.txt\.gz: is damaged"):
        prepare(usual(sources=sources), tmp_path / "none", base=files, cluster="auto")


@pytest.mark.slow
def test_a_tokenizer_trained_on_a_ray_cluster_is_the_same(
    files, tmp_path, ray_cluster, monkeypatch
):
    monkeypatch.setattr(stages, "_SMALL_TEXT_BYTES", 0)
    chosen = usual(
        sources={"text": SourceConfig(files={code: (f"{code}-*.txt",) for code in LANGUAGES})},
        tokenizer=TokenizerConfig(vocab_size=400, model="bpe", max_sentences=300),
    )
    prepare(chosen, tmp_path / "here", base=files)
    prepare(chosen, tmp_path / "ray", base=files, cluster="auto")
    assert contents(tmp_path / "ray") == contents(tmp_path / "here")

"""Findings of an earlier command: used again where nothing has changed, and only there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from isoglot.adaptation.findings import Findings, MachineFacts, describe_machine
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.look import look
from isoglot.adaptation.plan import make_plan
from isoglot.adaptation.plan_files import write_plan
from isoglot.adaptation.request import AdaptConfig
from isoglot.adaptation.run import plan_adaptation
from isoglot.errors import CorpusError
from isoglot.recipe import dump
from tests.adaptation.given import make_given
from tests.adaptation.trials import tried

NOT_AGAIN = "data and encoder have not changed and are not read again"
READERS = ("describe_encoder", "find_inputs", "hold_out", "count_knowledge")
"""What reads the encoder and the data, as `look.py` calls it."""


@dataclass(frozen=True)
class Kept:
    """An adaptation that has been looked at, in a folder that may be written to."""

    config: AdaptConfig
    folder: AdaptFolder
    findings: Findings
    text: Path
    encoder: Path

    def again(self, config: AdaptConfig | None = None) -> tuple[Findings, list[str]]:
        """Look again; gives the findings and what is told."""
        told: list[str] = []
        return look(config or self.config, self.folder, tell=told.append), told


MACHINE = "isoglot.adaptation.look.describe_machine"


@pytest.fixture(scope="module", autouse=True)
def machine(tmp_path_factory) -> Iterator[MachineFacts]:
    """One machine, whose free disk space does not change."""
    with pytest.MonkeyPatch.context() as patch:
        one = describe_machine(tmp_path_factory.mktemp("machine"))
        patch.setattr(MACHINE, lambda _: one)
        yield one


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> Kept:
    """The first command."""
    place: Path = tmp_path_factory.mktemp("kept")
    given = make_given(place)
    pattern = given.text("en").with_name("en*.txt")
    config = AdaptConfig(
        encoder=str(given.encoder),
        text={"en": (str(pattern),)},
        pairs={"en-sw": (str(given.pairs("en-sw")),)},
        heldout=30,
    )
    folder = AdaptFolder(place / "out")
    return Kept(config, folder, look(config, folder), given.text("en"), given.encoder)


@pytest.fixture
def kept(first, tmp_path) -> Kept:
    """The same, copied: a copied folder continues, too."""
    shutil.copytree(first.folder.path, tmp_path / "out")
    return replace(first, folder=AdaptFolder(tmp_path / "out"))


@contextmanager
def unread() -> Iterator[None]:
    """Whatever reads the encoder or the data fails."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("it is read again")

    with pytest.MonkeyPatch.context() as patch:
        for name in READERS:
            patch.setattr(f"isoglot.adaptation.look.{name}", fail)
        patch.setattr("isoglot.adaptation.inputs.detect_format", fail)
        yield


@contextmanager
def changed(file: Path) -> Iterator[None]:
    """A file whose time of change is another one, for a while."""
    before = file.stat()
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    yield
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_nothing_has_changed(kept):
    with unread():
        assert kept.again() == (kept.findings, [NOT_AGAIN])


def test_a_command_that_goes_on_elsewhere_describes_that_machine(kept, machine, monkeypatch):
    other = replace(machine, cores=machine.cores + 1)
    monkeypatch.setattr(MACHINE, lambda _: other)
    with unread():
        assert kept.again() == (replace(kept.findings, machine=other), [NOT_AGAIN])


def test_settings_that_looking_does_not_depend_on(kept):
    other = replace(kept.config, hours=2.0, vocabulary="keep", workers=1, license="mit")
    with unread():
        assert kept.again(other) == (kept.findings, [NOT_AGAIN])


def test_interrupted_between_looking_and_planning(kept):
    """The plan is the one of the command that looked."""
    with unread():
        again, _ = kept.again()
    before, after = (
        make_plan(findings, kept.config, kept.folder, tried) for findings in (kept.findings, again)
    )
    assert after == before


def test_interrupted_after_planning(kept):
    """The plan is the one that was written, and a line says that nothing was read."""
    plan = make_plan(kept.findings, kept.config, kept.folder, tried)
    write_plan(plan, kept.folder)
    kept.folder.request.write_text(dump(kept.config), "utf-8")
    text = StringIO()
    with unread():
        found = plan_adaptation(kept.config, kept.folder, Console(file=text, width=300))
    assert text.getvalue().splitlines()[0] == NOT_AGAIN
    assert text.getvalue().count("read again") == 1
    assert found == plan


def check_again(kept: Kept, reason: str, config: AdaptConfig | None = None) -> Findings:
    """Everything is read again, for this reason; then no more."""
    found, told = kept.again(config)
    assert told[0] == f"data and encoder are read again, since {reason}"
    assert any(line.startswith("en: 1,") for line in told)
    assert kept.again(config) == (found, [NOT_AGAIN])
    return found


def without_times(findings: Findings) -> Findings:
    """Findings without what is measured anew."""
    machine = replace(findings.machine, disk_free_bytes=0)
    return replace(findings, machine=machine, read_seconds=0.0, tokenize_seconds=0.0)


def test_a_file_with_another_time(kept):
    with changed(kept.text):
        found = check_again(kept, f"{kept.text} has changed")
    assert without_times(found) == without_times(kept.findings)


def test_a_new_file_of_a_pattern(kept):
    more = kept.text.with_name("en-more.txt")
    more.write_text("".join(f"Sentence {n} is one more.\n" for n in range(20)), "utf-8")
    try:
        found = check_again(kept, f"{more} has changed")
    finally:
        more.unlink()
    assert found.text["en"].lines == kept.findings.text["en"].lines + 20


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_another_encoder_in_its_folder(kept, name):
    with changed(kept.encoder / name):
        check_again(kept, f"{kept.encoder / name} has changed")


def test_another_request(kept):
    found = check_again(kept, "the request has changed", replace(kept.config, heldout=40))
    assert found.text["en"].heldout == 40


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def _edit(**values: object) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **values}), "utf-8")

    return change


def _other_count(file: Path) -> None:
    content = json.loads(file.read_text("utf-8"))
    content["findings"]["text"]["en"]["lines"] += 1
    file.write_text(json.dumps(content), "utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"\xff\xfe\0"),
        lambda file: file.write_text("[]"),
        lambda file: file.write_text("7"),
        _edit(files=[1]),
        _edit(encoder=None),
        _edit(findings=None),
        _edit(findings={"text": []}),
        _edit(sha256=3),
        _other_count,
    ],
)
def test_a_damaged_file(kept, damage, monkeypatch):
    damage(kept.folder.findings)
    monkeypatch.setattr("isoglot.adaptation.look._look_now", lambda *_: kept.findings)
    said = f"data and encoder are read again, since {kept.folder.findings} is damaged"
    assert kept.again() == (kept.findings, [said])


def test_a_damaged_file_is_written_again(kept):
    _cut(kept.folder.findings)
    found = check_again(kept, f"{kept.folder.findings} is damaged")
    assert without_times(found) == without_times(kept.findings)


def test_a_file_of_another_version(kept):
    """The first version had no field `version`, and no encoder."""
    content = json.loads(kept.folder.findings.read_text("utf-8"))
    old = {name: content[name] for name in ("request", "files", "findings")}
    kept.folder.findings.write_text(json.dumps(old), "utf-8")
    check_again(kept, f"{kept.folder.findings} is from another version of Isoglot")


@pytest.mark.parametrize("name", ["heldout/text/en.txt", "heldout/kept-out.jsonl", "sample/sw.txt"])
def test_what_was_written_is_lost(kept, name):
    lost = kept.folder.path / name
    content = lost.read_bytes()
    lost.unlink()
    check_again(kept, f"heldout/ or sample/ in {kept.folder.path} has changed")
    assert lost.read_bytes() == content


def test_after_the_corpus_is_made(kept):
    """Other data are refused, since held-out lines may be in it; another encoder is not."""
    kept.folder.corpus.mkdir()
    (kept.folder.corpus / "manifest.json").touch()
    refused = r"en.txt: has changed since .* Choose another --out"
    with changed(kept.text), pytest.raises(CorpusError, match=refused):
        kept.again()
    with changed(kept.encoder / "config.json"):
        check_again(kept, f"{kept.encoder / 'config.json'} has changed")


def test_a_download_that_is_fetched_again(kept, monkeypatch):
    """Its copy counts: looked at again where it is another one, and not where it is the same."""
    copy = kept.folder.downloads / "en.txt"

    def fetched(_: str, *, folder: Path, **__: object) -> list[Path]:
        if not copy.is_file():
            folder.mkdir(exist_ok=True)
            copy.write_bytes(kept.text.read_bytes())
        return [copy]

    monkeypatch.setattr("isoglot.adaptation.inputs.resolve", fetched)
    config = replace(kept.config, text={"en": ("https://example.org/en.txt",)})
    kept.folder.findings.unlink()
    found, _ = kept.again(config)
    assert kept.again(config) == (found, [NOT_AGAIN])
    copy.unlink()
    check_again(kept, f"{copy} has changed", config)

"""What the documentation tells people to type is typed here: files, Python, commands."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.tokenizer import open_tokenizer
from isoglot.models import Encoder, ModelConfig, export
from tests.tiny_corpus import make_corpus

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
FEW_STEPS = ["stages.0.steps=2", "batch.rows=2", "batch.micro_rows=2", "loader.workers=0"]


class Block(NamedTuple):
    """A fenced block: its language, the file it is to be saved as, if any, and its text."""

    language: str
    file: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    fence = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for language, file, inside in fence.findall(text):
        yield Block(language, file, inside)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with what the pages assume: raw files, an encoder, a prepared corpus."""
    corpus = make_corpus(tmp_path / "made", sentences=120, pairs=80)
    raw = tmp_path / "raw"
    (raw / "test").mkdir(parents=True)
    made = tmp_path / "made/raw"
    (made / "text/aa.txt").rename(raw / "en.txt")
    (made / "text/cc.txt").rename(raw / "sw.txt")
    (raw / "test/en-sw.tsv").write_bytes((made / "pairs/aa-cc.tsv").read_bytes())
    (made / "pairs/aa-cc.tsv").rename(raw / "en-sw.tsv")
    settings = ModelConfig(size="tiny", layers=2, hidden=32, heads=2, max_positions=256)
    encoder = Encoder.build(settings, corpus.vocabulary)
    export(encoder, tmp_path / "encoder", tokenizer_folder=corpus.tokenizer_folder, card="")
    (tmp_path / "corpora").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("ending", None)


def test_the_python_of_recipes_md(place):
    (place / "made/corpus").rename("corpora/mine")
    space: dict[str, object] = {}
    ran = 0
    for block in blocks("recipes.md"):
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(block.text, space)  # noqa: S102 (our own documentation)
            ran += 1
    assert ran == 2


def test_the_vocabulary_of_words_of_translation_md(place, isoglot):
    """The line for the prepare file makes a corpus whose tokens are words."""
    block = next(block for block in blocks("translation.md") if "model: word" in block.text)
    source = "sources: {text: {kind: text, format: lines, files: {sw: [raw/sw.txt]}}}"
    Path("words.yaml").write_text(f"{source}\n{block.text}", encoding="utf-8")
    said = isoglot("prepare", "words.yaml", "--out", "corpora/words")
    assert said.code == 0, said.err
    corpus = Corpus.open("corpora/words")
    text = (place / "raw/sw.txt").read_text(encoding="utf-8")
    words = set(text.replace(".", " .").split())
    tokens = {token.lstrip("▁") for token in open_tokenizer(corpus.tokenizer_folder).get_vocab()}
    assert {token for token in tokens if not token.startswith("<")} <= words | {""}
    assert len(tokens & words) > 0.9 * len(words) > 50  # some are only in what is held out


def test_the_quickstart(place, isoglot):
    verbs = []
    for block in blocks("quickstart.md"):
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        for line in block.text.splitlines() if block.language == "sh" else []:
            program, *arguments = shlex.split(line)
            assert program == "isoglot"
            if arguments[0] == "pretrain":
                arguments += [part for setting in FEW_STEPS for part in ("--set", setting)]
            said = isoglot(*arguments)
            assert said.code == 0, f"{line}\n{said.err}"
            verbs.append(arguments[0])
        if block.language == "python":
            exec(block.text, {})  # noqa: S102 (our own documentation)
    assert verbs == ["prepare", "show", "show", "pretrain", "evaluate", "evaluate"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_index_lists_every_page():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert {page.name for page in PAGES} == {"index.md", *re.findall(r"\]\((.+?)\)", index)}

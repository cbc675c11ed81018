"""`adapt --knowledge` end to end on the testbed: trained, stopped, continued, exported."""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
import time
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console
from transformers import AutoModelForMaskedLM

from isoglot import json_text
from isoglot.adaptation.comparison import ENTITIES, ENTITIES_HEADS
from isoglot.adaptation.request import AdaptConfig
from isoglot.adaptation.run import AdaptOutcome, adapt
from isoglot.corpus import Corpus
from isoglot.corpus.decontamination import letters_of
from isoglot.corpus.knowledge.graph.graph import item_number
from isoglot.corpus.storage.shards import SPLITS
from isoglot.corpus.tokenization.vocabulary import open_tokenizer, text_decoder
from isoglot.models import objective_heads
from tests.adaptation.given import Given
from tests.adaptation.knowledge_tables import write_tables
from tests.adaptation.test_run import scores_of, weights_of

pytestmark = pytest.mark.slow
STEPS = 24


def request_of(given: Given, tables: Path) -> AdaptConfig:
    """Text of the knowledge's own pages besides: held-out lines are sentences of pages, too."""
    text: dict[str, tuple[str, ...]] = {
        code: (str(given.text(code)), str(tables / f"text/{code}.txt.gz")) for code in ("en", "sw")
    }
    return AdaptConfig(
        encoder=str(given.encoder),
        text=text,
        pairs={"en-sw": (str(given.pairs("en-sw")),)},
        knowledge=str(tables),
        heldout=60,
        vocabulary=40,
        workers=1,
    )


def shorten(plan: Path, out: Path, new: Path) -> None:
    """Edit a plan as a user would: a few steps; of another folder."""
    text = (plan / "recipe.yaml").read_text("utf-8").replace(str(out), str(new))
    recipe = yaml.safe_load(text)
    recipe["stages"][0]["steps"] = STEPS
    recipe["batch"].update(rows=8, micro_rows=8)
    recipe["checkpoint"]["every_steps"] = 8
    recipe["logging"].update(validate_every_steps=12, validate_examples=20)
    (plan / "recipe.yaml").write_text(yaml.safe_dump(recipe), "utf-8")


def stop_while_training(run: Path) -> threading.Thread:
    """Sends SIGINT once some steps are logged; the process's own handlers take it."""

    def wait() -> None:
        metrics = run / "metrics.jsonl"
        while not (metrics.is_file() and metrics.read_text("utf-8").count("\n") > 5):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    return write_tables(tmp_path_factory.mktemp("knowledge") / "tables")


@pytest.fixture(scope="module")
def outcomes(given, tables, tmp_path_factory) -> tuple[AdaptOutcome, Path, str]:
    """A finished adaptation that was stopped on the way; one that was not; what was printed."""
    place = tmp_path_factory.mktemp("knowing")
    config, out, other = request_of(given, tables), place / "out", place / "other"
    printed = StringIO()
    console = Console(file=printed, width=300)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isoglot.adaptation.resources._TRIAL_SECONDS", 0.5)
        patch.setattr("isoglot.adaptation.resources._SEARCH_SECONDS", 2.0)
        dry = adapt(config, out, console=console, dry_run=True)
        assert not dry.finished
        patch.setattr("isoglot.adaptation.linking._MIN_QUERIES", 2)
        return _carry_out(config, out, other, console), other, printed.getvalue()


def _carry_out(config: AdaptConfig, out: Path, other: Path, console: Console) -> AdaptOutcome:
    """Take the steps after planning: stopped while training and continued; in `other` at once."""
    shutil.copytree(out, other)
    shorten(out / "plan", out, out)
    shorten(other / "plan", out, other)
    thread = stop_while_training(out / "run")
    stopped = adapt(config, out, console=console)
    thread.join()
    assert re.match(r"training has stopped after step \d+ of 24", stopped.stopped)
    assert adapt(config, other, console=Console(file=StringIO())).finished
    return adapt(config, out, console=console)


def test_the_plan_says_what_is_trained_on_and_why(outcomes):
    _, _, printed = outcomes
    assert "knowledge: 199 entities described in two languages or more" in printed
    assert "knowledge in de is left out" in printed
    assert "masked entity prediction (20 %) and object entailment (" in printed


def test_it_continues_as_if_it_had_not_been_stopped(outcomes):
    outcome, other, _ = outcomes
    assert outcome.finished
    assert weights_of(outcome.out) == weights_of(other)
    assert scores_of(outcome.out) == scores_of(other)


def test_both_objectives_were_trained_and_validated(outcomes):
    outcome, _, _ = outcomes
    lines = (outcome.out / "run/metrics.jsonl").read_text("utf-8").splitlines()
    logged = {name for line in lines for name in json_text.parse(line)}
    for name in ("entity/loss", "entity/accuracy", "entailment/loss", "mlm/loss", "moco/loss"):
        assert name in logged
    assert any(name.startswith("valid/entity/sw/") for name in logged)


def names_of(tables: Path, code: str) -> dict[int, str]:
    """Item -> name, of the entities in a language."""
    rows = (tables.parent / "tables-raw/names.tsv").read_text("utf-8").splitlines()
    found = (row.split("\t") for row in rows)
    return {item_number(entity): name.rstrip(".") for entity, of, name, _ in found if of == code}


def test_held_out_mentions_and_facts_are_scored_before_and_after(outcomes, tables):
    outcome, _, _ = outcomes
    for metric in (ENTITIES, ENTITIES_HEADS):
        assert {one.where for one in outcome.scores.of(metric)} == {"en→sw", "sw→en"}
    whats = [one.what for one in outcome.scores.choices]
    assert "layer of entity linking" in whats
    for file in (outcome.out / "linking/entity-linking").iterdir():
        rows = [json_text.parse(line) for line in file.read_text("utf-8").splitlines()]
        asked = [row for row in rows if "text" in row]
        names = names_of(tables, file.stem.split("-")[0])
        assert len(asked) >= 2
        for row in asked:
            name = row["text"][row["start"] : row["end"]].rstrip(".")
            assert name in names.values(), "with the spaces between its words"
    page = outcome.report.read_text("utf-8")
    assert "<h3>entity linking, heads</h3>" in page
    assert ">mentions</th>" in page


def test_the_folder_has_the_trained_heads_and_the_card_the_source(outcomes):
    outcome, _, _ = outcomes
    assert set(objective_heads.load(outcome.model)) >= {"entity", "entailment"}
    _, loading = AutoModelForMaskedLM.from_pretrained(outcome.model, output_loading_info=True)
    assert not loading["missing_keys"]
    card = (outcome.model / "README.md").read_text("utf-8")
    assert "| knowledge | testbed (tsv): 199 entities, " in card
    assert "| sw | mentions of entities | " in card
    (objectives,) = re.findall(r"\| objectives \| (.*) \|", card)
    assert set(objectives.split(", ")) == {"mlm", "moco", "entity", "entailment"}


def test_mentions_are_right_in_the_grown_vocabulary(outcomes, given, tables):
    """The tokens of a mention spell the name of its entity."""
    outcome, _, _ = outcomes
    corpus = Corpus.open(outcome.out / "corpus")
    tokenizer = open_tokenizer(corpus.tokenizer_folder)
    assert len(tokenizer) > len(open_tokenizer(given.encoder)), "it grew"
    decode, items = text_decoder(tokenizer), corpus.knowledge.entities["item"]
    for code in ("en", "sw"):
        table = corpus.knowledge.mentions(code, "train")
        sentences = corpus.knowledge.sentences(code, "train")
        assert len(table) > 100
        names = names_of(tables, code)
        for row in range(len(table)):
            tokens = sentences.tokens("tokens", int(table["sentence"][row]))
            span = tokens[int(table["start"][row]) : int(table["end"][row])]
            spelled = decode(span.tolist()).rstrip(".")
            assert spelled == names[int(items[table["entity"][row]])]


def test_held_out_lines_are_on_no_page_and_in_no_description(outcomes, tables):
    outcome, _, _ = outcomes
    corpus = Corpus.open(outcome.out / "corpus")
    decode = text_decoder(open_tokenizer(corpus.tokenizer_folder))
    lines = (outcome.out / "heldout/kept-out.jsonl").read_text("utf-8").splitlines()
    kept_out = {letters_of(json_text.parse(line)["text"]) for line in lines}
    numbers = {int(item): n for n, item in enumerate(corpus.knowledge.entities["item"])}
    left_out = 0
    for code in ("en", "sw"):
        for split in SPLITS:
            sentences = corpus.knowledge.sentences(code, split)
            for row in range(len(sentences)):
                text = decode(sentences.tokens("tokens", row).tolist())
                assert letters_of(text) not in kept_out
        rows = pq.read_table(tables / f"wikipedia/{code}/sentences-00000.parquet").to_pylist()
        on_page: dict[int, list[bytes]] = {}
        for row in rows:
            on_page.setdefault(row["page"], []).append(letters_of(row["text"]))
        for page, texts in on_page.items():
            excluded = [one for one in texts if len(one) >= 10 and one in kept_out]
            others = [one for one in texts if one not in excluded]
            tokens = corpus.knowledge.descriptions(code)[numbers[page]] if page in numbers else None
            described = b"" if tokens is None else letters_of(decode(tokens.tolist()))
            for one in excluded:
                left_out += 1
                assert one not in described or any(one in other for other in others)
    assert left_out > 10, "held-out lines are sentences of pages, too"

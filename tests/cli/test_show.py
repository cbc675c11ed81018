"""`isoglot show`: lists, a recipe in full, a corpus at a glance; and the tables of the docs."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from isoglot.batching.streams import STREAMS
from isoglot.explore.drawn_batch import decode_batch
from isoglot.explore.stage_batches import open_stage
from isoglot.finetuning.settings import FinetuneConfig
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.optimizations import OPTIMIZATIONS
from isoglot.objectives import OBJECTIVES
from isoglot.recipe import load_recipe, recipe_names
from isoglot.tasks import all_tasks

ROOT = Path(__file__).parent.parent.parent
TABLES = ["objectives", "recipes", "tasks"]


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("recipes --all", recipe_names()),
        ("objectives", list(OBJECTIVES)),
        ("streams", [kind.kind for kind in STREAMS]),
        ("tasks", [task.name for task in all_tasks()]),
    ],
)
def test_a_list_has_a_line_for_each_name(isoglot, what, names):
    said = isoglot("show", *what.split())
    assert said.code == 0
    lines = [line.split() for line in said.out.splitlines()[2:] if line.strip()]
    assert [line[0] for line in lines] == names
    assert all(len(line) > 3 for line in lines)


@pytest.mark.parametrize("what", TABLES)
def test_a_markdown_table_is_one(isoglot, what):
    lines = isoglot("show", what, "--markdown").out.splitlines()
    assert re.fullmatch(r"(\| --- )+\|", lines[1])
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
    assert all(re.match(r"\| `[\w/+.-]+` \|", line) for line in lines[2:])


def test_the_files_of_the_table_are_there(isoglot):
    files = re.findall(r"`(src/.+?)`", isoglot("show", "objectives", "--markdown").out)
    assert len(files) == len(OBJECTIVES)
    assert all((ROOT / file).is_file() for file in files)


def test_a_protocol_lists_every_setting_with_its_value_and_a_sentence(isoglot):
    said = isoglot("show", "protocol", "ernie-m-large").out
    own, everything = said.split("setting   ")[0], said.split("what it sets")[1]
    assert re.search(r"epochs +5 +10 +2 +10 +1 +10 +2 *\n", own)
    assert "text-classification, all" in own
    for field in fields(FinetuneConfig):
        assert re.search(rf"^{field.name} +\S.* {{2,}}\w.*\.", everything, re.MULTILINE)
    unknown = isoglot("show", "protocol", "xtrem")
    assert unknown.code != 0
    assert "did you mean 'xtreme'" in unknown.err


def test_a_recipe_in_full_is_a_recipe(isoglot, workdir):
    said = isoglot("show", "recipe", "xlm", "--set", "batch.rows=512", "--set", "name=mine")
    (workdir / "mine.yaml").write_text(said.out, encoding="utf-8")
    assert load_recipe("mine.yaml") == load_recipe("xlm", ["batch.rows=512", "name=mine"])
    assert "# Rows of one optimizer step, over all processes." in said.out


def test_a_corpus(isoglot, corpus):
    said = isoglot("show", "corpus", corpus.folder, "--alpha", "0", "--samples", "1")
    assert said.code == 0
    rows = [line.split() for line in said.out.splitlines()]
    for code in ("aa", "bb", "cc"):
        counts = corpus.manifest.sources["text"].languages[code]["train"]
        assert ["text", code, f"{counts.rows:,}", f"{counts.tokens['ids']:,}"] in [
            r[:4] for r in rows
        ]
    drawn = [row for row in rows if row[:1] == ["text"] and row[-1:] == ["%"]]
    assert [row[-2] for row in drawn] == ["33.3", "33.3", "33.3"]
    raw = (corpus.folder.parent / "raw/text/aa.txt").read_text(encoding="utf-8").splitlines()
    _, samples = said.out.split("decoded from their token ids:")
    assert [
        line
        for line in samples.splitlines()
        if line.removeprefix("text     aa ").strip() in raw[:1]
    ]
    assert corpus.fingerprint in said.out


def test_a_corpus_as_a_page(isoglot, corpus, workdir):
    said = isoglot(
        "show", "corpus", corpus.folder, "--alpha", "1", "--alpha", "0", "--html", "c.html"
    )
    assert said.code == 0
    assert "c.html" in said.out
    page = (workdir / "c.html").read_text(encoding="utf-8")
    assert "http" not in page.replace("http-equiv", "")
    for part in ("Sources and languages", "Dropped", "Sampling", "Tokenizer", "Samples"):
        assert f"<h2>{part}</h2>" in page
    for code in ("aa", "bb", "cc"):
        assert f"{corpus.manifest.sources['text'].languages[code]['train'].rows:,}" in page
    assert "sampled at α = 1, %" in page
    assert "sampled at α = 0, %" in page
    raw = (corpus.folder.parent / "raw/text/aa.txt").read_text(encoding="utf-8").splitlines()
    assert raw[0] in page


def test_a_corpus_with_a_source_of_which_nothing_was_kept(isoglot, raw):
    (raw / "raw/pairs/aa-bb.tsv").write_text("one\ttwo\tthree\n", encoding="utf-8")
    (raw / "raw/pairs/aa-cc.tsv").write_text("one\ttwo\tthree\n", encoding="utf-8")
    assert isoglot("prepare", "prepare.yaml", "-o", "corpus").code == 0
    said = isoglot("show", "corpus", "corpus")
    assert said.code == 0
    assert "1 columns" in said.out
    assert "nan" not in said.out


def test_a_batch(isoglot, corpus, workdir):
    said = isoglot(
        *("show", "batch", "ernie-m-tiny", "--corpus", corpus.folder, "--stage", 1),
        *("--html", "batch.html", "--rows", 1, "--set", "objectives.camlm.rate=0.25"),
    )
    assert said.code == 0, said.err
    found = open_stage(load_recipe("ernie-m-tiny", ["objectives.camlm.rate=0.25"]), corpus, 1)
    drawn = decode_batch(found.micro_batch(), found)
    tokens = [token for one in drawn.rows[0].sequences for token in one.tokens]
    shown = said.out.split("row 0:")[1].split("objective ")[0]
    assert all(f"→{token.target}" in shown for token in tokens if token.target is not None)
    assert shown.count("→") == sum(token.target is not None for token in tokens)
    assert shown.count("[<mask>]") == sum(token.kind == "slot" for token in tokens)
    for name, number in drawn.batch.num_targets.items():
        assert re.search(rf"^{name} +{number:,} ", said.out, re.MULTILINE)
    page = Path("batch.html").read_text(encoding="utf-8")
    assert page.count('class="ig-b-t ig-b-slot"') >= shown.count("[<mask>]")
    assert page.count("<svg") == 1 + len(drawn.rows[0].sequences)


def test_a_batch_that_cannot_be_shown_is_a_sentence(isoglot, corpus, workdir):
    for options, sentence in (
        (["--stage", "7"], "the recipe has stages.0 to stages.0"),
        (["--micro-batch", "9"], "a step has those from 0 to 1"),
        (["--set", "objectives.mlm.rate=1"], "objectives.mlm.rate"),
    ):
        said = isoglot("show", "batch", "tiny", "--corpus", corpus.folder, *options)
        assert said.code == 1
        assert sentence in said.err
        assert "Traceback" not in said.err


def test_a_model_and_what_is_changed_in_it(isoglot, corpus, workdir):
    settings = ModelConfig(size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=64)
    encoder = Encoder.build(settings, corpus.vocabulary)
    export_encoder(encoder, workdir / "model", tokenizer_folder=corpus.tokenizer_folder, card="")
    said = isoglot("show", "model", "model")
    assert said.out.startswith("XLMRobertaForMaskedLM: 2 layers × 32, ")
    shown = [name for name in (one.name for one in OPTIMIZATIONS) if f"\n{name} " in said.out]
    assert shown == [one.optimization.name for one in encoder.optimizations]
    assert "fused QKV" in shown
    assert "fused QKV" not in isoglot("show", "model", "model", "--set", "fuse_qkv=false").out


def test_recipes_in_folders_are_shown_on_request(isoglot):
    lines = isoglot("show", "recipes").out.splitlines()
    plain = [name for name in recipe_names() if "/" not in name]
    assert [line.split()[0] for line in lines[2 : 2 + len(plain)]] == plain
    assert lines[-1] == f"{len(recipe_names()) - len(plain)} more, mostly ablations: --all"


def test_the_settings_of_an_objective(isoglot):
    said = isoglot("show", "objective", "camlm").out
    assert said.startswith("# Reads parallel. ERNIE-M 3.1.\nobjectives:\n  camlm:")
    assert "[extra | inline]" in said
    settings = yaml.safe_load(said)["objectives"]["camlm"]
    assert settings == {"weight": 1.0, "positions": "continuous", "rate": 0.15, "slots": "extra"}
    assert "did you mean 'camlm'" in isoglot("show", "objective", "camml").err


def test_the_template_is_an_objective(isoglot, workdir, monkeypatch):
    monkeypatch.syspath_prepend(workdir)
    (workdir / "copied.py").write_text(isoglot("show", "template").out, encoding="utf-8")
    said = isoglot("show", "objective", "copied:ReplacedTokenDetection")
    assert said.code == 0, said.err
    assert "rate: 0.15" in said.out


def test_a_recipe_with_a_size_and_a_model_to_start_from_is_not_shown(isoglot):
    both = ("--set", "model.init_from=somewhere", "--set", "model.size=small")
    said = isoglot("show", "recipe", "tiny", *both)
    assert said.code == 1
    assert "Give either model.init_from, to start from a model, or model.size" in said.err
    said = isoglot("show", "recipe", "tiny", *both[:2])
    assert said.code == 0, said.err
    assert "init_from: somewhere" in said.out


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("objectives.md", "objectives --markdown"),
        ("recipe-list.md", "recipes --markdown --all"),
        ("tasks.md", "tasks --markdown"),
    ],
)
def test_a_page_has_the_table_that_is_shown(isoglot, page, shown):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    mark = f"<!-- isoglot show {shown} -->"
    block = re.search(rf"{re.escape(mark)}\n(.*?)<!-- end -->", text, flags=re.DOTALL)
    assert block, f"{page} lacks the block {mark}"
    said = isoglot("show", *shown.split()).out
    assert block[1].strip() == said.strip(), f"run: isoglot show {shown}"

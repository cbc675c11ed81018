"""`isoglot show`: lists, a recipe in full, a corpus at a glance; and the README's tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isoglot.batching.streams import STREAMS
from isoglot.objectives import OBJECTIVES
from isoglot.recipe import load_recipe, recipe_names
from isoglot.tasks import TASKS

README = Path(__file__).parent.parent.parent / "README.md"
ALL_RECIPES = README.parent / "docs/recipe-list.md"
TABLES = ["objectives", "recipes", "tasks"]


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("recipes --all", recipe_names()),
        ("objectives", [kind.name for kind in OBJECTIVES]),
        ("streams", [kind.kind for kind in STREAMS]),
        ("tasks", [task.name for task in TASKS]),
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
    files = re.findall(r"\]\((.+?)\)", isoglot("show", "objectives", "--markdown").out)
    assert len(files) == len(OBJECTIVES)
    assert all((README.parent / file).is_file() for file in files)


def test_a_recipe_in_full_is_a_recipe(isoglot, desk):
    said = isoglot("show", "recipe", "xlm", "--set", "batch.rows=512", "--set", "name=mine")
    (desk / "mine.yaml").write_text(said.out, encoding="utf-8")
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


def test_a_corpus_as_a_page(isoglot, corpus, desk):
    said = isoglot(
        "show", "corpus", corpus.folder, "--alpha", "1", "--alpha", "0", "--html", "c.html"
    )
    assert said.code == 0
    assert "c.html" in said.out
    page = (desk / "c.html").read_text(encoding="utf-8")
    assert "http" not in page.replace("http-equiv", "")
    for part in ("Sources and languages", "Dropped", "Sampling", "Tokenizer", "Some lines"):
        assert f"<h2>{part}</h2>" in page
    for code in ("aa", "bb", "cc"):
        assert f"{corpus.manifest.sources['text'].languages[code]['train'].rows:,}" in page
    assert "drawn at α = 1, %" in page
    assert "drawn at α = 0, %" in page
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


def test_recipes_in_folders_are_shown_on_request(isoglot):
    lines = isoglot("show", "recipes").out.splitlines()
    plain = [name for name in recipe_names() if "/" not in name]
    assert [line.split()[0] for line in lines[2 : 2 + len(plain)]] == plain
    assert lines[-1] == f"{len(recipe_names()) - len(plain)} more, ablations most of them: --all"


@pytest.mark.parametrize(
    ("page", "shown"),
    [(README, f"{what} --markdown") for what in TABLES]
    + [(ALL_RECIPES, "recipes --markdown --all")],
)
def test_a_page_has_the_table_that_is_shown(isoglot, page, shown):
    text = page.read_text(encoding="utf-8")
    mark = f"<!-- isoglot show {shown} -->"
    block = re.search(rf"{re.escape(mark)}\n(.*?)<!-- end -->", text, flags=re.DOTALL)
    assert block, f"{page.name} lacks the block {mark}"
    said = isoglot("show", *shown.split()).out
    assert block[1].strip() == said.strip(), f"run: isoglot show {shown}"


def test_the_readme_has_no_other_generated_block():
    text = README.read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- isoglot show (\w+) --markdown -->", text)) <= set(TABLES)

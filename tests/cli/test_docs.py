"""What the documentation tells people to type is typed here: files, Python, commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import typer
import yaml
from torch.distributed.run import get_args_parser

from isoglot.adaptation.request import load_request
from isoglot.cli import app, load_commands
from isoglot.corpus import Corpus
from isoglot.corpus.knowledge.graph.write_tables import GraphConfig
from isoglot.corpus.tokenization.vocabulary import open_tokenizer
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.recipe import document, load_prepare, load_recipe, recipe_names
from isoglot.recipe.structure import structure
from tests.tiny_corpus import make_corpus

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
FEW_STEPS = ["stages.0.steps=2", "batch.rows=2", "batch.micro_rows=2", "loader.num_workers=0"]


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
    settings = ModelConfig(
        size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=256
    )
    encoder = Encoder.build(settings, corpus.vocabulary)
    export_encoder(encoder, tmp_path / "encoder", tokenizer_folder=corpus.tokenizer_folder, card="")
    (tmp_path / "corpora").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("ending", None)
    sys.modules.pop("replaced", None)
    sys.modules.pop("chat", None)


def test_the_python_of_recipes_md(place):
    (place / "made/corpus").rename("corpora/mine")
    assert run_page("recipes.md") == 1


def test_the_python_of_own_objective_md(place):
    (place / "made/corpus").rename("corpora/mine")
    assert run_page("own-objective.md") == 2
    shown = (ROOT / "src/isoglot/objectives/template.py").read_text(encoding="utf-8")
    assert (place / "replaced.py").read_text(encoding="utf-8") == shown, "isoglot show template"


def run_page(page: str) -> int:
    """Save the files of a page and run its Python; the number of blocks that ran."""
    space: dict[str, object] = {}
    ran = 0
    for block in blocks(page):
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(block.text, space)  # noqa: S102 (our own documentation)
            ran += 1
    return ran


def test_the_vocabulary_of_words_of_translate_md(place, isoglot):
    """The line for the prepare file makes a corpus whose tokens are words."""
    block = next(block for block in blocks("translate.md") if "model: word" in block.text)
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


SHORT_ERNIE_M = [
    *("model.init_from=null", "model.size=tiny", "model.num_layers=1", "model.hidden_size=32"),
    *("model.num_heads=2", "model.max_positions=96", "batch.row_length=96", "batch.rows=4"),
    *("batch.micro_rows=4", "loader.num_workers=0", "optimizer.warmup_steps=0"),
    *("optimizer.warmup_ratio=null", "logging.validate_every_steps=0", "logging.trackers=[]"),
    *("logging.validate_examples=2", "stages.0.steps=1", "stages.1.steps=1"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "metric"),
    [("ernie-m-tiny", "valid/btmlm/mean/perplexity"), ("ernie-m", "valid/sentences.btmlm/mean")],
)
def test_figure_5_of_ernie_m_md(place, isoglot, recipe, metric):
    """The metrics that the page names are those that runs of both recipes have."""
    (page,) = [page for page in PAGES if page.name == "ernie-m.md"]
    (named,) = re.findall(rf"['`]({metric}[\w/]*)['`]", page.read_text(encoding="utf-8"))
    short = [*SHORT_ERNIE_M, *(["stages.2.steps=1"] if "tiny" in recipe else [])]
    settings = [part for setting in short for part in ("--set", setting)]
    said = isoglot("pretrain", recipe, "--corpus", "made/corpus", "--out", "runs/one", *settings)
    assert said.code == 0, said.err
    said = isoglot("analyze", "plot", "20%=runs/one", "--metric", named, "--out", "figure5.svg")
    assert said.code == 0, said.err
    assert (place / "figure5.svg").is_file()


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


def commands(page):
    """The command lines of a page's code blocks, as lists of words."""
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for block in (block for language, block in fences if language in ("", "sh")):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.search(r"(?:^|[|] |-m )isoglot (.*)", line.strip())
            if found:
                yield shlex.split(found[1], comments=True)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_commands_have_the_options_that_a_page_shows(page):
    load_commands()
    for words in commands(page):
        command: Any = typer.main.get_command(app)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        known = {
            name for option in command.params for name in (*option.opts, *option.secondary_opts)
        }
        assert {word for word in words if re.fullmatch(r"--?[a-z].*", word)} <= known, words
        if command.name == "pretrain" and words[0] in recipe_names():
            after = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
            load_recipe(words[0], [setting for setting in after if "$" not in setting])


def torchruns(page: str) -> Iterator[list[str]]:
    """The words after `torchrun` in a page: in its shell and Kubernetes blocks."""
    for block in blocks(page):
        if block.language == "sh":
            for line in block.text.replace("\\\n", " ").splitlines():
                if "torchrun" in (words := shlex.split(line, comments=True)):
                    yield words[words.index("torchrun") + 1 :]
        elif block.language == "yaml" and "torchrun" in block.text:
            (container,) = yaml.safe_load(block.text)["spec"]["template"]["spec"]["containers"]
            assert container["command"] == ["torchrun"]
            yield container["args"]


def test_the_launchers_of_distributed_md():
    """torchrun knows its options, and starts an isoglot command that knows its own."""
    load_commands()
    pretrain = typer.main.get_command(app).commands["pretrain"]  # type: ignore[attr-defined]
    found = list(torchruns("distributed.md"))
    assert len(found) >= 5
    for words in found:
        given, unknown = get_args_parser().parse_known_args(words)
        assert unknown == []
        assert (given.module, given.training_script) == (True, "isoglot")
        command, *arguments = given.training_script_args
        assert command == "pretrain"
        context = pretrain.make_context("pretrain", arguments)
        assert context.params["recipe"] == "xlm"


def test_the_scripts_of_distributed_md_are_scripts():
    scripts = [one for one in blocks("distributed.md") if one.language in ("sh", "python")]
    for block in scripts:
        if block.language == "python":
            compile(block.text, block.file, "exec")
        else:
            subprocess.run(["bash", "-n"], input=block.text.encode(), check=True)
    assert {block.language for block in scripts} == {"sh", "python"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_that_a_page_shows_exist(page, tmp_path):
    """A YAML block is a recipe, a prepare file, or a part of one; or a request of adapt."""
    for block in blocks(page.name):
        settings = yaml.safe_load(block.text) if block.language == "yaml" else {}
        if not settings or "wikipedia" in settings or "extends: mine.yaml" in block.text:
            continue
        if "apiVersion" in settings:  # of Kubernetes
            continue
        shown = tmp_path / "shown.yaml"
        if "graphs" in settings:
            shown.write_text(yaml.safe_dump(settings), encoding="utf-8")
            assert structure(document.read(shown), GraphConfig).graphs
        elif "encoder" in settings:
            shown.write_text(block.text, encoding="utf-8")
            assert load_request(shown).languages
        elif settings.keys() & {"sources", "tokenizer", "duplicates"}:
            sources = {"text": {"format": "lines", "files": {"sw": ["raw/sw.txt"]}}}
            shown.write_text(yaml.safe_dump({"sources": sources, **settings}), encoding="utf-8")
            assert load_prepare(shown)
        else:
            if "init_from" in settings.get("model", {}):
                settings["model"].setdefault("size", None)  # in the place of xlm's
            shown.write_text(yaml.safe_dump({"extends": "xlm", "name": "shown", **settings}))
            assert load_recipe(str(shown)).stages


@pytest.mark.parametrize("page", ["README.md", "docs/glossary.md"])
def test_files_that_a_page_names_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    files = re.findall(r"\| `([\w/]+(?:/|\.py))` \|$", text, re.MULTILINE)
    assert len(files) > 9
    assert [file for file in files if not (ROOT / "src/isoglot" / file).exists()] == []


def test_files_that_the_design_follows_exist():
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`([\w/]+\.py)`", text))
    known = [f"/{path.relative_to(ROOT)}" for path in ROOT.glob("[st]*/**/*.py")]
    assert len(files) > 60
    assert [file for file in files if not any(one.endswith(f"/{file}") for one in known)] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_the_index_lists_every_page():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    listed = {"index.md", *re.findall(r"\]\((.+?)\)", index)}
    assert {page.name for page in PAGES} == {page for page in listed if "/" not in page}
    assert {
        f"{path.name}/index.md" for path in (ROOT / "docs").iterdir() if any(path.glob("*.md"))
    } == {page for page in listed if "/" in page}


def test_the_task_of_tasks_md(tmp_path):
    (example,) = [block.text for block in blocks("tasks.md") if block.language == "python"]
    found: dict[str, Any] = {}
    exec(example, found)  # noqa: S102 (the page's own code)
    (tmp_path / "intents").mkdir()
    file = tmp_path / "intents/sw.test.tsv"
    file.write_text("text\tlabel\nMnafungua saa ngapi?\thours\n", encoding="utf-8")
    task = found["Intents"]()
    (split,) = task.splits(tmp_path)
    (example_read,) = task.read(split)
    assert (split.language, split.name, example_read.label) == ("sw", "test", "hours")
    assert task.score([example_read], ["hours"], "sw") == {"accuracy": 1.0}


def test_no_page_has_a_placeholder():
    """`NUMBER_HERE` stood for a measurement in a page for a while."""
    found = {
        page.name: words
        for page in (*PAGES, ROOT / "README.md")
        if (words := re.findall(r"\b[A-Z]+_HERE\b|\bTODO\b|\bFIXME\b", page.read_text("utf-8")))
    }
    assert not found

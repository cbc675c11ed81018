"""A disk that is full is a sentence in every command, with nothing half-written left behind.

The limit on the size of a file (`RLIMIT_FSIZE`) stands in for the disk: writing fails at the n-th
byte of any file, in whichever library writes it, and needs no privilege.
"""

from __future__ import annotations

import contextlib
import io
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from tests.cli.conftest import FEW_STEPS, PREPARE, SERVING, SILENT, CommandOutput, all_commands
from tests.cli.test_knowledge import PREPARE as PREPARE_WIKI
from tests.cli.test_translate import FEW as TRANSLATION
from tests.corpus.knowledge.small_dumps import write_dumps
from tests.models.transplant.tiny_tokenizers import model_for, of_words
from tests.tiny_corpus import words, write_raw

SHORT = ("--protocol", "testbed", "--set", "epochs=1", "--set", "max_train_examples=16")
COMMANDS: dict[str, str] = {
    "prepare": "prepare prepare.yaml -o disk/corpus",
    "pretrain": "pretrain few.yaml --corpus CORPUS -o disk/run --resume",
    "evaluate": "evaluate model --tasks tatoeba,mlama --data data -l sw -o disk/results.json "
    "--save-predictions disk/said.jsonl --visualizations",
    "finetune": "finetune model --tasks testbed-pos -l en,sw --seeds 1 -o disk/results.json "
    f"--save-models disk/kept --save-predictions disk/said {' '.join(SHORT)}",
    "study": "study few.yaml --corpus CORPUS --seeds 1 -o disk/study --tasks testbed-sentiment "
    f"-l en,sw {' '.join(SHORT).replace('--set', '--set-finetune')}",
    "transplant": "transplant english -t many -o disk/new",
    "vocabulary grow": "vocabulary grow english --text sw.txt -o disk/new",
    "vocabulary trim": "vocabulary trim english --text en.txt -o disk/new",
    "cooccurrence count": "cooccurrence count CORPUS -o disk/counts",
    "cooccurrence phrases": "cooccurrence phrases CORPUS -o disk/phrases.npy --set min_count=4",
    "knowledge extract": "knowledge extract dumps/dumps.yaml -o disk/tables",
    "knowledge link": "knowledge link tables -c disk/corpus",
    "report": "report run -o disk/report.html --markdown disk/a.md --latex disk/a.tex",
    "analyze plot": "analyze plot run --metric mlm/loss -o disk/figure.svg",
    "show corpus": "show corpus CORPUS --html disk/corpus.html",
    "show batch": "show batch few.yaml --corpus CORPUS --html disk/batch.html",
    "translate": "translate translator --from aa --to bb -r reference.txt -o disk/results.json",
    "demo": "demo -o disk/demo",
    "adapt": "adapt model --text en=sw.txt -o disk/adapted --dry-run",
    "align": "align en-sw.tsv -m model -o disk/links --words-out disk/words",
    "mine": "mine en.txt sw.txt -m model -o disk/pairs.tsv --threshold 0 --vectors disk/vectors",
    "export": "export model -f sentence-transformers,onnx --to disk/exported",
    "knowledge graph": "knowledge graph graph.yaml -o disk/graph",
    "knowledge heldout": "knowledge heldout KNOWING -o disk/heldout",
    "analyze transfer": "analyze transfer run -s aa -o disk/transfer.svg",
}
ELSEWHERE = {"fetch": "tests/fetching/test_download.py"}
"""Commands that need more than a folder, and the file that tests them."""
ONCE = ("demo", "adapt")
"""Commands that take minutes, and write what the others do."""


def test_every_command_that_writes_is_tried():
    assert {*COMMANDS, *ELSEWHERE} == all_commands() - SILENT - SERVING


@contextlib.contextmanager
def full_at(size: int) -> Iterator[None]:
    """Writing fails after `size` bytes of any file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def inputs(corpus, tmp_path_factory) -> Path:
    """A folder with what the commands read."""
    folder: Path = tmp_path_factory.mktemp("inputs")
    write_raw(folder / "raw", sentences=120, pairs=80)
    (folder / "prepare.yaml").write_text(PREPARE, encoding="utf-8")
    (folder / "few.yaml").write_text(FEW_STEPS, encoding="utf-8")
    (folder / "translation.yaml").write_text(TRANSLATION, encoding="utf-8")
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=2, hidden_size=16, num_heads=2, max_positions=64)
    encoder = Encoder.build(settings, corpus.vocabulary)
    export_encoder(encoder, folder / "model", tokenizer_folder=corpus.tokenizer_folder, card="")
    (folder / "data/tatoeba").mkdir(parents=True)
    rows = "\n".join(f"{word}\t{word}" for word in words("aa")[:8])
    (folder / "data/tatoeba/swh-eng.tsv").write_text(rows, encoding="utf-8")
    facts = folder / "data/mlama1.1/sw"
    facts.mkdir(parents=True)
    (facts / "templates.jsonl").write_text('{"relation": "P36", "template": "[X] [Y] ."}')
    (facts / "P36.jsonl").write_text('{"uuid": "1", "sub_label": "kalo", "obj_label": "x"}')
    model_for(of_words("bytes", folder / "english", ["house", "big", "dog", "the"]))
    of_words("unigram", folder / "many", ["house", "big", "nyumba", "zzz"], "nyumba")
    (folder / "en.txt").write_text("the house\n")
    (folder / "sw.txt").write_text("nyumba kubwa. nyumba!\n")
    (folder / "reference.txt").write_text("a b c d\n")
    (folder / "en-sw.tsv").write_text("kalo mitu\tsera lo\nlo\tka\n")
    (folder / "graph.yaml").write_text("graphs: {mine: {files: [names.tsv]}}\n")
    (folder / "names.tsv").write_text("Q1\ten\tKenya\nQ1\tde\tKenia\n")
    write_dumps(folder / "dumps")
    return folder


@pytest.fixture(scope="module")
def more_inputs(inputs, corpus) -> Path:
    """The same, with what only commands can make."""
    from isoglot.cli import main

    made = {
        "run": f"pretrain few.yaml --corpus {corpus.folder} -o run",
        "translator": f"pretrain translation.yaml --corpus {corpus.folder} -o translator",
        "tables": "knowledge extract dumps/dumps.yaml -o tables",
        "wiki": "prepare wiki.yaml -o wiki",
    }
    (inputs / "wiki.yaml").write_text(PREPARE_WIKI, encoding="utf-8")
    before = sys.argv
    with contextlib.chdir(inputs):
        for arguments in made.values():
            sys.argv = ["isoglot", *arguments.split()]
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code
    sys.argv = before
    return inputs


@pytest.fixture
def run(
    isoglot, more_inputs, corpus, knowing, tmp_path, monkeypatch
) -> Callable[..., CommandOutput]:
    """Runs a command of `COMMANDS` in a folder with everything that it reads."""
    for path in more_inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    clear(tmp_path)

    def typed(command: str) -> Any:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kalo mitu.\n")))
        arguments = COMMANDS[command].replace("CORPUS", str(corpus.folder))
        return isoglot(*arguments.replace("KNOWING", str(knowing.folder)).split())

    return typed


def clear(folder: Path) -> None:
    shutil.rmtree(folder / "disk", ignore_errors=True)
    (folder / "disk").mkdir()
    shutil.copytree(folder / "wiki", folder / "disk/corpus")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_a_sentence(command, run, tmp_path):
    if command == "prepare":
        shutil.rmtree(tmp_path / "disk/corpus")
    sizes = [1]
    if command not in ONCE:
        there = set(files(tmp_path))
        said = run(command)
        assert said.code == 0, said.err
        written = {path.stat().st_size for path in files(tmp_path) if path not in there}
        sizes = sorted(size for size in written if size)
        sizes = [1, sizes[len(sizes) // 2], sizes[-1]]
    for size in sizes:
        clear(tmp_path)
        if command == "prepare":
            shutil.rmtree(tmp_path / "disk/corpus")
        with full_at(size - 1):
            said = run(command)
        assert said.code == 1, (size, said)
        assert "Traceback" not in said.err, said.err
        (sentence,) = [line for line in said.err.splitlines() if line.startswith("isoglot: ")]
        assert "cannot be written (" in sentence
        # or the folder for temporary files
        assert "disk/" in sentence or tempfile.gettempdir() in sentence
        left = [path for path in files(tmp_path) if is_temporary(path)]
        assert left == [], (size, sentence)
    if command not in ONCE:
        said = run(command)
        assert said.code == 0, said.err


def files(folder: Path) -> list[Path]:
    return [path for path in (folder / "disk").rglob("*") if path.is_file()]


def is_temporary(path: Path) -> bool:
    return any(part.endswith((".partial", ".replaced", ".lock", ".tmp")) for part in path.parts)

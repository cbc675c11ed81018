"""The five scripts end to end, as a person runs them: `reproduce/PAPER.sh --small`."""

import os
import re
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from reproduce.pages import FOLDER, dry_run, planned, updated, without_repetitions
from reproduce.table import PAPERS, read_tables

from isoglot.fetching.registry import parse_name

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
LONGEST_FIRST = ("mlm-gc", "ppa", "xlm-k", "metaxlm", "ernie-m")


def run(paper: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(FOLDER / f"{paper}.sh"), *options]
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """All scripts, two at a time: paper -> its working folder and what it printed."""
    folder = tmp_path_factory.mktemp("reproduced")
    with ThreadPoolExecutor(2) as pool:
        runs = {
            paper: pool.submit(run, paper, "--small", "--work", str(folder / paper))
            for paper in LONGEST_FIRST
        }
        return {paper: (folder / paper, done.result()) for paper, done in runs.items()}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_row_of_the_tables_is_filled(paper, finished):
    folder, done = finished[paper]
    assert done.returncode == 0, done.stdout[-3000:]
    text = (folder / "tables.md").read_text("utf-8")
    assert text in done.stdout
    assert text.startswith("**These numbers mean nothing.**")
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if "this run" in line]
    tables = read_tables(paper)
    assert len(cells) == sum(len(table.rows) for table in tables)
    for _, *numbers in cells:
        filled = [one for one in numbers if re.fullmatch(r"[\d.]+(/[\d.]+)?", one)]
        # --small translates one of the three languages of MLM-GC's Table 4
        assert len(filled) == (2 if paper == "mlm-gc" and len(numbers) == 6 else len(numbers))
    for table in tables:
        for row in table.rows:
            assert f"| {row.label} | the paper | {' | '.join(row.printed)} |" in text
    assert (folder / "report.html").stat().st_size > 1000


@pytest.mark.parametrize("paper", PAPERS)
def test_small_and_full_path_are_the_same_verbs_in_the_same_order(paper):
    full = without_repetitions(paper, planned(dry_run(paper)))
    small = planned(run(paper, "--small", "--dry-run").stdout)

    def verbs(commands: list[str]) -> list[list[str]]:
        # the verb, and what it works on: a recipe, a run, a file
        return [
            command.split()[: 2 if " fetch " in command or " report " in command else 3]
            for command in commands
        ]

    assert verbs(small) == verbs(full)
    assert {command.split()[1] for command in small} >= {"fetch", "prepare", "pretrain", "report"}


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_fetched_is_in_the_registry(paper):
    (fetch,) = (one for one in planned(dry_run(paper)) if one.startswith("isoglot fetch "))
    names = fetch.removeprefix("isoglot fetch ").removesuffix(" --out data").split()
    assert len(names) > 5
    for name in names:
        request = parse_name(name)
        assert not request.entry.how, f"{name} cannot be fetched: {request.entry.how}"


@pytest.mark.parametrize("page", ["README", *PAPERS])
def test_pages_are_up_to_date(page):
    file = FOLDER / f"{page}.md"
    assert updated(file) == file.read_text("utf-8"), "run python -m reproduce.pages"


def test_a_finished_script_does_nothing_again(finished):
    folder, _ = finished["ernie-m"]
    again = run("ernie-m", "--small", "--work", str(folder))
    assert again.returncode == 0
    assert "\n+ " not in again.stdout
    assert (folder / "tables.md").read_text("utf-8") in again.stdout


def test_an_interrupted_script_goes_on(finished):
    """Ctrl-C in the second pre-training of a script whose first half is done."""
    folder, _ = finished["ernie-m"]
    table = (folder / "tables.md").read_text("utf-8")
    steps = {path.read_text("utf-8"): path for path in (folder / ".steps").iterdir()}
    lost = [command for command in steps if "runs/ernie-m-large" in command]
    assert len(lost) == 4  # pretrain, two finetunes, report
    for command in lost:
        steps[command].unlink()
    shutil.rmtree(folder / "runs/ernie-m-large")
    command = ["bash", str(FOLDER / "ernie-m.sh"), "--small", "--work", str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as script:
        assert script.stdout is not None
        for line in script.stdout:
            if line.startswith("note: runs/ernie-m-large has no checkpoint yet"):
                os.killpg(script.pid, signal.SIGINT)
                break
        rest = script.stdout.read()
    assert script.returncode != 0
    assert "\n+ " not in rest
    again = run("ernie-m", "--small", "--work", str(folder))
    assert again.returncode == 0, again.stdout[-3000:]
    assert again.stdout.count("\n+ ") == 4
    assert (folder / "tables.md").read_text("utf-8") == table


def test_a_failure_stops_the_script(tmp_path):
    (tmp_path / "prepare.yaml").mkdir()  # where a file is to be written
    done = run("ernie-m", "--small", "--work", str(tmp_path))
    assert done.returncode != 0
    assert "isoglot pretrain" not in done.stdout
    assert not (tmp_path / "tables.md").exists()


def test_help_and_unknown_options(tmp_path):
    told = run("ppa", "--help")
    assert told.returncode == 0
    assert "reproduce/ppa.sh --dry-run" in told.stdout
    told = run("ppa", "--smal")
    assert told.returncode == 2
    assert "--smal: there is no such option." in told.stdout


def test_no_hub_is_asked_for_small_models(finished):
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    folder, _ = finished["xlm-k"]
    assert Path(folder, "xlm-roberta-base/config.json").is_file()

"""`isoglot watch` in processes of its own: a pipe, a terminal, a run that is being written."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from isoglot.cli import main
from tests.report.test_live_run import step, write

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-m", "isoglot", "watch"]


@pytest.fixture
def folder(tmp_path) -> Path:
    made: Path = tmp_path / "run"
    made.mkdir()
    (made / "recipe.yaml").write_text("stages: [{steps: 20}]\n")
    return made


def finish(folder: Path, first: int) -> None:
    """Write the steps from one on, in halves of lines, as a run on a slow disk does."""
    for number in range(first, 21):
        line = json.dumps(step(number)) + "\n"
        for half in (line[:50], line[50:]):
            with (folder / "metrics.jsonl").open("a") as file:
                file.write(half)
            time.sleep(0.01)


def test_a_pipe_gets_a_line_for_each_record_and_the_end(folder):
    with subprocess.Popen(
        [*COMMAND, f"mine={folder}", "--every", "0.1"], stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        waiting = watching.stdout.readline()
        finish(folder, 1)
        lines = watching.stdout.read().splitlines()
    assert watching.returncode == 0
    assert waiting == f"mine: waiting for the first record in {folder / 'metrics.jsonl'}\n"
    assert [line.partition("  ")[0] for line in lines[:-1]] == [
        f"mine step {number}/20" for number in range(1, 21)
    ]
    assert lines[-1] == "mine: finished at step 20; the model is being exported"


def test_a_terminal_gets_one_frame_that_is_drawn_anew(folder):
    write(folder, [step(1)])
    mine, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "LINES": "40", "TERM": "xterm"}
    command = [*COMMAND, str(folder), "--every", "0.1"]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as watching:
        os.close(theirs)
        seen = _read_until(mine, "step 1 of 20")
        finish(folder, 2)
        seen += _read_until(mine, None)
    os.close(mine)
    assert watching.returncode == 0
    assert "\x1b[" in seen, "lines are drawn over"
    assert seen.rstrip().rpartition("╭")[2].count("step 20 of 20") == 1
    assert "finished at step 20" in seen.rpartition("╭")[2]


def _read_until(terminal: int, text: str | None) -> str:
    """What a process writes to a terminal, until a text of it, or its end."""
    seen = b""
    while text is None or text not in seen.decode(errors="replace"):
        try:
            new = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not new:
            break
        seen += new
    return seen.decode(errors="replace")


def test_once_prints_a_frame_and_ends(folder, monkeypatch, capsys):
    write(folder, [step(1)])
    monkeypatch.setattr(sys, "argv", ["isoglot", "watch", str(folder), str(folder), "--once"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    text = capsys.readouterr().out
    assert text.count("step 1 of 20") == 2
    monkeypatch.setattr(sys, "argv", ["isoglot", "watch", str(folder.parent), "--once"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "is not a run" in capsys.readouterr().err
    # the folder of `isoglot adapt` has its run in run/
    (folder.parent / "adapt.yaml").touch()
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert f" {folder.parent.name} " in capsys.readouterr().out


def test_watching_needs_no_torch(folder):
    write(folder, [step(1)])
    code = (
        "import sys; from isoglot.cli import main\n"
        "try: main()\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, "watch", str(folder), "--once"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.splitlines()[-1] == "False"

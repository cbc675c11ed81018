"""Starting and killing runs from tests."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
TIMED = ("seconds", "tokens_per_second")


def command(corpus: Path, run: Path, *options: str, processes: int = 1) -> list[str]:
    launcher = [sys.executable, "-m"]
    if processes > 1:
        launcher += ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
    return [*launcher, "tests.pretrain.driver", str(corpus), str(run), *options]


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        arguments,
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(arguments: list[str]) -> None:
    process = start(arguments)
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors.decode()


def kill_at_step(arguments: list[str], metrics: Path, step: int, delay: float) -> bool:
    """SIGKILL the whole run soon after it has noted a step; False if it finished before."""
    process = start(arguments)
    while process.poll() is None and last_step(metrics) < step:
        time.sleep(0.002)
    time.sleep(delay)
    # torchrun puts its processes into sessions of their own
    with contextlib.suppress(psutil.NoSuchProcess):
        parent = psutil.Process(process.pid)
        for one in [parent, *parent.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def last_step(metrics: Path) -> int:
    records = losses(metrics)
    return max(records, default=0)


def losses(metrics: Path) -> dict[int, dict[str, float]]:
    """What a run noted of each step, without what depends on the clock."""
    found: dict[int, dict[str, float]] = {}
    if metrics.exists():
        for line in metrics.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            step = record.pop("step")
            kept = {k: v for k, v in record.items() if k not in TIMED}
            found.setdefault(step, {}).update(kept)
    return found


def killed_again_and_again(
    corpus: Path, run: Path, *options: str, processes: int = 1, seed: int = 0, kills: int = 3
) -> int:
    """Run to the end, killed at random moments on the way; gives how often it was killed."""
    chance = random.Random(seed)
    metrics = run / "metrics.jsonl"
    killed = 0
    for number in range(kills):
        resume = ("--resume",) if number else ()
        arguments = command(corpus, run, *options, *resume, processes=processes)
        step = last_step(metrics) + chance.randint(2, 5)
        killed += kill_at_step(arguments, metrics, step, chance.random() * 0.05)
    finish(command(corpus, run, *options, "--resume", processes=processes))
    return killed

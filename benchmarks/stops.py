"""Runs on several processes that are killed or stopped again and again, under torchrun.

    python -m benchmarks.stops FOLDER --processes 2 4 --kills 20 --stops 20 --strategy ddp

Kills: one `torchrun --max-restarts ... --resume`, in which a random rank gets SIGKILL at a random
moment. Its surviving ranks must end within seconds with a sentence, and the restarted run must go
on from the newest checkpoint that was on disk when the rank was killed, or from a later one.
Stops: torchrun's agent and all its processes get SIGTERM, in random order. No step may be lost: the
newest checkpoint is that of the last step that was noted. At the end the weights of both runs must
be those of an undisturbed run, byte for byte.

FOLDER/results.json keeps what was measured; the same command goes on where it was interrupted, and
higher numbers add to it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

RECIPE = """\
extends: tiny
name: stops
model: {num_layers: 1, hidden_size: 32, num_heads: 2, max_positions: 96, dropout: 0.1}
stages:
  - steps: 160
    streams: {text: {objectives: [mlm]}}
batch: {rows: 8, micro_rows: 2, row_length: 96}
loader: {num_workers: 0}
checkpoint: {every_steps: 4}
logging: {validate_every_steps: 0, validate_examples: 2, trackers: []}
"""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "COLUMNS": "200"}
_RESUMED = re.compile(r"(?:resuming\s+from\s+\S+\s+at|the\s+run\s+starts\s+at)\s+step\s+(\d+)")
_START_SECONDS = 300.0
"""Most time until a run that was started takes a step."""


class ForkedAgent:
    """torchrun's agent in a forked process, which forks the processes of the run: no imports."""

    def __init__(self, launch: Launch, arguments: list[str]) -> None:
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_agent, args=(launch, arguments))
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for its end."""
        self._process.join(timeout)
        return self._process.exitcode


def _agent(launch: Launch, arguments: list[str]) -> None:
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.chdir(launch.folder)
    with launch.log.open("ab") as log, Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(log.fileno(), 2)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=launch.processes,
        run_id=launch.run.name,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=launch.restarts,
        start_method="fork",
    )
    elastic_launch(config, _worker)(arguments)


def _worker(arguments: list[str]) -> None:
    from isoglot.cli import main as isoglot

    sys.argv = arguments
    isoglot()


@dataclass(slots=True, kw_only=True)
class Launch:
    """torchrun with a run that is to be disturbed; what it prints goes to a file."""

    folder: Path
    run: Path
    processes: int
    strategy: str
    restarts: int = 0
    fork: bool = False
    agent: subprocess.Popen[bytes] | ForkedAgent = field(init=False)
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.run.with_suffix(".log")
        self.log.touch()
        recipe = ["pretrain", str(self.folder / "stops.yaml"), "--out", str(self.run), "--resume"]
        arguments = ["isoglot", *recipe, "--set", f"distributed.strategy={self.strategy}"]
        if self.fork:
            self.agent = ForkedAgent(self, arguments)
            return
        torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={self.processes}"]
        torchrun.append(f"--max-restarts={self.restarts}")
        self.agent = subprocess.Popen(
            [sys.executable, "-m", *torchrun, "-m", *arguments],
            cwd=self.folder,
            env={**os.environ, **ENVIRONMENT},
            stdout=subprocess.DEVNULL,
            stderr=self.log.open("ab"),
        )

    def said(self) -> str:
        """Everything that was printed so far, by earlier launches too."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def workers(self) -> list[psutil.Process]:
        """The processes of the run, in the order of their ranks."""
        with contextlib.suppress(psutil.NoSuchProcess):
            assert self.agent.pid is not None
            return sorted(psutil.Process(self.agent.pid).children(), key=lambda one: one.pid)
        return []

    def wait_for_step(self, step: int) -> bool:
        """Wait until a step is noted; False if the run ended before."""
        deadline = time.monotonic() + _START_SECONDS
        while last_step(self.run) < step:
            if self.agent.poll() is not None:
                return False
            if time.monotonic() > deadline:
                raise SystemExit(f"{self.run} took no step: {self.log}")
            time.sleep(0.005)
        return True


def last_step(run: Path) -> int:
    """The last step that a run has noted."""
    try:
        lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    for line in reversed(lines):
        with contextlib.suppress(ValueError):
            return int(json.loads(line)["step"])
    return 0


def last_checkpoint(run: Path) -> int:
    """The step of the newest checkpoint that is complete."""
    found = [int(path.name.removeprefix("step-")) for path in (run / "checkpoints").glob("step-*")]
    return max(found, default=0)


def weights(run: Path) -> dict[str, bytes]:
    """The exported weights."""
    return {path.name: path.read_bytes() for path in sorted((run / "model").glob("*.safetensors"))}


def kill_again_and_again(launch: Launch, chance: random.Random, kills: int) -> list[dict[str, Any]]:
    """Kill a random rank of a run that torchrun restarts; what was measured of each kill."""
    found: list[dict[str, Any]] = []
    for _ in range(kills):
        if not launch.wait_for_step(last_step(launch.run) + chance.randint(1, 7)):
            break
        time.sleep(chance.random() * 0.1)
        workers = launch.workers()
        rank, saved = chance.randrange(launch.processes), last_checkpoint(launch.run)
        step, told = last_step(launch.run), launch.said().count("has ended:")
        # the start of the processes that are killed now has been said by their first step
        starts = len(_RESUMED.findall(launch.said()))
        if len(workers) != launch.processes:
            break
        began = time.monotonic()
        workers[rank].kill()
        psutil.wait_procs(workers, timeout=60)
        ended = time.monotonic() - began
        while len(_RESUMED.findall(launch.said())) == starts and launch.agent.poll() is None:
            time.sleep(0.02)
        resumed = _RESUMED.findall(launch.said())[starts:]
        at = int(resumed[0]) if resumed else 0
        found.append(
            {
                "rank": rank,
                "step": step,
                "saved": saved,
                "resumed": at,
                "seconds_to_end": round(ended, 2),
                "seconds_to_resume": round(time.monotonic() - began, 1),
                "told": launch.said().count("has ended:") - told,
                "lost": at < saved,
            }
        )
        print(json.dumps(found[-1]), flush=True)
    return found


def stop(launch: Launch, chance: random.Random) -> dict[str, Any] | None:
    """SIGTERM to the agent and all processes; what was measured, none if the run was over."""
    before = last_step(launch.run)
    if not launch.wait_for_step(before + chance.randint(1, 7)):
        return None
    time.sleep(chance.random() * 0.1)
    targets = [psutil.Process(launch.agent.pid), *launch.workers()]
    chance.shuffle(targets)
    began = time.monotonic()
    for one in targets:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(signal.SIGTERM)
    launch.agent.wait(120)
    step, saved = last_step(launch.run), last_checkpoint(launch.run)
    found = {
        "step": step,
        "saved": saved,
        "seconds_to_end": round(time.monotonic() - began, 2),
        "exit_code": launch.agent.returncode,
        "stopped_json": (launch.run / "stopped.json").is_file(),
        "lost": saved != step,
    }
    print(json.dumps(found), flush=True)
    return found


def campaign(given: argparse.Namespace, processes: int, strategy: str, results: Results) -> None:
    """Disturb two runs and compare their weights with those of one that nobody disturbs."""
    name, folder = f"{strategy}-{processes}", given.folder
    common = {"folder": folder, "processes": processes, "strategy": strategy, "fork": given.fork}
    whole = folder / f"whole-{name}"
    if not weights(whole):
        began = time.monotonic()
        Launch(run=whole, **common).agent.wait()
        print(f"{name}: undisturbed in {time.monotonic() - began:.0f} s", flush=True)
    for kind, wanted in (("kills", given.kills), ("stops", given.stops)):
        number = 0
        while results.count(name, kind) < wanted:
            run, number = folder / f"{kind}-{name}-{number}", number + 1
            if weights(run):
                continue
            chance = random.Random(f"{given.seed} {run.name} {results.count(name, kind)}")
            while results.count(name, kind) < wanted and not weights(run):
                left = wanted - results.count(name, kind)
                launch = Launch(run=run, restarts=left if kind == "kills" else 0, **common)
                if kind == "kills":
                    results.add(name, kind, kill_again_and_again(launch, chance, left))
                    launch.agent.wait()
                else:
                    one = stop(launch, chance)
                    results.add(name, kind, [one] if one else [])
            if not weights(run):
                Launch(run=run, **common).agent.wait()
            results.compare(name, run, equal=weights(run) == weights(whole) != {})


@dataclass(slots=True)
class Results:
    """What was measured so far: by campaign, then kills, stops and comparisons."""

    file: Path
    found: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file.exists():
            self.found = json.loads(self.file.read_text(encoding="utf-8"))

    def count(self, name: str, kind: str) -> int:
        """How many kills or stops there were."""
        return len(self.found.get(name, {}).get(kind, []))

    def add(self, name: str, kind: str, more: list[dict[str, Any]]) -> None:
        """Keep some more."""
        self.found.setdefault(name, {}).setdefault(kind, []).extend(more)
        self._write()

    def compare(self, name: str, run: Path, *, equal: bool) -> None:
        """Keep whether the weights of a run are those of the undisturbed one."""
        self.found.setdefault(name, {}).setdefault("equal_weights", {})[run.name] = equal
        self._write()

    def _write(self) -> None:
        self.file.write_text(json.dumps(self.found, indent=1), encoding="utf-8")

    def summary(self) -> list[str]:
        """One line for each campaign and kind."""
        lines = []
        for name, of in self.found.items():
            for kind in ("kills", "stops"):
                ones = of.get(kind, [])
                ends = sorted(one["seconds_to_end"] for one in ones)
                if ends:
                    lost = sum(one["lost"] for one in ones)
                    silent = sum(one.get("told", 1) < 1 for one in ones)
                    lines.append(
                        f"{name}: {len(ones)} {kind}, {lost} lost something, {silent} without a "
                        f"sentence; ended in {ends[len(ends) // 2]} s (median), {ends[-1]} s (most)"
                    )
            same = of.get("equal_weights", {})
            lines.append(f"{name}: weights equal in {sum(same.values())} of {len(same)} runs")
        return lines


def main() -> None:
    """Run campaigns, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="runs and results.json; kept")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--strategy", nargs="+", default=["ddp"], help="ddp, fsdp")
    parser.add_argument("--kills", type=int, default=20, help="SIGKILLs of one rank, in all")
    parser.add_argument("--stops", type=int, default=20, help="SIGTERMs to everybody, in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--fork", action="store_true", help="torchrun's agent and processes are forked: quicker"
    )
    given = parser.parse_args()
    given.folder = given.folder.resolve()
    given.folder.mkdir(parents=True, exist_ok=True)
    (given.folder / "stops.yaml").write_text(RECIPE, encoding="utf-8")
    os.environ.update(ENVIRONMENT)
    if given.fork:
        importlib.import_module("tests.pretraining.warm")  # everything slow that starts no thread
    results = Results(given.folder / "results.json")
    for strategy in given.strategy:
        for processes in given.processes:
            campaign(given, processes, strategy, results)
    print("\n".join(results.summary()))


if __name__ == "__main__":
    main()

"""Runs on several machines whose network or power fails, on one Linux machine.

    python -m benchmarks.machines FOLDER --strategy ddp fsdp

It takes root and iproute2 (`network.py`). torchrun's agents find each other by name, the processes
talk over the cables by gloo, and the run's folder is shared. One run each:

    undisturbed    nothing happens
    slow           every cable carries 10 Mbit/s and drops what would wait longer than 20 ms
    interrupted    the second machine's cable is out for eight seconds: the run goes on
    cable          it stays out until all processes have ended, then is in again
    long cable     it is in again 90 s later
    power          the second machine loses power: nothing of it says anything any more
    first power    the first machine does, which all others are connected to
    killed         a process of the second machine is killed; torchrun restarts all
    stopped        the second machine's agent gets SIGTERM: all processes save and end
    own disk       the run's folder is another one on each machine: refused

After a loss of power or SIGTERM the agent of that machine is started again, and those of others
that have ended; after a cable only if the agents do not go on by themselves. Each run but the last
must end with the weights of as many processes on one machine, byte for byte. FOLDER/results.json
keeps what was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.machines import network, trial
from benchmarks.machines.trial import DISTURBANCES, Trial, TrialError
from benchmarks.stops import ENVIRONMENT, weights
from benchmarks.stops import RECIPE as RECIPE_TEXT


def on_one_machine(folder: Path, run: Path, processes: int, strategy: str) -> None:
    """As many processes on one machine, undisturbed."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    torchrun += [f"--nproc-per-node={processes}", "-m", "isoglot", "pretrain", trial.RECIPE]
    with (folder / "logs" / f"{run.name}.log").open("wb") as log:
        subprocess.run(
            [*torchrun, "--out", str(run), "--set", f"distributed.strategy={strategy}"],
            cwd=folder,
            env={**os.environ, **ENVIRONMENT},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )


def disturbed(given: argparse.Namespace, name: str, run: Path, strategy: str) -> dict[str, Any]:
    """One run with one disturbance, and what was measured."""
    shutil.rmtree(run, ignore_errors=True)
    for old in (given.folder / "logs").glob(f"{run.name}-node*.log"):
        old.unlink()
    began = time.monotonic()
    with network.network(given.folder, given.machines) as machines:
        one = Trial(machines, given.processes, run, strategy)
        found = DISTURBANCES[name](one)
        found.setdefault("exit_codes", one.wait())
    return {**found, "seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    """Try every disturbance with every strategy, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="runs, logs and results.json; kept")
    parser.add_argument("--strategy", nargs="+", default=["ddp", "fsdp"], help="ddp, fsdp, hsdp")
    parser.add_argument("--machines", type=int, default=2, help="each with its own network")
    parser.add_argument("--processes", type=int, default=1, help="on each machine")
    parser.add_argument("--only", nargs="+", choices=DISTURBANCES, default=list(DISTURBANCES))
    given = parser.parse_args()
    if not network.is_possible():
        raise SystemExit("Network namespaces take root and iproute2: apt-get install iproute2.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # networks are removed
    folder = given.folder = given.folder.resolve()
    for name in ("runs", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / trial.RECIPE).write_text(RECIPE_TEXT, encoding="utf-8")
    file = folder / "results.json"
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for strategy in given.strategy:
        whole = folder / "runs" / f"{strategy}-one-machine"
        if not weights(whole):
            on_one_machine(folder, whole, given.machines * given.processes, strategy)
        for name in given.only:
            key = f"{strategy}, {name}"
            run = folder / "runs" / f"{strategy}-{name.replace(' ', '-')}"
            if key in results:
                continue
            try:
                found = disturbed(given, name, run, strategy)
            except TrialError as error:
                print(f"{key}: {error}", file=sys.stderr, flush=True)
                continue
            if name != "own disk":
                found["weights_equal"] = weights(run) == weights(whole) != {}
            results[key] = found
            print(json.dumps({key: found}, ensure_ascii=False), flush=True)
            file.write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Starting and killing runs from tests.

A run is started as people start it, a new `python` or torchrun, where that is what is tested or
compared with. Runs that are only there to be killed and to go on are forked from a process that
has the imports behind it: as killable, and some six seconds sooner each.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path

from torch.distributed import TCPStore  # type: ignore[attr-defined]

ROOT = Path(__file__).parents[2]
TIMED = ("seconds", "tokens_per_second")

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(
    [
        "tests.pretraining.warm",
        "pytorch_optimizer",
        "transformers.models.xlm_roberta.modeling_xlm_roberta",
    ]
)


def command(corpus: Path, run: Path, *options: str, processes: int = 1) -> list[str]:
    launcher = [sys.executable, "-m"]
    if processes > 1:
        launcher += ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
    return [*launcher, "tests.pretraining.driver", str(corpus), str(run), *options]


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


class Forked:
    """A run of one forked process, or of several that find each other as torchrun's do."""

    def __init__(
        self,
        corpus: Path,
        run: Path,
        *options: str,
        processes: int = 1,
        program: str = "tests.pretraining.driver",
    ) -> None:
        run.parent.mkdir(parents=True, exist_ok=True)
        self._errors = run.with_suffix(".errors")
        self._errors.write_bytes(b"")
        self._store = None
        shared = {"OMP_NUM_THREADS": "1"}
        if processes > 1:
            self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            shared |= {
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(self._store.port),
                "TORCHELASTIC_USE_AGENT_STORE": "True",
                "TORCHELASTIC_RESTART_COUNT": "0",
                "WORLD_SIZE": str(processes),
                "LOCAL_WORLD_SIZE": str(processes),
            }
        self._ranks = []
        for rank in range(processes):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)} if processes > 1 else {}
            arguments = [str(corpus), str(run), *options]
            given = (program, arguments, shared | own, self._errors)
            self._ranks.append(FORKING.Process(target=_as_program, args=given))
        for process in self._ranks:
            process.start()

    @property
    def alive(self) -> bool:
        return all(process.is_alive() for process in self._ranks)

    @property
    def errors(self) -> str:
        """What its processes said to the terminal."""
        return self._errors.read_text(encoding="utf-8")

    def end(self, timeout: float = 180) -> list[int | None]:
        """Wait for all processes; gives their exit codes."""
        deadline = time.monotonic() + timeout
        for process in self._ranks:
            process.join(max(0, deadline - time.monotonic()))
        codes = [process.exitcode for process in self._ranks]
        if None in codes:
            self.kill()
        return codes

    def finish(self) -> None:
        assert set(self.end()) == {0}, self.errors

    def signal(self, number: int) -> None:
        """A signal to every process."""
        for process in self._ranks:
            if process.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)

    def kill(self) -> None:
        """SIGKILL to every process and to theirs, which are in its group (`os.setsid`)."""
        for process in self._ranks:
            assert process.pid is not None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()  # one that has no group yet
        for process in self._ranks:
            process.join()


def _as_program(
    program: str, arguments: list[str], environment: dict[str, str], errors: Path
) -> None:
    """In a forked process: be `python -m PROGRAM`."""
    os.setsid()
    os.chdir(ROOT)
    os.environ.update(environment)
    with errors.open("ab") as file:
        os.dup2(file.fileno(), 2)
    warnings.simplefilter("ignore")
    # its own workers and semaphores are as a new process's
    multiprocessing.set_start_method(None, force=True)
    resource_tracker._resource_tracker._fd = None  # type: ignore[attr-defined]
    sys.argv = [program, *arguments]
    import_module(program).main()
    atexit._run_exitfuncs()  # multiprocessing leaves without


def kill_at_step(running: Forked, metrics: Path, step: int, delay: float) -> bool:
    """SIGKILL the whole run soon after it has noted a step; False if it finished before.

    Once one process is killed, another may end by itself before it is killed, too.
    """
    while running.alive and last_step(metrics) < step:
        time.sleep(0.002)
    time.sleep(delay)
    running.kill()
    codes = running.end()
    return -signal.SIGKILL in codes and 0 not in codes


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
        step = last_step(metrics) + chance.randint(2, 5)
        running = Forked(corpus, run, *options, *resume, processes=processes)
        killed += kill_at_step(running, metrics, step, chance.random() * 0.05)
    Forked(corpus, run, *options, "--resume", processes=processes).finish()
    return killed

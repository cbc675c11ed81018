"""The process in which a run is tried: `python -m isoglot.pretraining.estimates.trial_process`.

    run --requests (JSON lines)--> trial process --answers--> run

The run sees nothing of a trial: its random numbers, weights and compiled kernels are as if nothing
had been tried, and memory that runs out ends the other process at worst. Where a run has several
processes, each starts one; they try numbers of rows each by itself, and measure the costs of a step
together, with the exchange of gradients.
"""

from __future__ import annotations

import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError
from isoglot.pretraining.config import PretrainConfig
from isoglot.pretraining.estimates.costs import RunCosts
from isoglot.pretraining.estimates.micro_rows import DoesNotFitError, SizeTrial
from isoglot.pretraining.memory import device_index, is_out_of_memory, tells_of_memory

if TYPE_CHECKING:
    import torch

    from isoglot.pretraining.estimates.trial import Trial

_LAUNCHER = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "ROLE_",
    "MASTER_",
)
"""Beginnings of the variables by which processes of a run find each other."""
_KILLED = (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGSEGV)
"""How a process ends that gets no memory and cannot say so."""


class TrialError(IsoglotError):
    """A trial ended, and not for lack of memory as far as it could say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """What a trial process is told when it starts."""

    config: PretrainConfig
    """The recipe; its model is the one to start from, transplanted already."""
    corpus: Path
    scratch: Path
    """A folder for what is written on trial."""
    steps: tuple[int, ...]
    """Steps of the stages, to weigh their speeds."""
    num_threads: int
    """Of torch, as in the run."""
    max_bytes: int | None
    """Memory that it may take; none: no limit."""
    num_processes: int = 1
    """Of the run; DDP of several holds the gradients a second time."""


class TrialProcess:
    """The run's end: starts the process with the first request, asks, and ends it."""

    def __init__(self, spec: TrialSpec, device: torch.device, *, port: int | None = None) -> None:
        """With a port, the trial processes of all processes of a run find each other there."""
        self.spec, self._environment = spec, _environment(device, port)
        self._log = spec.scratch / "trial.log"
        self._process: subprocess.Popen[str] | None = None
        self.used_bytes = 0
        """What the process takes without a model, on a CPU."""

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            with suppress(BrokenPipeError):
                self._process.communicate()
            self._process = None

    def smallest(self) -> int:
        """Rows that the sequences of one draw need at least.

        Raises:
            DoesNotFitError: the model alone does not fit the memory.
        """
        found = self._ask({"what": "smallest"})
        if found is None:
            raise DoesNotFitError(
                "batch.micro_rows: auto: the model does not fit the memory. Take a smaller one, or "
                "a machine with more memory.",
                largest=0,
            )
        self.used_bytes = int(found["used_bytes"])
        return int(found["smallest"])

    def size(self, micro_rows: int, seconds: float) -> SizeTrial | None:
        """Try a number of rows for some seconds; none: it does not fit the memory."""
        found = self._ask({"what": "size", "micro_rows": micro_rows, "seconds": seconds})
        return None if found is None else SizeTrial(**found["size"])

    def costs(self, micro_rows: int, seconds: float) -> RunCosts:
        """Measure steps for some seconds, and all that a run does besides.

        Raises:
            DoesNotFitError: it does not fit the memory.
        """
        found = self._ask({"what": "costs", "micro_rows": micro_rows, "seconds": seconds})
        if found is None:
            raise DoesNotFitError(
                f"batch.micro_rows: {micro_rows} rows of {self.spec.config.batch.row_length} "
                "tokens at a time do not fit the memory. Set batch.micro_rows: auto, or a smaller "
                "number.",
                largest=0,
            )
        return RunCosts.read(found["costs"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a request; none: memory ran out."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        line = ""
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            pass
        if not line:
            code = process.wait()
            self.close()
            said = self._last_words()
            # without memory, handling the error of an allocation may itself fail
            if code in _KILLED or tells_of_memory(said):
                return None
            raise TrialError(
                f"the trial of a step ended with an error ({said}). Set "
                "batch.micro_rows to a number and leave --hours and --plan out to train without it."
            )
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise IsoglotError(found["error"])
        if "fits" in found:
            self.close()  # a new process has all of the memory again
            return None
        return found

    def _start(self) -> subprocess.Popen[str]:
        file = self.spec.scratch / "trial.pickle"
        file.write_bytes(pickle.dumps(self.spec))
        with self._log.open("w", encoding="utf-8") as log:
            return subprocess.Popen(  # noqa: S603 (this Python)
                [sys.executable, "-m", "isoglot.pretraining.estimates.trial_process", str(file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                text=True,
            )

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "no message")


def _environment(device: torch.device, port: int | None) -> dict[str, str]:
    """The variables of a trial process: its own GPU, and the others of the run only if asked."""
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for name in list(found):
        if name.startswith("TORCHELASTIC_") or (port is None and name.startswith(_LAUNCHER)):
            del found[name]
    if port is not None:
        found["MASTER_PORT"] = str(port)
    elif device.type == "cuda":
        index = device_index(device)
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        found["CUDA_VISIBLE_DEVICES"] = visible.split(",")[index] if visible else str(index)
    return found


# --- in the trial process ---------------------------------------------------------------------


def answer(trial: Trial, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request; `fits: false` where memory runs out."""
    try:
        if request["what"] == "smallest":
            return {"smallest": trial.smallest(), "used_bytes": trial.used_bytes}
        if request["what"] == "size":
            return {"size": asdict(trial.size(request["micro_rows"], request["seconds"]))}
        return {"costs": trial.costs(request["micro_rows"], request["seconds"]).plain()}
    except IsoglotError as error:
        return {"error": str(error)}
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    trial.forget()  # after the error is gone, whose traceback holds tensors
    return {"fits": False}


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    asked = os.fdopen(os.dup(0), encoding="utf-8")
    # a loader worker closes the `sys.stdin` that it was forked with, and would wait forever for a
    # lock that the thread held at that moment
    sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 (for the whole process)

    def read() -> None:
        for line in asked:
            requests.put(line)
        os._exit(0)  # the run has ended, maybe in the middle of a trial

    threading.Thread(target=read, daemon=True).start()
    import torch

    from isoglot.pretraining.estimates.trial import Trial

    spec: TrialSpec = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301 (the run wrote it)
    torch.set_num_threads(spec.num_threads)
    trial: Trial | None = None
    while True:
        request = json.loads(requests.get())
        try:
            trial = trial or Trial(spec)
            found = answer(trial, request)
        except IsoglotError as error:
            found = {"error": str(error)}
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            found = {"fits": False}  # the model alone
        print(json.dumps(found), file=answers)


if __name__ == "__main__":
    main()

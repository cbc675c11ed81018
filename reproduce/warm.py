"""Runs the commands of `--small` in processes forked from one that has imported the libraries.

Importing torch and transformers takes longer than a small training. Reads a command a line, as a
shell would be given it (`isoglot translate ... < IN > OUT`), and answers with its exit status.
`isoglot fetch` and sacrebleu's download are answered by `reproduce.small_data`.
"""

from __future__ import annotations

import gc
import os
import shlex
import signal
import sys
import traceback
from pathlib import Path

ANSWERS = 3
"""File descriptor of the answers; standard output is the commands' own."""


def main() -> None:
    with os.fdopen(ANSWERS, "w", buffering=1) as answers:
        _import_libraries()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the command's
        for line in sys.stdin:
            answers.write(f"{_fork(shlex.split(line))}\n")


def _import_libraries() -> None:
    import torch  # noqa: F401
    import transformers
    from transformers import trainer  # noqa: F401

    import isoglot.finetuning.train
    import isoglot.pretraining.run  # noqa: F401

    transformers.logging.set_verbosity_error()
    gc.freeze()  # forked processes collect their own garbage alone


def _fork(words: list[str]) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(ANSWERS)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    status = 1
    try:
        _run(words)
        status = 0
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        else:
            status = error.code or 0
    except KeyboardInterrupt:
        status = 130
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run(words: list[str]) -> None:
    files = {"<": "/dev/null"}
    while len(words) > 2 and words[-2] in ("<", ">"):
        files[words[-2]] = words[-1]
        del words[-2:]
    os.dup2(os.open(files["<"], os.O_RDONLY), 0)
    if ">" in files:
        Path(files[">"]).parent.mkdir(parents=True, exist_ok=True)
        os.dup2(os.open(files[">"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    match words:
        case ["models", *rest] | ["isoglot", "fetch", *rest]:
            from reproduce.small_data import main as write_data

            sys.argv = ["small_data", *rest]
            write_data()
        case ["isoglot", *_]:
            from isoglot.cli import main as isoglot

            sys.argv = words
            isoglot()
        case ["sacrebleu", "-t", _, "-l", pair, "--echo", side]:
            from reproduce.small_data import print_test_set

            print_test_set(pair, side)
        case _:
            message = f"{words[0]}: warm.py does not know it"
            raise SystemExit(message)


if __name__ == "__main__":
    main()

"""bf16 on a CPU: found by its flags, tried in a process of its own, refused in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from isoglot.errors import RecipeError
from isoglot.models import cpu_precision
from isoglot.models.cpu_precision import (
    bf16_instructions,
    bf16_speedup,
    check_cpu_precision,
    precision_note,
)

if TYPE_CHECKING:
    from pathlib import Path

LARGE = 20_000_000


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("fpu avx512f avx512_bf16 amx_bf16", "amx_bf16"),
        ("fpu avx512_bf16", "avx512_bf16"),
        ("fpu avx512f", None),
    ],
)
def test_instructions_are_read_from_the_flags(
    tmp_path: Path, flags: str, found: str | None
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor : 0\nflags : {flags}\n")
    assert bf16_instructions(file) == found
    assert bf16_instructions(tmp_path / "missing") is None


def test_the_trial_tells_a_ratio() -> None:
    assert 0.001 < bf16_speedup() < 100


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "SIGILL on this CPU"),
        ("raise ValueError('no such kernel')", "no such kernel"),
        ("import sys; sys.exit(3)", "without a word"),
    ],
)
def test_a_trial_that_dies_is_a_sentence(program: str, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence) as caught:
        bf16_speedup(program)
    assert "Set precision: float32" in str(caught.value)


def test_the_trial_imports_no_modules_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise ValueError('not for import')")
    monkeypatch.chdir(tmp_path)
    assert bf16_speedup("import random; print(random.choice([1.5]))") == 1.5


def test_only_bf16_on_a_cpu_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(cpu_precision, "bf16_speedup", lambda: tried.append(1))
    for precision, on_gpu in (("auto", False), ("float32", False), ("bf16", True)):
        check_cpu_precision(precision, on_gpu=on_gpu)
    assert not tried
    check_cpu_precision("bf16", on_gpu=False)
    assert tried


@pytest.mark.parametrize(
    ("precision", "speedup", "flag", "said"),
    [
        ("bf16", 0.25, None, "4.0 times as long"),
        ("bf16", 2.0, "amx_bf16", None),
        ("auto", 2.0, "amx_bf16", "--set precision=bf16"),
        ("auto", 2.0, None, None),
        ("float32", 2.0, "amx_bf16", None),
    ],
)
def test_a_note_says_which_precision_is_faster(
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    speedup: float,
    flag: str | None,
    said: str | None,
) -> None:
    monkeypatch.setattr(cpu_precision, "bf16_speedup", lambda: speedup)
    monkeypatch.setattr(cpu_precision, "bf16_instructions", lambda: flag)
    found = precision_note(precision, on_gpu=False, num_weights=LARGE)
    assert found is None if said is None else said in (found or "")
    assert precision_note(precision, on_gpu=True, num_weights=LARGE) is None
    assert precision_note(precision, on_gpu=False, num_weights=1000) is None

"""A run from its files: position, time left, held-out changes, warnings, how it ended."""

from __future__ import annotations

import io
import json
import math
import os
import re
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from isoglot.errors import IsoglotError
from isoglot.report.live_run import MAX_POINTS, Curve, LiveRun, stage_steps
from isoglot.report.live_view import MIN_WIDTH, frame, sparkline, status

if TYPE_CHECKING:
    from isoglot.report.record_reader import Record

LANGUAGES = ["ar", "de", "zh_Hant"]


def step(number: int, loss: float = 2.0, **more: float) -> Record:
    return {
        "step": number, "stage": 0, "mlm/loss": loss, "learning_rate": 1e-3, "tokens": 100,
        "total_tokens": 100 * number, "seconds": 0.5, "tokens_per_second": 200.0, **more,
    }  # fmt: skip


def validation(number: int, perplexity: float, retrieval: float) -> Record:
    scores = {f"valid/mlm/{code}/perplexity": perplexity + n for n, code in enumerate(LANGUAGES)}
    return {
        "step": number, "stage": 0, **scores, "valid/mlm/mean/perplexity": perplexity + 1,
        "valid/parallel/de-en/retrieval": retrieval, "valid/parallel/mean/retrieval": retrieval,
        "valid/parallel/pairs": 400,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "run"
    made.mkdir()
    (made / "recipe.yaml").write_text("stages: [{steps: 60}, {steps: 140}]\n")
    return made


def write(folder, records) -> None:
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def shown(*runs: LiveRun, width: int = 80) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(frame(runs, width))
    return file.getvalue()


def test_position_speed_and_time_left(folder):
    write(folder, [step(n, 3.0 / n) for n in range(1, 81)])
    said: list[str] = []
    run = LiveRun("mine", folder)
    run.update(said.append)
    assert (run.step, run.total_steps, run.tokens) == (80, 200, 8000)
    assert run.speed == pytest.approx(200)
    assert run.time_left == pytest.approx(120 * 0.5)
    assert said[-1] == "mine step 80/200  mlm 0.037  lr 0.001  200 tokens/s  1 min left"
    assert len(said) == 80
    mean = fmean(3.0 / n for n in range(31, 81))
    assert f"{mean:.3f}" in shown(run)


def test_held_out_scores_have_the_change_since_the_last_validation(folder):
    write(folder, [step(1), validation(1, 20.0, 0.5), step(2), validation(2, 15.5, 0.45)])
    said: list[str] = []
    run = LiveRun("mine", folder)
    run.update(said.append)
    text = shown(run, width=160)
    assert "mean 16.50 (-4.50)  ar 15.50 (-4.50)  de 16.50 (-4.50)  zh_Hant 17.50" in text
    assert "mean 45.0 % (-5.0)  de-en 45.0 % (-5.0)" in text
    scores = run.heldout["mlm", "perplexity"] + run.heldout["parallel", "retrieval"]
    assert [score.is_better for score in scores] == [True] * 4 + [False] * 2
    assert said[1] == "mine step 1/200  held out: mlm perplexity 21.00, parallel retrieval 50.0 %"


@pytest.mark.parametrize("width", [56, 80, 160])
def test_every_width_shows_everything(folder, width):
    write(folder, [step(n, 3.0 / n) for n in range(1, 81)] + [validation(80, 15.0, 0.5)])
    os.utime(folder / "metrics.jsonl")
    run = LiveRun("mine", folder)
    run.update()
    text = shown(run, run, width=width)
    assert max(map(len, text.splitlines())) <= width
    per_line = 2 if width >= 2 * MIN_WIDTH else 1
    assert len(re.findall(r"step 80 of 200  1 min left", text)) == 2
    first = next(row for row in text.splitlines() if "step 80" in row)
    assert first.count("1 min left") == per_line
    for part in ("200 tokens/s", "learning rate 0.001", "8,000 tokens", "running", "▁", "█",
                 "zh_Hant 17.00", "stage 1"):  # fmt: skip
        assert text.count(part) >= 2, part


def test_warnings_of_contrast_and_of_numbers_that_are_not_finite(folder):
    run = LiveRun("mine", folder)
    shares = [0.5, 0.9, 0.5, 0.5, 0.5]
    for number, share in enumerate(shares, start=1):
        write(folder, [step(number, **{"moco/loss": 1.0, "moco/chance": 0.1})])
        write(folder, [validation(number, 15.0, share)])
    run.update()
    (warning,) = run.warnings
    assert warning.startswith("held-out retrieval is worse than its best for 3 validations: 90.0 %")
    write(folder, [step(6, math.nan, skipped=1)])
    run.update()
    assert run.warnings[1:] == ["the loss of mlm is nan at step 6."]
    text = " ".join(shown(run).replace("│", " ").split())
    assert "1 updates were skipped: a number was not finite." in text
    assert "warning: the loss of mlm is nan at step 6." in text


def test_a_resumed_run_is_read_again(folder):
    write(folder, [step(n) for n in range(1, 31)])
    said: list[str] = []
    run = LiveRun("mine", folder)
    run.update()
    (folder / "metrics.jsonl").write_text("")
    write(folder, [step(n, 1.0) for n in range(1, 11)])
    run.update(said.append)
    assert said[0] == "mine continues from an earlier step: its file was cut"
    assert (run.step, len(said), run.losses["mlm"].points) == (10, 11, [1.0] * 10)


def test_how_a_run_ends(folder):
    run = LiveRun("mine", folder)
    run.update()
    assert status(run) == f"waiting for the first record in {folder / 'metrics.jsonl'}"
    assert "no step yet" in shown(run)
    write(folder, [step(1)])
    run.update()
    assert (status(run), run.ending()) == ("running", None)
    os.utime(folder / "metrics.jsonl", (0, 0))
    assert status(run).startswith("no record for ")
    (folder / "stopped.json").write_text('{"step": 1, "signal": "SIGTERM"}')
    assert status(run).startswith("stopped by SIGTERM after step 1; ")
    (folder / "stopped.json").unlink()
    (folder / "model").mkdir()
    (folder / "model/config.json").write_text("{}")
    assert run.ending() == "ended early at step 1 of 200; model exported"
    write(folder, [step(200)])
    os.utime(folder / "model/config.json", (0, 0))
    run.update()
    assert run.ending() == "finished at step 200; the model is being exported"
    assert "left" not in shown(run)


def test_steps_are_those_of_the_run_then_of_the_plan_then_of_the_recipe(folder):
    assert stage_steps(folder) == [60, 140]
    (folder / "plan.json").write_text('{"steps": null}')
    assert stage_steps(folder) == [60, 140]
    (folder / "plan.json").write_text('{"steps": [7, 8]}')
    assert stage_steps(folder) == [7, 8]
    (folder / "stages.json").write_text('{"steps": [5, 6]}')
    assert stage_steps(folder) == [5, 6]
    for name in ("plan.json", "stages.json"):
        (folder / name).write_text('{"ste')
    (folder / "recipe.yaml").write_text("stages: [{steps: null, epochs: 2}]\n")
    assert stage_steps(folder) is None
    write(folder, [step(1)])
    run = LiveRun("mine", folder)
    run.update()
    assert "time left unknown" in shown(run)


def test_values_that_are_no_numbers_are_told_not_raised(folder):
    write(folder, [step(1) | {"mlm/loss": "<b>x</b>"}, {"step": 2, "stage": "x"}, step(3)])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write("damaged\n" + "[bold]x" * 20_000 + "\n")
    run = LiveRun("[red]name[/]" + "x" * 100_000, folder)
    run.update()
    assert run.step == 3
    text = shown(run, width=80)
    assert "[red]name[/]" in text, "no markup"
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("that is not a number.") == 2
    assert "2 lines of" in text


def test_a_curve_keeps_means_of_equally_many_steps():
    curve, values = Curve(), [math.sin(n / 50) for n in range(5000)]
    for value in [*values[:100], math.inf, *values[100:]]:
        curve.add(value)
    size = 16
    means = [fmean(values[n : n + size]) for n in range(0, len(values) - size + 1, size)]
    assert curve.points == pytest.approx(means)
    assert len(curve.points) < MAX_POINTS


def test_a_sparkline_is_as_wide_as_asked_and_has_both_ends():
    assert sparkline([], 10) == ""
    assert sparkline([1.0], 10) == "▁"
    assert sparkline([0.0, 1.0], 10) == "▁█"
    line = sparkline([float(n) for n in range(1000)], 8)
    assert line == "▁▂▃▄▅▆▇█"


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(IsoglotError, match="is not a run"):
        LiveRun("x", tmp_path)

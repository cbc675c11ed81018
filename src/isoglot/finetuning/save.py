"""Files that a fine-tuning leaves: models and predictions.

    MODELS/TASK-SCENARIO-seed-0/             the task's model
    MODELS/TASK-SCENARIO-seed-0/encoder/     its encoder with the language-model head it had before
    PREDICTIONS/TASK/SCENARIO/seed-0/de.json

`encoder/` opens like any pre-trained folder, for retrieval, word alignment and probes (ERNIE-M's
retrieval after fine-tuning). Prediction files are what official scripts read: answers in SQuAD's
JSON, id to text, with the best spans in `de.n-best.json`; tags in conlleval's columns (word, gold,
predicted); labels, or indices of alternatives, one on each line in the order of the task's file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from isoglot.atomic import write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.finetuning.head import TaskHead
    from isoglot.finetuning.question_answering import AnswerSpan
    from isoglot.tasks.base import Task, TaskKind
    from isoglot.tasks.examples import Question

_SUFFIXES: dict[TaskKind, str] = {"tag": ".conll", "span": ".json"}


def save_model(model: Any, head: TaskHead[Any, Any], folder: Path) -> None:
    """Write the model and its encoder."""
    from transformers import AutoModelForMaskedLM

    model.save_pretrained(folder)
    pretrained, report = AutoModelForMaskedLM.from_pretrained(
        head.folder, use_safetensors=True, output_loading_info=True
    )
    # a pooler belongs to the task
    own = pretrained.base_model.state_dict().keys()
    tuned = {name: value for name, value in model.base_model.state_dict().items() if name in own}
    pretrained.base_model.load_state_dict(tuned, strict=False)
    # a language-model head that the folder did not have is random: leave it out
    has_head = all(key.startswith(pretrained.base_model_prefix) for key in report["missing_keys"])
    (pretrained if has_head else pretrained.base_model).save_pretrained(folder / "encoder")
    for place in (folder, folder / "encoder"):
        head.tokenizer.save_pretrained(place)
        head.pretokenization.save(place)


def prediction_files(
    root: Path, task: Task[Any, Any], label: str, seed: int, languages: Sequence[str]
) -> dict[str, Path]:
    """Language -> the file of its predictions."""
    folder = root / task.name / re.sub(r"[^\w.=-]+", "-", label) / f"seed-{seed}"
    return {code: folder / f"{code}{_SUFFIXES.get(task.kind, '.txt')}" for code in languages}


def write_predictions(
    file: Path, kind: TaskKind, examples: Sequence[Any], predictions: Sequence[Any]
) -> None:
    """Write the predictions for some examples."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pairs = list(zip(examples, predictions, strict=True))
    if kind == "span":
        write_json(file, {example.id: answer for example, answer in pairs}, indent=1)
        return
    lines: list[str] = []
    for example, prediction in pairs:
        if kind == "tag":
            words = ("_".join(word.split()) for word in example.words)
            rows = zip(words, example.tags, prediction, strict=True)
            lines += [*(" ".join(row) for row in rows), ""]
        else:
            lines.append(str(prediction))
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_n_best(
    file: Path, examples: Sequence[Question], candidates: Sequence[Sequence[AnswerSpan]]
) -> None:
    """Write the best spans of each question, best first, into FILE.n-best.json."""
    content = {
        example.id: [
            {"text": example.context[span.start : span.end].strip(), "score": span.score}
            for span in spans
        ]
        for example, spans in zip(examples, candidates, strict=True)
    }
    write_json(file.with_suffix(".n-best.json"), content, indent=1)

"""Files that a fine-tuning leaves: models and predictions.

    MODELS/TASK-SCENARIO-seed-0/             the task's model
    MODELS/TASK-SCENARIO-seed-0/encoder/     its encoder with the language-model head it had before
    PREDICTIONS/TASK/SCENARIO/seed-0/de.json
    .../finetune.json                        in both: model, settings and data (`FinetuneRecord`)

`encoder/` opens like any pre-trained folder, for retrieval, word alignment and probes (ERNIE-M's
retrieval after fine-tuning). Prediction files are what official scripts read: answers in SQuAD's
JSON, id to text, with the best spans in `de.n-best.json`; tags in conlleval's columns (word, gold,
predicted); labels, or indices of alternatives, one on each line in the order of the task's file.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from isoglot.atomic import replace_folder, write_errors, write_json, write_text
from isoglot.models import language_embeddings
from isoglot.models.language_input import split_language_embeddings
from isoglot.tasks.examples import DocumentQuestion
from isoglot.tasks.squad import best_thresholds
from isoglot.tasks.tydiqa_primary import tydiqa_prediction

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.finetuning.head import TaskHead
    from isoglot.finetuning.question_answering import AnswerSpan
    from isoglot.finetuning.record import FinetuneRecord
    from isoglot.tasks.base import Task, TaskKind
    from isoglot.tasks.examples import PredictedAnswer, Question

_MAX_NAME = 180
"""Bytes of a name; file systems allow 255, and temporary names are longer."""
_SUFFIXES: dict[TaskKind, str] = {"token-classification": ".conll", "question-answering": ".json"}


def save_model(model: Any, head: TaskHead[Any, Any], folder: Path, record: FinetuneRecord) -> None:
    """Write the model, its encoder and the record of its training."""
    from transformers import AutoModelForMaskedLM

    pretrained, report = AutoModelForMaskedLM.from_pretrained(
        head.folder, use_safetensors=True, trust_remote_code=False, output_loading_info=True
    )
    # a pooler belongs to the task
    own = pretrained.base_model.state_dict().keys()
    tuned = {name: value for name, value in model.base_model.state_dict().items() if name in own}
    pretrained.base_model.load_state_dict(tuned, strict=False)
    # a language-model head that the folder did not have is random: leave it out
    has_head = all(key.startswith(pretrained.base_model_prefix) for key in report["missing_keys"])
    weights, languages = split_language_embeddings(model)
    with write_errors(folder), replace_folder(folder) as partial:
        model.save_pretrained(partial, state_dict=weights)
        (pretrained if has_head else pretrained.base_model).save_pretrained(partial / "encoder")
        for place in (partial, partial / "encoder"):
            head.tokenizer.save_pretrained(place)
            head.pretokenization.save(place)
            if languages is not None:
                language_embeddings.save(place, languages, head.language_codes, used_on="all")
        record.write(partial)


def prediction_files(
    root: Path, task: Task[Any, Any], label: str, seed: int, languages: Sequence[str]
) -> dict[str, Path]:
    """Language -> the file of its predictions."""
    folder = root / file_name(task.name) / file_name(label) / f"seed-{seed}"
    suffix = _SUFFIXES.get(task.kind, ".txt")
    return {code: folder / f"{file_name(code)}{suffix}" for code in languages}


def file_name(text: str) -> str:
    """A label, or the name of a task of one's own, as the name of a file.

    The end of a long one, such as a label that names 40 languages, is replaced by a hash.
    """
    name = re.sub(r"[^\w.=-]+", "-", text).lstrip(".")
    if len(name.encode()) <= _MAX_NAME:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{name.encode()[:_MAX_NAME].decode(errors='ignore')}-{digest}"


def write_predictions(
    file: Path, kind: TaskKind, examples: Sequence[Any], predictions: Sequence[Any]
) -> None:
    """Write the predictions for some examples."""
    pairs = list(zip(examples, predictions, strict=True))
    if kind == "question-answering":
        write_json(file, {example.id: answer for example, answer in pairs}, indent=1)
        if any(isinstance(example, DocumentQuestion) for example in examples):
            found = [tydiqa_prediction(example, answer) for example, answer in pairs]
            write_json(file.with_suffix(".tydiqa.json"), {"predictions": found}, indent=1)
        elif any(not example.answers for example in examples):
            _write_null_odds(file, examples, predictions)
        return
    lines: list[str] = []
    for example, prediction in pairs:
        if kind == "token-classification":
            words = ("_".join(word.split()) for word in example.words)
            rows = zip(words, example.tags, prediction, strict=True)
            lines += [*(" ".join(row) for row in rows), ""]
        else:
            lines.append(str(prediction))
    write_text(file, "".join(f"{line}\n" for line in lines))


def _write_null_odds(
    file: Path, examples: Sequence[Question], predictions: Sequence[PredictedAnswer]
) -> None:
    """Write the odds of no answer, the best answers, and the thresholds that score best."""
    odds = {e.id: answer.null_odds for e, answer in zip(examples, predictions, strict=True)}
    write_json(file.with_suffix(".null-odds.json"), odds, indent=1)
    best = {e.id: answer.best for e, answer in zip(examples, predictions, strict=True)}
    write_json(file.with_suffix(".best.json"), best, indent=1)
    found = best_thresholds(examples, predictions)
    thresholds = {
        key: value
        for name, each in found.items()
        for key, value in ((name, each.percent), (f"{name}_thresh", each.threshold))
    }
    write_json(file.with_suffix(".thresholds.json"), thresholds, indent=1)


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

"""A fine-tuned model as folders: the task's model, and in `encoder/` its encoder for reading on.

The encoder goes back under the language-model head that it had before, so that retrieval, word
alignment and probes open it like any pre-trained folder (ERNIE-M's retrieval after fine-tuning).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.finetune.head import Head


def check_free(folder: Path) -> None:
    """Refuse a folder that exists, before anything is trained."""
    if folder.exists():
        raise ModelError(
            f"{folder} exists. Name another folder to keep the model in, or remove it."
        )


def keep(model: Any, head: Head[Any, Any], folder: Path) -> None:
    """Write the model and its encoder."""
    from transformers import AutoModelForMaskedLM

    model.save_pretrained(folder)
    head.tokenizer.save_pretrained(folder)
    head.words.save(folder)
    pretrained, report = AutoModelForMaskedLM.from_pretrained(
        head.folder, use_safetensors=True, output_loading_info=True
    )
    # a pooler belongs to the task
    own = pretrained.base_model.state_dict().keys()
    tuned = {name: value for name, value in model.base_model.state_dict().items() if name in own}
    pretrained.base_model.load_state_dict(tuned, strict=False)
    # a head that the folder did not have is random: nobody should find it and ask it
    whole = all(key.startswith(pretrained.base_model_prefix) for key in report["missing_keys"])
    (pretrained if whole else pretrained.base_model).save_pretrained(folder / "encoder")
    head.tokenizer.save_pretrained(folder / "encoder")
    head.words.save(folder / "encoder")

"""Write an encoder as a plain Hugging Face folder.

Reads an encoder, a tokenizer folder and the text of a model card; gives a folder that
`AutoModelForMaskedLM` and `AutoTokenizer` open with nothing missing and nothing left over:

    config.json  model.safetensors  tokenizer files  README.md  recipe.yaml

Language embeddings, which transformers' classes have no place for, lie beside it in a file that
`Encoder.open` reads. The folder appears whole or not at all: it is written beside its place and
renamed.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus.pretokenize import Pretokenization
from isoglot.errors import ModelError
from isoglot.models import language_embeddings
from isoglot.models.model_card import words_first

if TYPE_CHECKING:
    from isoglot.models.encoder import Encoder

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "tokenizer.model",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "pretokenize.json",  # how text is divided into words first (isoglot.corpus.pretokenize)
)


def export(
    encoder: Encoder,
    folder: Path,
    *,
    tokenizer_folder: Path,
    card: str,
    recipe_text: str | None = None,
) -> list[str]:
    """Write the model folder, replacing an earlier model there.

    Args:
        encoder: what to export; only its transformers model and language embeddings matter.
        folder: where the model will stand.
        tokenizer_folder: a Hugging Face tokenizer, copied as it is.
        card: the text of README.md; what the folder cannot hold is added to it.
        recipe_text: the recipe that trained the model, kept as recipe.yaml.

    Returns:
        Sentences that say what a plain Hugging Face model cannot hold, if anything is lost.
    """
    if folder.exists() and not (folder / "config.json").is_file():
        raise ModelError(f"{folder} exists and holds no model. Name another folder to export to.")
    losses = [*what_is_lost(encoder), *lost_of_tokenizer(tokenizer_folder)]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        written = Path(scratch) / "new"
        encoder.model.save_pretrained(written)
        _save_config(encoder, written)
        copy_tokenizer(tokenizer_folder, written)
        if has_language_embeddings(encoder):
            assert encoder.languages is not None
            language_embeddings.save(
                written,
                encoder.languages,
                encoder.language_codes,
                used_on=encoder.settings.languages,
            )
        limits = ["\n## What this folder cannot hold\n", "\n\n".join(losses), ""] if losses else []
        (written / "README.md").write_text(card + "\n".join(limits), encoding="utf-8")
        if recipe_text is not None:
            (written / "recipe.yaml").write_text(recipe_text, encoding="utf-8")
        if folder.exists():
            folder.rename(Path(scratch) / "old")
        written.rename(folder)
    return losses


def has_language_embeddings(encoder: Encoder) -> bool:
    """Has training moved them? They begin at zero, and stay there where no token carries one."""
    return encoder.languages is not None and bool(encoder.languages.weight.any())


def what_is_lost(encoder: Encoder) -> list[str]:
    """What a plain Hugging Face model cannot hold of this encoder."""
    if not has_language_embeddings(encoder):
        return []
    kept = (
        f"They are in {language_embeddings.FILE}, by language code: Isoglot goes on with them when "
        f"it starts from this folder with `languages: {encoder.settings.languages}`."
    )
    if encoder.settings.languages == "all":
        loss = (
            "The model was trained with language embeddings on all tokens. transformers' classes "
            "have no place for them: the model opened as usual runs without them, so its outputs "
            "differ from those seen in training."
        )
    else:
        loss = (
            "The model was trained with language embeddings on the slots of translations, which "
            "plain use does not have: outputs are those of training."
        )
    return [f"{loss} {kept}"]


def lost_of_tokenizer(folder: Path) -> list[str]:
    """What a tokenizer's folder says of text and transformers does not do."""
    names = Pretokenization.load(folder).names
    return [words_first(names)] if names else []


def _save_config(encoder: Encoder, folder: Path) -> None:
    """The config with the attention dropout that it had before it was switched off."""
    config = copy.deepcopy(encoder.model.config)
    for name, value in encoder.attention_dropout.items():
        setattr(config, name, value)
    config.save_pretrained(folder)


def copy_tokenizer(source: Path, folder: Path) -> None:
    """Copy a tokenizer's files, whatever it consists of."""
    files = [source / name for name in TOKENIZER_FILES if (source / name).is_file()]
    if not files:
        raise ModelError(
            f"{source} holds no tokenizer. Name the folder with its tokenizer.json or its "
            "SentencePiece model."
        )
    for file in files:
        shutil.copyfile(file, folder / file.name)

"""Export an encoder as a plain Hugging Face folder, with a model card.

`AutoModelForMaskedLM` and `AutoTokenizer` load it with no missing and no unexpected weight, but for
the pooler of a model that was started from one with a pooler (BERT), which is written unchanged:

    config.json  model.safetensors  tokenizer files  README.md  recipe.yaml

Language embeddings, for which transformers' classes have no place, are in a file besides, which
`Encoder.from_pretrained` reads; so are trained heads of objectives (`objective_heads`). A folder
appears complete or not at all (`atomic.replace_folder`).
"""

from __future__ import annotations

import copy
import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from isoglot import json_text
from isoglot.atomic import replace_folder
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import ModelError
from isoglot.models import language_embeddings, objective_heads
from isoglot.models.model_card import with_limitations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from isoglot.models.encoder import Encoder
    from isoglot.models.objective_heads import ObjectiveHead

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
    "pretokenize.json",  # how text is split into words before (isoglot.corpus.tokenization)
)


def export_encoder(
    encoder: Encoder,
    folder: Path,
    *,
    tokenizer_folder: Path,
    card: str,
    recipe_text: str | None = None,
    add_files: Callable[[Path], None] | None = None,
    heads: Mapping[str, ObjectiveHead] | None = None,
) -> list[str]:
    """Write the model folder with a copy of the tokenizer, replacing an earlier model there.

    `card` becomes README.md and `recipe_text` recipe.yaml; `heads` are those of objectives, which
    `objective_heads.load` reads; `add_files` is called with the folder before it gets its name.
    Gives the limitations, which are added to the card: sentences on what a plain Hugging Face
    model cannot hold.
    """
    limitations = _language_embedding_limitations(encoder)
    with new_model_folder(
        folder,
        tokenizer_folder,
        card,
        max_length=encoder.max_positions,
        limitations=limitations,
        recipe_text=recipe_text,
    ) as new:
        encoder.model.save_pretrained(
            new, state_dict={**encoder.model.state_dict(), **encoder.pooler}
        )
        config = copy.deepcopy(encoder.model.config)
        restore_attention_dropout(config, encoder)
        codes, use = encoder.language_codes, encoder.settings.language_embeddings
        has_languages = _has_language_embeddings(encoder)
        language_embeddings.describe(config, codes, used_on=use if has_languages else None)
        config.save_pretrained(new)
        if has_languages:
            assert encoder.languages is not None
            language_embeddings.save(new, encoder.languages, codes, used_on=use)
        objective_heads.save(new, heads or {})
        if add_files is not None:
            add_files(new)
    return limitations


def restore_attention_dropout(config: Any, encoder: Encoder) -> None:
    """Set the attention dropout that was switched off when the model was loaded."""
    for name, value in encoder.attention_dropout.items():
        setattr(config, name, value)


@contextmanager
def new_model_folder(
    folder: Path,
    tokenizer_folder: Path,
    card: str,
    *,
    max_length: int,
    limitations: list[str],
    recipe_text: str | None,
) -> Iterator[Path]:
    """A temporary folder with tokenizer, card and recipe, to save weights into; then `folder`.

    The tokenizer truncates to `max_length` where it is asked to truncate. Its limitations are
    appended to `limitations`.
    """
    if folder.exists() and not (folder / "config.json").is_file():
        raise ModelError(f"{folder} exists and holds no model. Name another folder to export to.")
    ways = Pretokenizer.load(tokenizer_folder).methods
    if ways:
        limitations.append(_pretokenization_limitation(ways))
    with replace_folder(folder) as new:
        _copy_tokenizer(tokenizer_folder, new, max_length)
        card = with_limitations(card, limitations)
        (new / "README.md").write_text(card, encoding="utf-8")
        if recipe_text is not None:
            (new / "recipe.yaml").write_text(recipe_text, encoding="utf-8")
        yield new


def _has_language_embeddings(encoder: Encoder) -> bool:
    """Were they trained? They begin at zero, and stay there where no token has one."""
    return encoder.languages is not None and bool(encoder.languages.weight.any())


def _language_embedding_limitations(encoder: Encoder) -> list[str]:
    if not _has_language_embeddings(encoder):
        return []
    used_on = encoder.settings.language_embeddings
    if used_on == "all":
        limitation = (
            "The model was trained with language embeddings on all tokens. `isoglot evaluate` and "
            "`finetune` add them to texts of their language. transformers' classes have no place "
            "for them: a model loaded with transformers runs without them, so its outputs differ "
            "from those of training. `export.fold_languages` writes plain folders of single "
            "languages, with the embedding folded into the position embeddings."
        )
    else:
        limitation = (
            "The model was trained with language embeddings on the slots of translations, which "
            "plain use does not have: outputs are those of training."
        )
    limitation += (
        f" They are in {language_embeddings.FILE}, by language code: Isoglot reads them when a run "
        f"starts from this folder with `language_embeddings: {used_on}`."
    )
    return [limitation]


def _pretokenization_limitation(ways: Mapping[str, str]) -> str:
    """A sentence on text that must be split into words before it is tokenized."""
    listed = ", ".join(
        f"{'all other languages' if code == '*' else code}: {way}"
        for code, way in sorted(ways.items(), key=lambda item: (item[0] == "*", item[0]))
    )
    return (
        f"The model's text was split into words before it was tokenized ({listed}), which a "
        "tokenizer.json cannot do. `isoglot evaluate`, `finetune` and `translate` do it by "
        "themselves; before any other use, split each text: "
        '`Pretokenizer.load(Path("path/to/this/folder")).apply(text, language)`, with '
        "`from isoglot.corpus.tokenization.pretokenization import Pretokenizer`."
    )


def _copy_tokenizer(source: Path, folder: Path, max_length: int) -> None:
    files = [source / name for name in TOKENIZER_FILES if (source / name).is_file()]
    if not files:
        raise ModelError(
            f"{source} holds no tokenizer. Name the folder with its tokenizer.json or its "
            "SentencePiece model."
        )
    for file in files:
        shutil.copyfile(file, folder / file.name)
    settings = folder / "tokenizer_config.json"
    if settings.is_file():
        content = json_text.parse(settings.read_bytes())
        # a corpus's own tokenizer has no limit, and a longer text would have no positions
        own = content.get("model_max_length") or max_length
        content["model_max_length"] = min(
            own if isinstance(own, int | float) else max_length, max_length
        )
        settings.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")

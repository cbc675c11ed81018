"""Export an encoder as a plain Hugging Face folder, with a model card.

`AutoModelForMaskedLM` and `AutoTokenizer` load it with no missing and no unexpected weight:

    config.json  model.safetensors  tokenizer files  README.md  recipe.yaml

Language embeddings, for which transformers' classes have no place, are in a file besides, which
`Encoder.from_pretrained` reads. A folder appears complete or not at all (`atomic.replace_folder`).
"""

from __future__ import annotations

import copy
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from isoglot.atomic import replace_folder
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import ModelError
from isoglot.models import language_embeddings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

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
    "pretokenize.json",  # how text is split into words before (isoglot.corpus.tokenization)
)


def export_encoder(
    encoder: Encoder,
    folder: Path,
    *,
    tokenizer_folder: Path,
    card: str,
    recipe_text: str | None = None,
) -> list[str]:
    """Write the model folder with a copy of the tokenizer, replacing an earlier model there.

    `card` becomes README.md and `recipe_text` recipe.yaml. Gives the limitations, which are added
    to the card: sentences on what a plain Hugging Face model cannot hold.
    """
    limitations = _language_embedding_limitations(encoder)
    with new_model_folder(
        folder, tokenizer_folder, card, limitations=limitations, recipe_text=recipe_text
    ) as new:
        encoder.model.save_pretrained(new)
        config = copy.deepcopy(encoder.model.config)
        restore_attention_dropout(config, encoder)
        config.save_pretrained(new)
        if _has_language_embeddings(encoder):
            assert encoder.languages is not None
            language_embeddings.save(
                new,
                encoder.languages,
                encoder.language_codes,
                used_on=encoder.settings.language_embeddings,
            )
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
    limitations: list[str],
    recipe_text: str | None,
) -> Iterator[Path]:
    """A temporary folder with tokenizer, card and recipe, to save weights into; then `folder`.

    Limitations of the tokenizer are appended to `limitations`.
    """
    if folder.exists() and not (folder / "config.json").is_file():
        raise ModelError(f"{folder} exists and holds no model. Name another folder to export to.")
    ways = Pretokenizer.load(tokenizer_folder).methods
    if ways:
        limitations.append(_pretokenization_limitation(ways))
    with replace_folder(folder) as new:
        _copy_tokenizer(tokenizer_folder, new)
        if limitations:
            card += "\n".join(["\n## What this folder cannot hold\n", "\n\n".join(limitations), ""])
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
            "The model was trained with language embeddings on all tokens. transformers' classes "
            "have no place for them: a model loaded with transformers runs without them, so its "
            "outputs differ from those of training."
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


def _copy_tokenizer(source: Path, folder: Path) -> None:
    files = [source / name for name in TOKENIZER_FILES if (source / name).is_file()]
    if not files:
        raise ModelError(
            f"{source} holds no tokenizer. Name the folder with its tokenizer.json or its "
            "SentencePiece model."
        )
    for file in files:
        shutil.copyfile(file, folder / file.name)


def model_card(
    *,
    name: str,
    languages: Iterable[str],
    objectives: Iterable[str],
    tokens_seen: int,
    init_from: str | None = None,
    is_seq2seq: bool = False,
) -> str:
    """The README.md of a model, with the header that the Hugging Face hub reads.

    `tokens_seen` are those that went through the encoder, without padding.
    """
    codes = sorted(languages)
    origin = f"continued from `{init_from}`" if init_from else "trained from random weights"
    tag = "translation" if is_seq2seq else "fill-mask"
    header = ["---", "library_name: transformers", f"pipeline_tag: {tag}", "language:"]
    # quoted: YAML reads Norwegian's code as a boolean
    header += [f'- "{code}"' for code in codes]
    header += ["tags:", "- isoglot", "- cross-lingual", "---"]
    body = f"""
# {name}

A cross-lingual {"encoder-decoder" if is_seq2seq else "encoder"}, {origin} with Isoglot.

| | |
|---|---|
| languages | {", ".join(codes)} |
| objectives | {", ".join(objectives)} |
| tokens seen | {tokens_seen:,} |

{_seq2seq_example(codes) if is_seq2seq else _EXAMPLE}"""
    return "\n".join(header) + "\n" + body


_EXAMPLE = """```python
from transformers import AutoModelForMaskedLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
model = AutoModelForMaskedLM.from_pretrained("path/to/this/folder")
```
"""


def _seq2seq_example(codes: Sequence[str]) -> str:
    """Load an encoder-decoder and translate from its first language into its last."""
    return f"""```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
model = AutoModelForSeq2SeqLM.from_pretrained("path/to/this/folder")
inputs = tokenizer("<{codes[0]}>A sentence.", return_tensors="pt")
start = tokenizer.convert_tokens_to_ids("<{codes[-1]}>")
generated = model.generate(**inputs, decoder_start_token_id=start, max_new_tokens=60)
print(tokenizer.batch_decode(generated, skip_special_tokens=True))
```
"""

"""Write an encoder-decoder as a plain Hugging Face folder.

`AutoModelForSeq2SeqLM` and `AutoTokenizer` open it. Its tokenizer is the corpus's with a token for
each language, and ends a text without beginning it, so that the language stands first:

    inputs = tokenizer("<de>Guten Tag.", return_tensors="pt")
    model.generate(**inputs, decoder_start_token_id=tokenizer.convert_tokens_to_ids("<en>"))

config.json has the languages' ids (`language_token_ids`) and the fingerprint of the tokenizer that
they were added to (`base_tokenizer`): a run that starts from the folder compares it.
"""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.errors import ModelError
from isoglot.models import by_language, language_embeddings
from isoglot.models.dropout import ATTENTION
from isoglot.models.export import copy_tokenizer, lost_of_tokenizer

if TYPE_CHECKING:
    from isoglot.models.seq2seq import Seq2Seq


def language_token(code: str) -> str:
    """How a language's token is spelled."""
    return f"<{code}>"


def export_seq2seq(
    seq2seq: Seq2Seq,
    folder: Path,
    *,
    tokenizer_folder: Path,
    base_tokenizer: str,
    card: str,
    recipe_text: str | None = None,
) -> list[str]:
    """Write the model folder, replacing an earlier model there.

    Args:
        seq2seq: what to export.
        folder: where the model will stand.
        tokenizer_folder: the corpus's tokenizer.
        base_tokenizer: its fingerprint.
        card: the text of README.md; what the folder cannot hold is added to it.
        recipe_text: the recipe that trained the model, kept as recipe.yaml.

    Returns:
        Sentences that say what a plain Hugging Face model cannot hold, if anything is lost.
    """
    if folder.exists() and not (folder / "config.json").is_file():
        raise ModelError(f"{folder} exists and holds no model. Name another folder to export to.")
    losses = [*what_is_lost(seq2seq), *lost_of_tokenizer(tokenizer_folder)]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        written = Path(scratch) / "new"
        seq2seq.by_language.put_means(seq2seq.model.decoder)
        # shared tables are written once for each half: transformers opens them apart
        weights = {name: weight.clone() for name, weight in seq2seq.model.state_dict().items()}
        seq2seq.model.save_pretrained(written, state_dict=weights)
        config = _plain_config(seq2seq)
        config.base_tokenizer = base_tokenizer
        config.save_pretrained(written)
        copy_tokenizer(tokenizer_folder, written)
        _add_languages(written, seq2seq)
        if seq2seq.by_language.is_there():
            by_language.save(written, seq2seq.by_language, seq2seq.language_codes)
        if seq2seq.encoder.settings.languages == "all":
            assert seq2seq.encoder.languages is not None
            codes = seq2seq.language_codes
            language_embeddings.save(written, seq2seq.encoder.languages, codes, used_on="all")
        limits = ["\n## What this folder cannot hold\n", "\n\n".join(losses), ""] if losses else []
        (written / "README.md").write_text(card + "\n".join(limits), encoding="utf-8")
        if recipe_text is not None:
            (written / "recipe.yaml").write_text(recipe_text, encoding="utf-8")
        if folder.exists():
            folder.rename(Path(scratch) / "old")
        written.rename(folder)
    return losses


def what_is_lost(seq2seq: Seq2Seq) -> list[str]:
    """What a plain Hugging Face model cannot hold of this encoder-decoder."""
    had, has, files = [], [], [by_language.FILE]
    if seq2seq.encoder.settings.languages == "all":
        had.append("language embeddings on all tokens")
        has.append("without the embeddings")
        files.append(language_embeddings.FILE)
    if len(seq2seq.by_language.outputs):
        had.append("a projection for each language after cross-attention")
        has.append("with the mean of the projections")
    if not had:
        return []
    loss = (
        f"The model was trained with {' and '.join(had)}, for which transformers' classes have no "
        f"place: opened as usual it runs {' and '.join(has)}, and translates worse. They lie "
        f"beside the model ({', '.join(files)}): `isoglot translate`, and a run that starts from "
        "the folder with the same settings, read them."
    )
    return [loss]


def _plain_config(seq2seq: Seq2Seq) -> Any:
    """The config with the attention dropout that it had before it was switched off."""
    config = copy.deepcopy(seq2seq.model.config)
    for part in (config.encoder, config.decoder):
        for name in ATTENTION:
            if name in seq2seq.encoder.attention_dropout:
                setattr(part, name, seq2seq.encoder.attention_dropout[name])
    return config


def _add_languages(folder: Path, seq2seq: Seq2Seq) -> None:
    """Give the folder's tokenizer a token for each language, and no first token of its own."""
    from tokenizers import AddedToken, Tokenizer, processors

    file = folder / "tokenizer.json"
    if not file.is_file():
        raise ModelError(
            f"{file} is missing: an encoder-decoder needs a tokenizer that languages can be added "
            "to. Save a fast version of the corpus's tokenizer."
        )
    tokenizer = Tokenizer.from_file(str(file))
    names = [language_token(code) for code in seq2seq.language_codes]
    tokenizer.add_special_tokens([AddedToken(name, rstrip=True, special=True) for name in names])
    expected = list(seq2seq.model.config.language_token_ids.values())
    assert [tokenizer.token_to_id(name) for name in names] == expected
    end = tokenizer.id_to_token(seq2seq.vocabulary.sep)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {end}",
        pair=f"$A {end} $B {end}",
        special_tokens=[(end, seq2seq.vocabulary.sep)],
    )
    tokenizer.save(str(file))
    settings = folder / "tokenizer_config.json"
    if settings.is_file():
        content = json.loads(settings.read_text(encoding="utf-8"))
        content["tokenizer_class"] = "PreTrainedTokenizerFast"
        settings.write_text(json.dumps(content, indent=2), encoding="utf-8")

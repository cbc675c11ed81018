"""Export an encoder-decoder as a plain Hugging Face folder.

`AutoModelForSeq2SeqLM` and `AutoTokenizer` load it. Its tokenizer is the corpus's with a token for
each language; it adds the end token but no first token, so that the language token comes first:

    inputs = tokenizer("<de>Guten Tag.", return_tensors="pt")
    model.generate(**inputs, decoder_start_token_id=tokenizer.convert_tokens_to_ids("<en>"))

config.json has the ids of the language tokens (`language_token_ids`) and the fingerprint of the
tokenizer that they were added to (`base_tokenizer`); a run that starts from the folder checks it.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING

from isoglot import json_text
from isoglot.errors import ModelError
from isoglot.models import language_embeddings, language_parts
from isoglot.models.export import new_model_folder, restore_attention_dropout

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.models.seq2seq import Seq2Seq


def language_token(code: str) -> str:
    """The text of a language's token."""
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
    """Write the model folder, replacing an earlier model there; gives the limitations.

    The arguments are those of `export_encoder`; `base_tokenizer` is the tokenizer's fingerprint.
    """
    limitations = _limitations(seq2seq)
    with new_model_folder(
        folder,
        tokenizer_folder,
        card,
        max_length=seq2seq.encoder.max_positions,
        limitations=limitations,
        recipe_text=recipe_text,
    ) as new:
        seq2seq.language_parts.average_outputs(seq2seq.model.decoder)
        # shared embeddings are written once for each half: transformers loads them separately
        weights = {name: weight.clone() for name, weight in seq2seq.model.state_dict().items()}
        seq2seq.model.save_pretrained(new, state_dict=weights)
        config = copy.deepcopy(seq2seq.model.config)
        restore_attention_dropout(config.encoder, seq2seq.encoder)
        restore_attention_dropout(config.decoder, seq2seq.encoder)
        config.base_tokenizer = base_tokenizer
        is_used = seq2seq.encoder.settings.language_embeddings == "all"
        language_embeddings.describe(
            config, seq2seq.language_codes, used_on="all" if is_used else None
        )
        config.save_pretrained(new)
        _add_language_tokens(new, seq2seq)
        codes = seq2seq.language_codes
        if seq2seq.language_parts.exist():
            language_parts.save(new, seq2seq.language_parts, codes)
        if is_used:
            assert seq2seq.encoder.languages is not None
            language_embeddings.save(new, seq2seq.encoder.languages, codes, used_on="all")
    return limitations


def _limitations(seq2seq: Seq2Seq) -> list[str]:
    trained_with, runs, files = [], [], [language_parts.FILE]
    if seq2seq.encoder.settings.language_embeddings == "all":
        trained_with.append("language embeddings on all tokens")
        runs.append("without the embeddings")
        files.append(language_embeddings.FILE)
    if len(seq2seq.language_parts.outputs):
        trained_with.append("an output projection of cross-attention for each language")
        runs.append("with the mean of the projections")
    if not trained_with:
        return []
    limitation = (
        f"The model was trained with {' and '.join(trained_with)}, for which transformers' classes "
        f"have no place: loaded with transformers it runs {' and '.join(runs)}, and translates "
        f"worse. They are in {', '.join(files)}, which `isoglot translate` and a run that starts "
        "from the folder with the same settings read."
    )
    return [limitation]


def _add_language_tokens(folder: Path, seq2seq: Seq2Seq) -> None:
    """Add a token for each language to the folder's tokenizer, and remove its first token."""
    from tokenizers import AddedToken, Tokenizer, processors

    file = folder / "tokenizer.json"
    if not file.is_file():
        raise ModelError(
            f"{file} is missing: an encoder-decoder needs a tokenizer that language tokens can be "
            "added to. Save a fast version of the corpus's tokenizer."
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
        content = json_text.parse(settings.read_text(encoding="utf-8"))
        content["tokenizer_class"] = "PreTrainedTokenizerFast"
        settings.write_text(json.dumps(content, indent=2), encoding="utf-8")

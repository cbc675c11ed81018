"""The README of an exported model: what it is, what it saw, how to open it.

Reads a few facts of a run; gives the text that `export` writes, with the header that the Hugging
Face hub reads. What a tokenizer's folder says of words is added when the model is exported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OPENING = """```python
from transformers import AutoModelForMaskedLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
model = AutoModelForMaskedLM.from_pretrained("path/to/this/folder")
```
"""


def model_card(
    *,
    name: str,
    languages: Iterable[str],
    objectives: Iterable[str],
    tokens_seen: int,
    start: str | None = None,
    translates: bool = False,
) -> str:
    """The card of a model.

    Args:
        name: what to call it.
        languages: codes of the languages it was trained on.
        objectives: names of the objectives it was trained with.
        tokens_seen: tokens that went through the encoder, padding left out.
        start: the model it was continued from; None where it began with random weights.
        translates: is it an encoder-decoder?
    """
    codes, losses = sorted(languages), list(objectives)
    origin = f"continued from `{start}`" if start else "trained from random weights"
    what = "encoder-decoder" if translates else "encoder"
    tag = "translation" if translates else "fill-mask"
    header = ["---", "library_name: transformers", f"pipeline_tag: {tag}", "language:"]
    # quoted: YAML reads Norwegian's code as a truth value
    header += [f'- "{code}"' for code in codes]
    header += ["tags:", "- isoglot", "- cross-lingual", "---"]
    body = f"""
# {name}

A cross-lingual {what}, {origin} with Isoglot.

| | |
|---|---|
| languages | {", ".join(codes)} |
| objectives | {", ".join(losses)} |
| tokens seen | {tokens_seen:,} |

{_opening(codes) if translates else _OPENING}"""
    return "\n".join(header) + "\n" + body


def words_first(names: Mapping[str, str]) -> str:
    """A sentence on text that must be divided into words before it is tokenized.

    Args:
        names: language -> way, see `isoglot.corpus.pretokenize`.
    """
    ways = ", ".join(
        f"{'all other languages' if code == '*' else code}: {way}"
        for code, way in sorted(names.items(), key=lambda item: (item[0] == "*", item[0]))
    )
    return (
        f"The model's text was divided into words before it was tokenized ({ways}), which a "
        "tokenizer.json cannot do. `isoglot evaluate`, `finetune` and `translate` do it by "
        "themselves; before any other use, divide each text: "
        '`Pretokenization.load(Path("path/to/this/folder")).apply(text, language)`, with '
        "`from isoglot.corpus.pretokenize import Pretokenization`."
    )


def _opening(codes: list[str]) -> str:
    """How an encoder-decoder is opened, and translates from its first language into its last."""
    return f"""```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
model = AutoModelForSeq2SeqLM.from_pretrained("path/to/this/folder")
inputs = tokenizer("<{codes[0]}>A sentence.", return_tensors="pt")
start = tokenizer.convert_tokens_to_ids("<{codes[-1]}>")
written = model.generate(**inputs, decoder_start_token_id=start, max_new_tokens=60)
print(tokenizer.batch_decode(written, skip_special_tokens=True))
```
"""

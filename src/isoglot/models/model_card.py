"""The README of an exported model: what it is, what it saw, how to open it.

Reads a few facts of a run; gives the text that `export` writes, with the header that the Hugging
Face hub reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def model_card(
    *,
    name: str,
    languages: Iterable[str],
    objectives: Iterable[str],
    tokens_seen: int,
    start: str | None = None,
) -> str:
    """The card of a model.

    Args:
        name: what to call it.
        languages: codes of the languages it was trained on.
        objectives: names of the objectives it was trained with.
        tokens_seen: tokens that went through the encoder, padding left out.
        start: the model it was continued from; None where it began with random weights.
    """
    codes, losses = sorted(languages), list(objectives)
    origin = f"continued from `{start}`" if start else "trained from random weights"
    header = ["---", "library_name: transformers", "pipeline_tag: fill-mask", "language:"]
    # quoted: YAML reads Norwegian's code as a truth value
    header += [f'- "{code}"' for code in codes]
    header += ["tags:", "- isoglot", "- cross-lingual", "---"]
    body = f"""
# {name}

A cross-lingual encoder, {origin} with Isoglot.

| | |
|---|---|
| languages | {", ".join(codes)} |
| objectives | {", ".join(losses)} |
| tokens seen | {tokens_seen:,} |

```python
from transformers import AutoModelForMaskedLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
model = AutoModelForMaskedLM.from_pretrained("path/to/this/folder")
```
"""
    return "\n".join(header) + "\n" + body

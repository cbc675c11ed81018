"""The card of an exported model (README.md), with the header that the Hugging Face hub reads.

Everything on it comes from the run: its recipe, the corpus's manifest and metrics.jsonl. What the
run does not know (a license, scores on tasks) is not on the card unless the recipe says it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from isoglot.folders import find_model
from isoglot.languages import bcp47, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CardKind = Literal["fill-mask", "translation", "sentence-similarity"]
"""The hub's name of what a folder is for (`pipeline_tag`)."""
_MAX_ROWS = 60
"""Most rows of the table of data."""
_NOUNS: dict[CardKind, str] = {
    "fill-mask": "encoder",
    "translation": "encoder-decoder",
    "sentence-similarity": "sentence encoder",
}


class DataRow(NamedTuple):
    """Training data of one language, or of one pair of languages."""

    language: str
    kind: str
    """What is counted: sentences, pairs, ..."""
    lines: int
    tokens: int


class HeldoutScore(NamedTuple):
    """A mean over languages on held-out data of the corpus, from metrics.jsonl."""

    objective: str
    metric: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What a run knows of the model that it exports."""

    name: str
    """Name of the model: that of the recipe, unless `recipe` is set."""
    languages: tuple[str, ...]
    objectives: tuple[str, ...]
    tokens_seen: int
    """Tokens that went through the encoder, without padding."""
    init_from: str | None = None
    """The model that training started from; none: random weights."""
    license: str | None = None
    data: tuple[DataRow, ...] = ()
    scores: tuple[HeldoutScore, ...] = ()
    steps: int | None = None
    """Optimizer steps before the scores."""
    recipe: str | None = None
    """Name of the recipe; none: that of the model."""
    weights: str | None = None
    """What the weights are, where they are not those of the last step."""
    knowledge: str | None = None
    """Where entities, mentions and facts are from; none: there are none, or it is not known."""

    def render(
        self,
        kind: CardKind = "fill-mask",
        pooling: str | None = None,
        *,
        header: str | None = None,
        sections: Sequence[str] = (),
    ) -> str:
        """The text of README.md.

        `pooling` says how a sentence vector is made; a `header` replaces the front matter, and
        `sections` come after the example.
        """
        origin = (
            f"continued from `{self.init_from}`"
            if self.init_from
            else "trained from random weights"
        )
        rows = [
            (
                "languages",
                ", ".join(f"{code} ({name_of(code)})" for code in sorted(self.languages)),
            ),
            ("objectives", ", ".join(self.objectives)),
            ("tokens seen", f"{self.tokens_seen:,}"),
            ("recipe", f"`{self.recipe or self.name}`, with all settings in recipe.yaml"),
        ]
        if self.knowledge is not None:
            rows.append(("knowledge", self.knowledge))
        if self.weights is not None:
            rows.append(("weights", self.weights))
        if pooling is not None:
            rows.append(("sentence vector", pooling))
        parts = [
            header
            or front_matter(
                kind, languages=self.languages, license_=self.license, base_model=self.init_from
            ),
            f"# {self.name}",
            f"A cross-lingual {_NOUNS[kind]}, {origin} with Isoglot.",
            table(("", ""), rows),
            _example(kind, sorted(self.languages)),
            *sections,
            *self._data_section(),
            *self._score_section(),
        ]
        return "\n\n".join(parts) + "\n"

    def _data_section(self) -> list[str]:
        if not self.data:
            return []
        rows = sorted(self.data, key=lambda row: -row.tokens)
        shown = [
            (row.language, row.kind, f"{row.lines:,}", f"{row.tokens:,}")
            for row in rows[:_MAX_ROWS]
        ]
        if len(rows) > _MAX_ROWS:
            rest = rows[_MAX_ROWS:]
            lines, tokens = sum(row.lines for row in rest), sum(row.tokens for row in rest)
            shown.append((f"{len(rest)} more", "", f"{lines:,}", f"{tokens:,}"))
        return [
            "## Training data",
            "The prepared corpus without its held-out part; a run may read less, or read it again.",
            table(("language", "of", "number", "tokens"), shown),
        ]

    def _score_section(self) -> list[str]:
        if not self.scores:
            return []
        after = "" if self.steps is None else f", after {self.steps:,} steps"
        rows = [(score.objective, score.metric, f"{score.value:.4g}") for score in self.scores]
        explained = (
            f"Means over languages on held-out text of the corpus{after} (metrics.jsonl of the "
            "run). They are no scores on public tasks: `isoglot evaluate` computes those."
        )
        heading = "## Scores on held-out data"
        return [heading, explained, table(("objective", "metric", "value"), rows)]


def front_matter(
    kind: CardKind,
    *,
    languages: Iterable[str] = (),
    license_: str | None = None,
    base_model: str | None = None,
) -> str:
    """The YAML header; a base model that is a folder of this machine is left out."""
    lines = [f"library_name: {library_of(kind)}", f"pipeline_tag: {kind}"]
    if license_ is not None:
        lines.append(f'license: "{license_}"')
    if base_model is not None and is_hub_name(base_model):
        lines += ["base_model:", f'- "{base_model}"']
    codes = list(dict.fromkeys(bcp47(code) for code in sorted(languages)))
    # quoted: YAML reads Norwegian's code as a boolean
    lines += ["language:", *(f'- "{code}"' for code in codes)] if codes else []
    return "\n".join(["---", *lines, "tags:", *(f"- {tag}" for tag in tags_of(kind)), "---"])


def library_of(kind: CardKind) -> str:
    """The library that opens a folder."""
    return "sentence-transformers" if kind == "sentence-similarity" else "transformers"


def tags_of(kind: CardKind) -> list[str]:
    """The hub's tags of a folder."""
    tags = ["isoglot", "cross-lingual"]
    if kind == "sentence-similarity":
        tags += ["sentence-transformers", "feature-extraction"]
    return tags


def with_limitations(card: str, limitations: Sequence[str]) -> str:
    """The card with a section on what its folder cannot hold, if there is anything."""
    if not limitations:
        return card
    return "\n".join([card + "\n## What this folder cannot hold\n", "\n\n".join(limitations), ""])


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def is_hub_name(name: str) -> bool:
    """Whether a model's name is one that only the hub can know, not a folder of this machine."""
    try:
        return find_model(name) is None
    except ValueError:  # a path without a model
        return False


def _example(kind: CardKind, codes: Sequence[str]) -> str:
    if kind == "sentence-similarity":
        body = """from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
vectors = model.encode(["A sentence.", "Another one."])
print(model.similarity(vectors, vectors))"""
    elif kind == "translation":
        body = f"""from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
model = AutoModelForSeq2SeqLM.from_pretrained("path/to/this/folder")
inputs = tokenizer("<{codes[0]}>A sentence.", return_tensors="pt")
start = tokenizer.convert_tokens_to_ids("<{codes[-1]}>")
generated = model.generate(**inputs, decoder_start_token_id=start, max_new_tokens=60)
print(tokenizer.batch_decode(generated, skip_special_tokens=True))"""
    else:
        body = """from transformers import AutoModelForMaskedLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
model = AutoModelForMaskedLM.from_pretrained("path/to/this/folder")"""
    return f"```python\n{body}\n```"

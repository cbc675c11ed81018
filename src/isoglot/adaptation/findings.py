"""What `isoglot adapt` finds out before it plans: facts of the encoder, the data, the machine.

Every number is measured: on the whole data where one pass gives it (lines, characters, what is
dropped), on a sample of it otherwise (`isoglot.adaptation.heldout`).
"""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

_WITHOUT_HEAD = ("ForMaskedLM", "ForPreTraining")
"""Ends of the names of architectures whose head is an LM head, or has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFacts:
    """The encoder to start from."""

    name: str
    """As the user gave it."""
    folder: str
    """Where it is on this machine."""
    architecture: str
    """The transformers class."""
    num_layers: int
    hidden_size: int
    num_parameters: int
    num_body_parameters: int
    """Without the word embeddings."""
    vocabulary_size: int
    max_positions: int
    has_lm_head: bool
    """Whether the folder has the weights of the LM head; else they are new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """The data of one language, or of one pair of languages."""

    lines: int
    """Lines (sentences) or pairs that cleaning keeps."""
    characters: int
    """Characters of them, both sides together."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Lines that cleaning drops, by reason."""
    duplicate_share: float = 0.0
    """Share of the lines that occurred before."""
    overlap: int = 0
    """Lines that are in the files of `tests`."""
    heldout: int = 0
    """Lines or pairs held out for the scores before and after."""
    tokens: int = 0
    """Tokens under the encoder's tokenizer, estimated from the sample."""
    longest_tokens: int = 0
    """99 % of the sentences (of pairs: the longer side) have at most this many tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageFacts:
    """How the encoder's tokenizer does on one language, from a sample of its lines."""

    tokens_per_word: float
    unknown_share: float
    """Share of tokens that are the unknown token."""
    spaced: bool
    """Whether words are written with spaces between; else each character counts as a word."""
    script: str | None
    """Script of most letters: LATIN, CYRILLIC, ..."""
    other_share: float = 0.0
    """Share of lines that are identified as another language with 0.9 or more."""
    other_language: str | None = None
    """Which one that is most often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeLanguage:
    """The knowledge in one language."""

    name: str
    """Its code in the tables."""
    descriptions: int
    """Pages of an entity."""
    mentions: int
    """Links to an entity that is described in two languages or more."""
    characters: int
    """Bytes of all sentences and of the beginnings of pages, which linking tokenizes."""
    description_tokens: float
    """Mean tokens of the beginning of a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeFacts:
    """Entities, mentions and facts in the languages of the request."""

    folder: str
    """The tables, on this machine."""
    languages: dict[str, KnowledgeLanguage]
    """By language, those that the request has, too."""
    left_out: tuple[str, ...]
    """Languages of the tables that the request does not have."""
    entities: int
    """Entities that are described in two of the languages or more."""
    facts: int
    """Facts between two of them."""
    heldout_share: float
    """Share of the pages, and of the facts, to hold out."""
    heldout_seed: int
    sample: tuple[int, ...] = ()
    """Some of the entities, by their item numbers: those of facts first."""

    @property
    def mentions(self) -> int:
        """Mentions of all languages."""
        return sum(one.mentions for one in self.languages.values())

    @property
    def description_tokens(self) -> float:
        """Mean tokens of a description, over all languages."""
        number = sum(one.descriptions for one in self.languages.values())
        total = sum(one.descriptions * one.description_tokens for one in self.languages.values())
        return total / max(1, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """The machine that the command runs on."""

    cores: int
    disk_free_bytes: int
    gpus: tuple[str, ...] = ()
    """Names of the GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything that the plan is made from."""

    encoder: EncoderFacts
    text: dict[str, DataFacts]
    """By language; of a language without text of its own, the sides of its pairs."""
    pairs: dict[str, DataFacts]
    """By pair of languages."""
    languages: dict[str, LanguageFacts]
    machine: MachineFacts
    raw_bytes: int
    """Size of the user's files, decompressed."""
    read_seconds: float
    """Time that reading and cleaning all of them took, on one core."""
    tokenize_seconds: float
    """Time that tokenizing all of them takes on one core, by the speed on the samples."""
    notes: tuple[str, ...] = ()
    """Sentences on what was found in the files and a user may not expect."""
    knowledge: KnowledgeFacts | None = None
    """Entities, mentions and facts, if the user gives any."""

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Findings:
        """Read plain data again."""
        knowledge = data.get("knowledge")
        machine = {**data["machine"], "gpus": tuple(data["machine"]["gpus"])}
        return cls(
            encoder=EncoderFacts(**data["encoder"]),
            text={code: DataFacts(**facts) for code, facts in data["text"].items()},
            pairs={code: DataFacts(**facts) for code, facts in data["pairs"].items()},
            languages={code: LanguageFacts(**facts) for code, facts in data["languages"].items()},
            machine=MachineFacts(**machine),
            raw_bytes=data["raw_bytes"],
            read_seconds=data["read_seconds"],
            tokenize_seconds=data["tokenize_seconds"],
            notes=tuple(data["notes"]),
            knowledge=None if knowledge is None else _knowledge(knowledge),
        )


def _knowledge(data: dict[str, Any]) -> KnowledgeFacts:
    languages = {code: KnowledgeLanguage(**one) for code, one in data["languages"].items()}
    lists = {name: tuple(data[name]) for name in ("left_out", "sample")}
    return KnowledgeFacts(**{**data, **lists, "languages": languages})


def describe_encoder(name: str, folder: Path) -> EncoderFacts:
    """The encoder of a folder, loaded as training would load it.

    Raises:
        ModelError: it is no encoder, or its architecture cannot run packed rows.
    """
    from isoglot.models.config import ModelConfig
    from isoglot.models.encoder import Encoder
    from isoglot.models.loading import load_masked_lm
    from isoglot.models.packing_check import check_packing
    from isoglot.models.seq2seq_loading import is_seq2seq

    if is_seq2seq(str(folder)):
        raise ModelError(
            f"{name} is an encoder-decoder, which generates text. adapt takes an encoder: an "
            "XLM-R, RoBERTa, BERT, ALBERT, ELECTRA, ModernBERT or EuroBERT model."
        )
    loaded = load_masked_lm(str(folder), dropout=None)
    encoder = Encoder(
        loaded.model,
        ModelConfig(init_from=str(folder), language_embeddings="none"),
        attention_dropout=loaded.attention_dropout,
    )
    check_packing(encoder, str(folder))
    total = sum(weight.numel() for weight in encoder.model.parameters())
    words = encoder.model.get_input_embeddings().weight.numel()
    return EncoderFacts(
        name=name,
        folder=str(folder.absolute()),
        architecture=type(encoder.model).__name__,
        num_layers=int(encoder.model.config.num_hidden_layers),
        hidden_size=encoder.hidden_size,
        num_parameters=total,
        num_body_parameters=total - words,
        vocabulary_size=encoder.vocabulary_size,
        max_positions=encoder.max_positions,
        has_lm_head=not loaded.missing,
    )


def encoder_notes(facts: EncoderFacts) -> Iterator[str]:
    """What of the folder is not adapted: the head of a classifier, modules for sentences."""
    from isoglot.adaptation.scoring import own_vectors
    from isoglot.models.loading import load_config

    folder = Path(facts.folder)
    named = str((load_config(str(folder)).architectures or [""])[0])
    if "For" in named and not named.endswith(_WITHOUT_HEAD):
        yield (
            f"{facts.name} is a {named}: its head is not kept, and the new encoder is a "
            f"{facts.architecture}"
        )
    if (folder / "modules.json").is_file():
        vectors = own_vectors(folder)
        words = "the mean of its last layer" if vectors is None else f"its vectors ({vectors.name})"
        scored = f"{words} {'is' if vectors is None else 'are'}"
        yield (
            f"{facts.name} is a sentence-transformers model: {scored} scored before; its encoder "
            "is trained, and the new sentence-transformers folder gets a pooling of its own and no "
            "Dense module"
        )


def num_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_machine(out: Path) -> MachineFacts:
    """The machine; free disk space is that of the folder that will be written."""
    import torch

    there = next(place for place in (out, *out.absolute().parents) if place.exists())
    return MachineFacts(
        cores=num_cores(),
        disk_free_bytes=shutil.disk_usage(there).free,
        gpus=tuple(torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())),
    )

"""The first step of `isoglot adapt`: find out about the encoder, the data and the machine.

    encoder --> size, vocabulary      data --one pass--> held-out lines, counts, samples
    samples + tokenizer --> tokens per word, unknown tokens, lines in other languages

Facts are told as soon as they are known, the encoder's within seconds. They are written to
OUT/findings.json; the same files are not read a second time (`saved_findings.py`).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isoglot.adaptation.findings import (
    DataFacts,
    EncoderFacts,
    Findings,
    LanguageFacts,
    describe_encoder,
    describe_machine,
    encoder_notes,
)
from isoglot.adaptation.heldout import LANGUAGE_CONFIDENCE, hold_out
from isoglot.adaptation.inputs import Progress, find_files, find_inputs
from isoglot.adaptation.knowledge_tables import count_knowledge, open_knowledge
from isoglot.adaptation.saved_findings import LookedAt, read_findings, save_findings
from isoglot.folders import model_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from isoglot.adaptation.findings import KnowledgeFacts
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.heldout import Drawn
    from isoglot.adaptation.knowledge_tables import KnowledgeTables
    from isoglot.adaptation.request import AdaptConfig
    from isoglot.models.transplant.tokens import TokenizerTokens

_IDENTIFIED = 2000
"""Lines of a language whose language is identified."""
_ENCODED_CHARACTERS = 500_000
"""Characters of a language that are tokenized."""
_MB = 1e6


def look(
    config: AdaptConfig,
    folder: AdaptFolder,
    *,
    tell: Callable[[str], None] = lambda _: None,
    progress: Progress | None = None,
) -> Findings:
    """All facts; held-out data and samples are written below the folder.

    Args:
        config: the settings.
        folder: the folder of the adaptation.
        tell: hears each fact as a sentence, as soon as it is known.
        progress: told of downloads and of the pass over the data.

    Raises:
        IsoglotError: the model is no encoder, or the data cannot be used.
    """
    knowledge = open_knowledge(config)
    encoder = model_folder(config.encoder)
    if folder.findings.is_file():
        files = find_files(config, folder.downloads, progress).files
        found = read_findings(folder, _looked_at(config, files, encoder, knowledge))
        if isinstance(found, Findings):
            tell("data and encoder have not changed and are not read again")
            # the command may go on elsewhere
            return replace(found, machine=describe_machine(folder.path))
        tell(f"data and encoder are read again, since {found}")
    return _look_now(config, folder, encoder, knowledge, tell, progress)


def _looked_at(
    config: AdaptConfig, files: Sequence[Path], encoder: Path, tables: KnowledgeTables | None
) -> LookedAt:
    """What the findings are made from, as it is now."""
    return LookedAt.of(config, (*files, *(() if tables is None else tables.files)), encoder)


def _look_now(
    config: AdaptConfig,
    folder: AdaptFolder,
    encoder_folder: Path,
    tables: KnowledgeTables | None,
    tell: Callable[[str], None],
    progress: Progress | None,
) -> Findings:
    from isoglot.models.loading import check_vocabulary_size
    from isoglot.models.transplant.tokens import TokenizerTokens

    encoder = describe_encoder(config.encoder, encoder_folder)
    machine = describe_machine(folder.path)
    tell(encoder_sentence(encoder))
    for sentence in encoder_notes(encoder):
        tell(sentence)
    tokens = TokenizerTokens.open(encoder_folder)
    check_vocabulary_size(config.encoder, encoder.vocabulary_size, len(tokens.ids))
    inputs = find_inputs(config, folder.downloads, progress)
    looked_at = _looked_at(config, inputs.files, encoder_folder, tables)
    for note in inputs.notes:
        tell(note)
    knowledge = None
    if tables is not None:
        knowledge = count_knowledge(tables, tokens)
        for sentence in knowledge_sentences(knowledge):
            tell(sentence)
    drawn = hold_out(inputs, config, folder, progress)
    languages = {}
    text: dict[str, DataFacts] = {}
    for code, one in drawn.text.items():
        facts, text[code] = language_facts(code, one, tokens)
        languages[code] = facts
        tell(language_sentence(code, text[code], facts))
    pairs = {code: pair_facts(one, tokens) for code, one in drawn.pairs.items()}
    for code, data in pairs.items():
        tell(f"{code}: {data.lines:,} pairs{_details(data)}")
    scans = [one.scan for one in (*drawn.text.values(), *drawn.pairs.values())]
    lines = [record[0] for one in drawn.text.values() for record in one.sample]
    characters = sum(scan.characters for scan in scans)
    if knowledge is not None:
        characters += sum(one.characters for one in knowledge.languages.values())
    findings = Findings(
        encoder=encoder,
        text=text,
        pairs=pairs,
        languages=languages,
        machine=machine,
        raw_bytes=sum(scan.raw_bytes for scan in scans),
        read_seconds=sum(scan.seconds for scan in scans),
        tokenize_seconds=characters * _seconds_per_character(tokens, lines),
        notes=inputs.notes,
        knowledge=knowledge,
    )
    save_findings(findings, looked_at, folder)
    return findings


def language_facts(
    code: str, drawn: Drawn, tokens: TokenizerTokens
) -> tuple[LanguageFacts, DataFacts]:
    """Statistics of a language under the encoder's tokenizer, and of its lines."""
    from isoglot.corpus.scripts import script_of
    from isoglot.corpus.tokenization.encode import count_statistics
    from isoglot.corpus.tokenization.vocabulary import NO_SPACES

    lines = _first([record[0] for record in drawn.sample], _ENCODED_CHARACTERS)
    encoded = tokens.encode(lines)
    ids = np.concatenate([np.zeros(0, np.int32), *(np.array(one, np.int32) for one in encoded)])
    stats = count_statistics(lines, ids, tokens.unknown, ())
    characters = sum(map(len, lines))
    letters = sum(character.isalpha() for line in lines for character in line)
    without = sum(len(NO_SPACES.findall(line)) for line in lines)
    share, other = other_language(code, lines[:_IDENTIFIED])
    facts = LanguageFacts(
        tokens_per_word=stats.tokens / max(1, stats.words),
        unknown_share=stats.unknown / max(1, stats.tokens),
        spaced=without < letters / 2,
        script=script_of("".join(lines[:_IDENTIFIED])),
        other_share=share,
        other_language=other,
    )
    return facts, _data_facts(drawn, characters, [len(one) for one in encoded])


def pair_facts(drawn: Drawn, tokens: TokenizerTokens) -> DataFacts:
    """The counts of a pair of languages."""
    rows = ["\t".join(record) for record in drawn.sample]
    taken = drawn.sample[: len(_first(rows, _ENCODED_CHARACTERS))]
    sides = [tokens.encode([record[side] for record in taken]) for side in (0, 1)]
    both = list(zip(*sides, strict=True))
    characters = sum(len(text) for record in taken for text in record)
    facts = _data_facts(drawn, characters, [len(one) + len(other) for one, other in both])
    return replace(facts, longest_tokens=_longest([max(map(len, pair)) for pair in both]))


def other_language(code: str, lines: Sequence[str]) -> tuple[float, str | None]:
    """The share of lines that are identified as another language, and the most frequent one."""
    from isoglot.corpus.cleaning.language_id import LanguageIdentifier

    if not lines:
        return 0.0, None
    identifier = LanguageIdentifier.open()
    other = identifier.is_other(lines, code, LANGUAGE_CONFIDENCE)
    if not other.any():
        return 0.0, None
    best = identifier.probabilities(lines)[other].argmax(axis=1)
    most = Counter(identifier.labels[label] for label in best).most_common(1)[0][0]
    return float(other.mean()), most


def _seconds_per_character(tokens: TokenizerTokens, lines: Sequence[str]) -> float:
    """Time of tokenizing, on one core."""
    taken = _first(lines, _ENCODED_CHARACTERS // 10)
    began = time.perf_counter()
    for line in taken:  # a batch would use several cores
        tokens.encode([line])
    return (time.perf_counter() - began) / max(1, sum(map(len, taken)))


def _data_facts(drawn: Drawn, characters: int, lengths: Sequence[int]) -> DataFacts:
    """Counts of all lines; tokens by the tokens per character of a sample."""
    scan = drawn.scan
    return DataFacts(
        lines=scan.lines,
        characters=scan.characters,
        dropped=dict(scan.dropped.most_common()),
        duplicate_share=scan.sample.duplicate_share,
        overlap=scan.overlap,
        heldout=len(drawn.heldout),
        tokens=round(scan.characters * sum(lengths) / max(1, characters)),
        longest_tokens=_longest(lengths),
    )


def _longest(lengths: Sequence[int]) -> int:
    """The length that 99 % do not exceed."""
    return int(np.quantile(lengths, 0.99, method="higher")) if lengths else 0


def _first(lines: Sequence[str], characters: int) -> list[str]:
    """The first lines, with about this many characters."""
    ends = np.cumsum([len(line) for line in lines]) if lines else np.zeros(0)
    return list(lines[: int(np.searchsorted(ends, characters)) + 1])


def encoder_sentence(facts: EncoderFacts) -> str:
    """The encoder in a line."""
    head = "" if facts.has_lm_head else ", a new LM head (its folder has none)"
    return (
        f"{facts.name}: {facts.architecture}, {facts.num_layers} layers × {facts.hidden_size}, "
        f"{facts.num_parameters / _MB:,.1f}M weights, vocabulary {facts.vocabulary_size:,}, "
        f"{facts.max_positions:,} positions{head}"
    )


def language_sentence(code: str, data: DataFacts, facts: LanguageFacts) -> str:
    """A language in a line."""
    unit = "word" if facts.spaced else "character"
    other = (
        f", {100 * facts.other_share:.1f} % look like {facts.other_language}"
        if facts.other_share
        else ""
    )
    return (
        f"{code}: {data.lines:,} lines, {data.characters / _MB:,.1f}M characters, "
        f"{facts.tokens_per_word:.2f} tokens per {unit}, {100 * facts.unknown_share:.2f} % unknown"
        f"{other}{_details(data)}"
    )


def _details(data: DataFacts) -> str:
    parts = [f", {100 * data.duplicate_share:.1f} % duplicates"] if data.duplicate_share else []
    parts += [f", {data.overlap:,} in the tests"] if data.overlap else []
    if data.dropped:
        few = list(data.dropped.items())[:3]
        told = ", ".join(f"{number:,} {reason}" for reason, number in few)
        parts.append(f", dropped: {told}")
    return "".join(parts) + f"; {data.heldout:,} held out"


def knowledge_sentences(facts: KnowledgeFacts) -> Iterator[str]:
    """What was found, a line for each fact."""
    counted = "; ".join(
        f"{code} {one.descriptions:,} descriptions, {one.mentions:,} mentions"
        for code, one in facts.languages.items()
    )
    yield (
        f"knowledge: {facts.entities:,} entities described in two languages or more, "
        f"{facts.facts:,} facts between them; {counted}"
    )
    if facts.left_out:
        yield (
            f"knowledge in {', '.join(facts.left_out)} is left out: the request has no text of "
            f"{'it' if len(facts.left_out) == 1 else 'them'} (--text {facts.left_out[0]}=FILE)"
        )

"""What an adaptation does with knowledge: objectives, shares of the tokens, settings of linking.

Both objectives of XLM-K (docs/xlm-k.md) are planned with the settings that learned on real
knowledge in short runs (LOGBOOK, 2026-11-16): candidates are the other descriptions of the step,
vectors have length 1, temperature 0.1. A queue of earlier keys, as in the paper, taught nothing
there: old keys are told from new ones while the encoder still changes fast.

For the trial of a recipe, a sample stands for large tables (`sample_tables`): linking all of
Wikipedia takes hours. The pages of some entities, the sentences on them and the facts between them
suffice to time steps; small tables are taken as they are.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from isoglot.adaptation.choices import MAX_PASSES, Decision, choose_rows, num_passes
from isoglot.adaptation.knowledge_tables import MIN_USABLE
from isoglot.batching.streams.entities import MentionStream, TripleStream
from isoglot.batching.streams.knowledge import KnowledgeStream
from isoglot.corpus.knowledge.extract_tables import COUNTS, ExtractedTables
from isoglot.corpus.knowledge.link.config import KnowledgeSource
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.entailment import ObjectEntailment
from isoglot.objectives.entity import EntityPrediction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.adaptation.choices import Mixture
    from isoglot.adaptation.findings import Findings, KnowledgeFacts
    from isoglot.batching.streams import StreamConfig
    from isoglot.objectives import Objective

_SHARES = {"mentions": 0.2, "triples": 0.1}
"""Shares of the tokens: less than XLM-K's two thirds, as text and pairs are what is scored most."""
_OBJECTIVES = {"mentions": "entity", "triples": "entailment"}
_NAMES = {"mentions": "masked entity prediction", "triples": "object entailment"}
_WORDS = {"mentions": "mentions", "triples": "facts"}
_TEMPERATURE = 0.1
MAX_QUERIES, CANDIDATES = 500, 500
"""Most held-out queries of a language and task, and candidates that they meet."""
_TEXT_TOKENS = (30, 254)
"""Least and most tokens of a context, and of a description."""
_STEP_CANDIDATES = 16
"""Descriptions of a step that are wanted: with few, the right one is found by chance."""


class StreamShare(NamedTuple):
    """What a stream of knowledge gets."""

    share: float
    """Of the tokens."""
    max_tokens: int
    """Of a context, and of a description."""


def knowledge_shares(findings: Findings) -> dict[str, StreamShare]:
    """What each stream of knowledge gets; nothing without knowledge.

    Texts are as long as a step of this size has enough candidates with. A stream gets a smaller
    share where its mentions or facts would be read too often, and nothing where there are too few.
    """
    facts = findings.knowledge
    if facts is None:
        return {}
    tokens = sum(one.tokens for one in (*findings.text.values(), *findings.pairs.values()))
    total = round(num_passes(tokens) * tokens / (1 - sum(_SHARES.values())))
    batch, _ = choose_rows(findings, total)
    low, high = _TEXT_TOKENS
    found = {}
    for kind, share in _SHARES.items():
        if _number(facts, kind) < MIN_USABLE:
            continue
        # two texts, with two special tokens each
        room = int(share * batch.rows * batch.row_length / (2 * _STEP_CANDIDATES)) - 2
        longest = min(high, max(low, room))
        most = MAX_PASSES * _tokens(facts, kind, longest) / max(1, total)
        found[kind] = StreamShare(round(max(0.01, min(share, most)), 3), longest)
    return found


def with_knowledge(
    mixture: Mixture, facts: KnowledgeFacts | None, shares: Mapping[str, StreamShare]
) -> tuple[Mixture, tuple[Decision, ...]]:
    """The mixture with the objectives that read knowledge, if there is any, and why.

    Text and pairs keep their tokens: those of knowledge come on top.
    """
    if facts is None:
        return mixture, ()
    alpha = next(iter(mixture.streams.values())).alpha
    streams, objectives = dict(mixture.streams), dict(mixture.objectives)
    for kind, one in shares.items():
        stream = MentionStream if kind == "mentions" else TripleStream
        streams[kind] = stream(
            objectives=(_OBJECTIVES[kind],),
            share=one.share,
            alpha=alpha,
            max_tokens=one.max_tokens,
        )
        objectives[_OBJECTIVES[kind]] = knowledge_objective(kind)
    changed = mixture._replace(streams=streams, objectives=objectives)
    return changed, (_decision(facts, shares),)


def knowledge_readings(
    facts: KnowledgeFacts | None, streams: Mapping[str, StreamConfig], tokens: float
) -> list[tuple[str, float]]:
    """How often mentions and facts are read when so many tokens are trained on, about."""
    if facts is None:
        return []
    whole = sum(stream.share for stream in streams.values())
    found = []
    for kind in _SHARES:
        stream = streams.get(kind)
        if isinstance(stream, KnowledgeStream):
            once = _tokens(facts, kind, stream.max_tokens)
            found.append((_WORDS[kind], stream.share / whole * tokens / max(1, once)))
    return found


def scored_tokens(facts: KnowledgeFacts) -> float:
    """Tokens of the queries and candidates that a model is scored on, about."""
    number = 0.0
    for one in facts.languages.values():
        for held in (one.mentions, facts.facts):
            number += min(MAX_QUERIES, facts.heldout_share * held)
            number += min(CANDIDATES, one.descriptions)
    return number * facts.description_tokens


def _number(facts: KnowledgeFacts, kind: str) -> int:
    return facts.mentions if kind == "mentions" else facts.facts


def _tokens(facts: KnowledgeFacts, kind: str, longest: int) -> float:
    """Tokens of one pass: a mention and a fact are two texts each, about as long.

    A fact is read in every language that its subject is described in.
    """
    described = sum(one.descriptions for one in facts.languages.values()) / max(1, facts.entities)
    times = min(len(facts.languages), described) if kind == "triples" else 1
    return _number(facts, kind) * times * 2 * (2 + min(longest, facts.description_tokens))


def knowledge_objective(kind: str) -> Objective:
    """Masked entity prediction, or object entailment: contrast within the step."""
    settings: dict[str, Any] = {
        "pooling": "mean",
        "normalize": True,
        "temperature": _TEMPERATURE,
        "queue": QueueConfig(size=0),
    }
    if kind == "mentions":
        return EntityPrediction(**settings)
    return ObjectEntailment(**settings)


def _decision(facts: KnowledgeFacts, shares: Mapping[str, StreamShare]) -> Decision:
    told = " and ".join(f"{_NAMES[kind]} ({100 * one.share:.0f} %)" for kind, one in shares.items())
    lengths = " and ".join(f"{one.max_tokens} ({_WORDS[kind]})" for kind, one in shares.items())
    few = "".join(
        f"; {_number(facts, kind):,} {_WORDS[kind]} are too few (limit {MIN_USABLE})"
        for kind in _SHARES
        if kind not in shares
    )
    return Decision(
        topic="knowledge",
        choice=f"{told} of the tokens: find the description in another language among those of "
        f"the step, temperature {_TEMPERATURE:g}; texts of up to {lengths} tokens",
        reason=f"{facts.entities:,} entities in {', '.join(facts.languages)}, {facts.mentions:,} "
        f"mentions, {facts.facts:,} facts{few}; candidates are those of the step, as a queue of "
        "earlier keys taught nothing on real knowledge; texts "
        f"are cut for {_STEP_CANDIDATES} candidates in a step, but not below {_TEXT_TOKENS[0]}; "
        f"{100 * facts.heldout_share:.2g} % of the pages and facts are held out",
    )


def knowledge_source(facts: KnowledgeFacts) -> KnowledgeSource:
    """Settings of linking, for the prepare file."""
    return KnowledgeSource(
        tables=facts.folder,
        languages=tuple(one.name for one in facts.languages.values()),
        heldout_share=facts.heldout_share,
        heldout_seed=facts.heldout_seed,
    )


MAX_PAGES = 20_000
"""Tables with more pages are sampled."""


def is_large(facts: KnowledgeFacts) -> bool:
    """Whether a sample stands for the tables."""
    return sum(one.descriptions for one in facts.languages.values()) > MAX_PAGES


def sample_tables(facts: KnowledgeFacts, out: Path) -> Path:
    """Write the tables of the sampled entities to a folder; gives the folder.

    Small tables are not copied: their own folder is given.
    """
    folder = Path(facts.folder)
    if not is_large(facts):
        return folder
    names = tuple(sorted(one.name for one in facts.languages.values()))
    tables = ExtractedTables(folder, names)
    items = pa.array(facts.sample, pa.int64())
    sitelinks = _rows(tables.wikidata("sitelinks"), pc.field("item").isin(items))
    wikidata = {
        "sitelinks": sitelinks,
        "items": _rows(tables.wikidata("items"), pc.field("item").isin(items)),
        "claims": _rows(
            tables.wikidata("claims"),
            pc.field("subject").isin(items) & pc.field("object").isin(items),
        ),
    }
    if tables.has_properties():
        wikidata["properties"] = _rows(tables.wikidata("properties"), None)
    for name, table in wikidata.items():
        _write_table(table, out / "wikidata" / f"{name}-00000.parquet")
    for name in names:
        titles = sitelinks.filter(pc.equal(sitelinks["language"], name))["title"]
        chosen = pc.field("title").isin(titles.combine_chunks())
        pages = _rows(tables.wikipedia(name, "pages"), chosen)
        own = pc.field("page").isin(pages["page"].combine_chunks())
        sentences = _rows(tables.wikipedia(name, "sentences"), own)
        _write_table(pages, out / "wikipedia" / name / "pages-00000.parquet")
        _write_table(sentences, out / "wikipedia" / name / "sentences-00000.parquet")
    shutil.copyfile(folder / COUNTS, out / COUNTS)
    return out


def _rows(files: Sequence[Path], chosen: pc.Expression | None) -> pa.Table:
    """The rows of shards that an expression chooses; none: all."""
    return pa.concat_tables(
        pq.read_table(file, filters=chosen, partitioning=None) for file in files
    )


def _write_table(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)

"""Objectives and shares of knowledge in a plan, and the plan's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from isoglot.adaptation.choices import choose_mixture
from isoglot.adaptation.findings import Findings, KnowledgeFacts, KnowledgeLanguage
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.knowledge_plan import (
    knowledge_readings,
    knowledge_shares,
    scored_tokens,
    with_knowledge,
)
from isoglot.adaptation.plan import make_plan
from isoglot.adaptation.plan_files import read_plan, write_plan
from isoglot.adaptation.request import AdaptConfig
from isoglot.batching.streams.knowledge import KnowledgeStream
from isoglot.objectives.entailment import ObjectEntailment
from isoglot.objectives.entity import EntityPrediction
from tests.adaptation.test_choices import data, found, request
from tests.adaptation.trials import tried


def knowledge(mentions: int, facts: int, *, tokens: float = 100.0) -> KnowledgeFacts:
    one = KnowledgeLanguage(
        name="en",
        descriptions=500,
        mentions=mentions // 2,
        characters=10**5,
        description_tokens=tokens,
    )
    other = replace(one, name="sw", mentions=mentions - mentions // 2)
    return KnowledgeFacts(
        folder="/tables",
        languages={"en": one, "sw": other},
        left_out=(),
        entities=500,
        facts=facts,
        heldout_share=0.05,
        heldout_seed=0,
    )


def findings_of(facts: KnowledgeFacts | None, tokens: int = 10**6) -> Findings:
    text = {"en": data(tokens), "sw": data(tokens)}
    return replace(found(text, {"en-sw": data(tokens)}), knowledge=facts)


def mixed(findings: Findings):
    shares = knowledge_shares(findings)
    config = request("en", "sw", pairs=("en-sw",))
    mixture = choose_mixture(
        findings, config, knowledge_share=sum(one.share for one in shares.values())
    )
    return with_knowledge(mixture, findings.knowledge, shares)


def test_without_knowledge_nothing_changes():
    mixture, decisions = mixed(findings_of(None))
    assert decisions == ()
    assert mixture == choose_mixture(findings_of(None), request("en", "sw", pairs=("en-sw",)))


def test_names_and_facts_get_objectives_that_learned_on_real_knowledge():
    mixture, (decision,) = mixed(findings_of(knowledge(40_000, 9_000)))
    shares = {name: stream.share for name, stream in mixture.streams.items()}
    assert shares == {
        "text": 0.175,
        "sentences": 0.175,
        "parallel": 0.35,
        "mentions": 0.2,
        "triples": 0.1,
    }
    entity, entailment = mixture.objectives["entity"], mixture.objectives["entailment"]
    assert isinstance(entity, EntityPrediction)
    assert isinstance(entailment, ObjectEntailment)
    for one in (entity, entailment):
        assert (one.queue.size, one.normalize, one.temperature) == (0, True, 0.1)
    assert mixture.streams["mentions"].objectives == ("entity",)
    assert mixture.streams["triples"].objectives == ("entailment",)
    assert mixture.objectives_decision.choice == (
        "MLM on text (half of it as single sentences), 35 % of the tokens; contrast of the mean "
        "states of translations, 35 %"
    )
    assert decision.choice.startswith(
        "masked entity prediction (20 %) and object entailment (10 %) of the tokens"
    )
    assert "500 entities in en, sw, 40,000 mentions, 9,000 facts" in decision.reason
    # steps of 32 rows of 256 tokens; a mention, or a fact, is two texts with two special tokens;
    # a fact is read in both languages
    lengths = {
        kind: _knowledge_stream(mixture, kind).max_tokens for kind in ("mentions", "triples")
    }
    assert lengths == {"mentions": 0.2 * 8192 // 32 - 2, "triples": 30}
    assert "texts of up to 49 (mentions) and 30 (facts) tokens" in decision.choice
    readings = dict(knowledge_readings(knowledge(40_000, 9_000), mixture.streams, 20e6))
    assert readings["mentions"] == pytest.approx(0.2 * 20e6 / (40_000 * 2 * 51))
    assert readings["facts"] == pytest.approx(0.1 * 20e6 / (2 * 9_000 * 2 * 32))
    assert knowledge_readings(None, mixture.streams, 20e6) == []


def _knowledge_stream(mixture, kind: str) -> KnowledgeStream:
    stream = mixture.streams[kind]
    assert isinstance(stream, KnowledgeStream)
    return stream


def test_on_a_gpu_texts_are_longer():
    findings = findings_of(knowledge(4_000_000, 900_000), 10**8)
    machine = replace(findings.machine, gpus=("H200",))
    mixture, _ = mixed(replace(findings, machine=machine))
    assert _knowledge_stream(mixture, "mentions").max_tokens == 254
    assert _knowledge_stream(mixture, "triples").max_tokens == int(6553.6 / 32) - 2


def test_what_is_scored_is_bounded():
    """Two tasks of each language: queries, and as many candidates as there are, up to 500."""
    assert scored_tokens(knowledge(40_000, 9_000)) == 2 * (500 + 500 + 450 + 500) * 100
    assert scored_tokens(knowledge(400, 200)) == pytest.approx(2 * (10 + 500 + 10 + 500) * 100)


def test_few_mentions_or_facts_are_not_trained_on():
    mixture, (decision,) = mixed(findings_of(knowledge(40_000, 99)))
    assert "triples" not in mixture.streams
    assert "entailment" not in mixture.objectives
    assert "99 facts are too few (limit 100)" in decision.reason
    mixture, (decision,) = mixed(findings_of(knowledge(20, 5_000)))
    assert "mentions" not in mixture.streams
    assert decision.choice.startswith("object entailment (10 %) of the tokens")


@settings(max_examples=60, deadline=None)
@drawn(
    tokens=st.integers(1_000, 10**9),
    mentions=st.integers(100, 10**7),
    facts=st.integers(100, 10**7),
    length=st.floats(5, 400),
)
def test_text_and_pairs_keep_their_tokens_and_nothing_is_read_too_often(
    tokens, mentions, facts, length
):
    plain, _ = mixed(findings_of(None, tokens))
    findings = findings_of(knowledge(mentions, facts, tokens=length), tokens)
    mixture, _ = mixed(findings)
    streams = mixture.streams
    total = sum(stream.share for stream in streams.values())
    assert total == pytest.approx(1, abs=0.01)
    for name in ("text", "parallel"):
        before = plain.streams[name].share * plain.tokens
        assert streams[name].share * mixture.tokens == pytest.approx(before, rel=0.02)
    for kind, number in (("mentions", mentions), ("triples", facts)):
        share = streams[kind].share
        longest = _knowledge_stream(mixture, kind).max_tokens
        assert 30 <= longest <= 254
        once = number * (2 if kind == "triples" else 1)
        times = share * mixture.tokens / (once * 2 * (2 + min(longest, length)))
        assert times <= 20.5 or share == 0.01


def test_the_plan_is_written_with_it_and_read_back(looked, tmp_path):
    facts = knowledge(4_000, 900)
    folder = AdaptFolder(tmp_path / "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/sample").symlink_to(looked.folder.sample)
    findings = replace(looked.findings, knowledge=facts)
    config: AdaptConfig = replace(looked.config, knowledge="/tables")
    plan = make_plan(findings, config, folder, tried)
    topics = [one.topic for one in plan.decisions]
    assert topics[:2] == ["objectives", "knowledge"]
    write_plan(plan, folder)
    again = read_plan(folder)
    assert again == plan
    assert again.prepare.knowledge is not None
    assert again.prepare.knowledge.tables == "/tables"
    assert again.prepare.knowledge.languages == ("en", "sw")
    assert again.prepare.knowledge.heldout_share == 0.05
    assert "link" in again.step_seconds
    text = Path(folder.plan / "recipe.yaml").read_text("utf-8")
    (folder.plan / "recipe.yaml").write_text(text.replace("temperature: 0.1", "temperature: 0.2"))
    edited = read_plan(folder)
    assert edited is not None
    assert edited.edited == ("recipe.yaml",)
    entity = edited.recipe.objectives["entity"]
    assert isinstance(entity, EntityPrediction)
    assert entity.temperature == 0.2

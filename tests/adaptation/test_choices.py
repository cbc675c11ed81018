from __future__ import annotations

from dataclasses import replace

import pytest

from isoglot.adaptation.choices import (
    choose_cleaning,
    choose_mixture,
    choose_optimizer,
    choose_rows,
    in_words,
)
from isoglot.adaptation.findings import (
    DataFacts,
    EncoderFacts,
    Findings,
    LanguageFacts,
    MachineFacts,
)
from isoglot.adaptation.request import AdaptConfig
from isoglot.batching.streams.text import TextStream
from isoglot.objectives.moco import MoCo
from isoglot.recipe import load_recipe


def data(tokens: int, *, longest: int = 60, lines: int = 10_000) -> DataFacts:
    return DataFacts(lines=lines, characters=4 * tokens, tokens=tokens, longest_tokens=longest)


def found(
    text: dict[str, DataFacts],
    pairs: dict[str, DataFacts] | None = None,
    *,
    body: int = 86_000_000,
    positions: int = 512,
    gpus: tuple[str, ...] = (),
) -> Findings:
    return Findings(
        encoder=EncoderFacts(
            name="m",
            folder="/m",
            architecture="XLMRobertaForMaskedLM",
            num_layers=12,
            hidden_size=768,
            num_parameters=2 * body,
            num_body_parameters=body,
            vocabulary_size=250_002,
            max_positions=positions,
            has_lm_head=True,
        ),
        text=text,
        pairs=pairs or {},
        languages={
            code: LanguageFacts(
                tokens_per_word=1.3,
                unknown_share=0.0,
                spaced=True,
                script="LATIN",
            )
            for code in text
        },
        machine=MachineFacts(cores=8, disk_free_bytes=10**12, gpus=gpus),
        raw_bytes=10**8,
        read_seconds=10.0,
        tokenize_seconds=5.0,
    )


def request(*text: str, pairs: tuple[str, ...] = ()) -> AdaptConfig:
    return AdaptConfig(
        encoder="m", text=dict.fromkeys(text, ("f",)), pairs=dict.fromkeys(pairs, ("g",))
    )


@pytest.mark.parametrize(
    ("tokens", "said"),
    [(0, "0"), (437, "440"), (41_327, "41,000"), (949_999, "950,000"), (950_001, "1.0M"),
     (13_340_000, "13.3M"), (2_500_000_000, "2,500.0M")],
)  # fmt: skip
def test_few_tokens_are_not_nought_millions(tokens, said):
    assert in_words(tokens) == said


def test_text_alone_is_mlm():
    mixture = choose_mixture(found({"sw": data(10**6)}), request("sw"))
    assert {name: (one.share, one.objectives) for name, one in mixture.streams.items()} == {
        "text": (0.5, ("mlm",)),
        "sentences": (0.5, ("mlm",)),
    }
    assert mixture.objectives_decision.choice == "MLM on text (half of it as single sentences)"
    assert "1.0M tokens of text and no translations" in mixture.objectives_decision.reason


def test_text_and_pairs_are_half_and_half():
    findings = found({"en": data(10**7), "sw": data(10**7)}, {"en-sw": data(5 * 10**6)})
    mixture = choose_mixture(findings, request("en", "sw", pairs=("en-sw",)))
    assert {name: one.share for name, one in mixture.streams.items()} == {
        "text": 0.25,
        "sentences": 0.25,
        "parallel": 0.5,
    }
    assert (mixture.passes, mixture.tokens) == (5, 125_000_000)


def test_mlm_reads_sentences_as_contrast_does():
    """With blocks alone an encoder unlearns to predict words of single sentences."""
    findings = found({"en": data(10**7)}, {"en-sw": data(5 * 10**6)})
    streams = choose_mixture(findings, request("en")).streams
    units = {name: one.unit for name, one in streams.items() if isinstance(one, TextStream)}
    assert units == {"text": "full-sentences", "sentences": "sentence"}


def test_contrast_is_that_of_our_recipe_with_mean_states():
    """`ppa-in-batch+mlm`, but for the pooling; unit vectors without a projection either way."""
    findings = found({"sw": data(10**6), "en": data(10**6)}, {"en-sw": data(10**6)})
    mixture = choose_mixture(findings, request("sw", pairs=("en-sw",)))
    ours, known = mixture.objectives["moco"], load_recipe("ppa-in-batch+mlm").objectives["moco"]
    assert isinstance(ours, MoCo)
    assert isinstance(known, MoCo)
    assert ours.pooling == "mean"
    for name in ("key_encoder", "in_batch_negatives", "symmetric", "temperature"):
        assert getattr(ours, name) == getattr(known, name)
    assert ours.queue.size == known.queue.size == 0
    assert ours.projection.layers == known.projection.layers == 0
    assert ours == load_recipe("contrast-mean").objectives["moco"]


def test_a_language_of_pairs_alone_is_read_from_their_sides():
    findings = found({"en": data(10**6), "sw": data(10**6)}, {"en-sw": data(2 * 10**6)})
    mixture = choose_mixture(findings, request("en", pairs=("en-sw",)))
    sides = mixture.streams["sides"]
    assert (sides.kind, sides.objectives, sides.languages) == ("parallel", ("mlm",), ("en-sw",))
    # half of the draws of MLM should be Swahili, which is half of the sides: all of them
    assert sides.share == pytest.approx(0.5, abs=0.03)
    assert mixture.streams["text"].share + mixture.streams["sentences"].share == pytest.approx(
        0.025, abs=0.001
    )
    alone = choose_mixture(findings, request(pairs=("en-sw",)))
    assert {name: one.share for name, one in alone.streams.items()} == {
        "sides": 0.5,
        "parallel": 0.5,
    }


def test_few_pairs_are_not_read_hundreds_of_times():
    findings = found({"en": data(10**8), "sw": data(5 * 10**5)}, {"en-sw": data(10**6)})
    mixture = choose_mixture(findings, request("en", pairs=("en-sw",)))
    draws = mixture.tokens * mixture.streams["parallel"].share
    assert draws / 10**6 == pytest.approx(20, rel=0.02)


@pytest.mark.parametrize(
    ("text", "times"), [(5 * 10**7, 10.5), (2 * 10**7, 20), (10**7, 20), (10**6, 26)]
)
def test_little_text_beside_many_pairs_is_not_learned_by_heart(text, times):
    """Read 20 times at most, or with 5 % of what MLM reads; the rest of it are sides of pairs."""
    findings = found({"en": data(text // 2), "sw": data(text // 2)}, {"en-sw": data(10**9)})
    mixture = choose_mixture(findings, request("en", "sw", pairs=("en-sw",)))
    shares = {name: one.share for name, one in mixture.streams.items()}
    own = shares["text"] + shares["sentences"]
    assert own / sum(shares.values()) * mixture.tokens / text == pytest.approx(times, rel=0.01)
    assert own + shares.get("sides", 0.0) == pytest.approx(shares["parallel"], abs=0.002)
    assert ("sides" in shares) == (times > 11)
    decision = mixture.objectives_decision
    assert ("sides of pairs, 50 %" in decision.choice) == ("sides" in shares)
    assert ("text would be read" in decision.reason) == ("sides" in shares)


def test_little_text_is_joined_by_all_pairs():
    """Not only by those of a language without text of its own."""
    findings = found(
        {"en": data(10**5), "sw": data(10**5), "de": data(10**6)},
        {"en-sw": data(10**8), "de-en": data(2 * 10**6)},
    )
    sides = choose_mixture(findings, request("en", "sw", pairs=("en-sw", "de-en"))).streams["sides"]
    assert sides.languages == ("en-sw", "de-en")


@pytest.mark.parametrize(
    ("tokens", "passes"), [(2.9e6, 10), (3.1e6, 5), (31e6, 2), (2.9e8, 2), (3.1e8, 1)]
)
def test_passes_by_the_size_of_the_data(tokens, passes):
    assert choose_mixture(found({"sw": data(int(tokens))}), request("sw")).passes == passes


@pytest.mark.parametrize(("large", "alpha"), [(10**6, 0.5), (10**9, 0.3), (10**12, 0.0)])
def test_a_small_language_has_a_share(large, alpha):
    mixture = choose_mixture(found({"en": data(large), "sw": data(10**6)}), request("en", "sw"))
    assert mixture.streams["text"].alpha == alpha
    share = 10 ** (6 * alpha) / (large**alpha + 10 ** (6 * alpha))
    assert share >= 0.05
    assert f"sw {100 * share:.0f} %" in mixture.languages_decision.choice


def test_languages_that_are_not_rehearsed_are_told():
    reasons = [
        choose_mixture(found({code: data(10**6)}), request(code)).languages_decision.reason
        for code in ("en", "sw")
    ]
    assert "--text en=FILE" not in reasons[0]
    assert "languages without text are not rehearsed: --text en=FILE" in reasons[1]


@pytest.mark.parametrize(
    ("body", "rate"),
    [
        (500_000, 5e-4),
        (10_600_000, 5e-4),
        (21_200_000, 2.5e-4),
        (86_000_000, 6.2e-5),
        (10**9, 1e-5),
    ],
)
def test_learning_rate_by_the_number_of_weights(body, rate):
    findings = found({"sw": data(10**6)}, body=body)
    optimizer, decision = choose_optimizer(findings, 0)
    assert optimizer.learning_rate == pytest.approx(rate)
    assert optimizer.warmup_ratio == 0.06
    assert f"{body / 1e6:,.1f}M weights" in decision.reason
    assert choose_optimizer(findings, 500)[0].warmup_ratio == 0.1


def test_rows_by_machine_positions_and_data():
    small, gpu = data(10**7), ("H200",)
    assert _shape(found({"sw": small}), 10**9) == (256, 32)
    assert _shape(found({"sw": small}, gpus=gpu), 10**10) == (256, 256)
    assert _shape(found({"sw": small}, positions=130), 10**9) == (128, 32)
    assert _shape(found({"sw": data(10**7, longest=300)}), 10**9) == (512, 32)
    # as many as fit the memory
    batch, decision = choose_rows(found({"sw": small}), 10**9, fitting=5)
    assert batch.rows == 5
    assert decision.choice == "5 rows of 256 tokens a step"
    assert "5 rows at most fit the memory" in decision.reason
    # fewer rows until there are 300 steps
    assert _shape(found({"sw": small}), 1_300_000) == (256, 16)
    assert _shape(found({"sw": small}), 1000) == (256, 8)


def _shape(findings: Findings, tokens: int) -> tuple[int, int]:
    batch, _ = choose_rows(findings, tokens)
    return batch.row_length, batch.rows


def test_lines_in_other_languages():
    findings = found({"sw": data(10**6), "en": data(10**6)})

    def with_share(share: float) -> Findings:
        other = replace(findings.languages["sw"], other_share=share, other_language="de")
        return replace(findings, languages={**findings.languages, "sw": other})

    assert choose_cleaning(with_share(0.001), 0.9)[0] is None
    assert choose_cleaning(with_share(0.02), 0.9)[0] == 0.9
    confidence, decision = choose_cleaning(with_share(0.98), 0.9)
    assert confidence is None
    assert decision.topic == "WARNING"
    assert "98 % of the lines of sw look like de" in decision.reason

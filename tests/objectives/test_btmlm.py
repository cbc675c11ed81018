"""BTMLM: two passes, no leak between slots, what is written and what is measured of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.batching.dropped import describe_dropped
from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.batching.streams.text import target_languages
from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.scripts import script_of, scripts_of_languages, scripts_of_tokens
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import IsoglotError
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives import Inference
from isoglot.objectives.btmlm import BTMLM
from isoglot.objectives.mlm import MLM
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.train_module import TrainModule
from isoglot.types import IGNORE, Cursor, MaskRule, Text
from tests.batching.fakes import VOCABULARY
from tests.objectives.laid_out import (
    make_encoder,
    reference_log_probabilities,
    rows_of,
    sensitivity,
)

TEXT = Text(
    ids=np.arange(100, 120, dtype=np.int32),
    sentences=np.array([0] * 8 + [1] * 12, np.int32),
    language=2,
    target_language=4,
)


def built(example=TEXT, seed=0, **changes):
    return BTMLM(**changes).build(example, VOCABULARY, np.random.default_rng(seed))


def test_the_second_pass_hides_and_the_first_does_not():
    hidden, whole = built()
    assert (hidden.rule, whole.rule) == (MaskRule.FULL, MaskRule.GENERATE)
    assert whole.ids[:22].tolist() == [0, *range(100, 120), 2]
    assert hidden.original()[:22].tolist() == whole.ids[:22].tolist()
    assert (whole.targets == IGNORE).all()
    assert (hidden.targets[:22] != IGNORE).sum() == 3
    for sequence in (hidden, whole):
        assert sequence.ids[22:].tolist() == [VOCABULARY.mask] * 4
        assert (sequence.targets[22:] == IGNORE).all()
        assert sequence.roles.tolist() == [0] * 22 + [1] * 4
        assert sequence.languages.tolist() == [2] * 22 + [4] * 4
        assert sequence.sentences[20:].tolist() == [1, 1, 2, 2, 2, 2]
        # after [CLS] x1 .. x20 [SEP] comes [CLS] y1 ..: as CAMLM taught
        assert sequence.positions[22:].tolist() == [23, 24, 25, 26]
        assert sequence.markers["slots"].tolist() == [22, 23, 24, 25]
    assert built(positions="reset")[0].positions[22:].tolist() == [1, 2, 3, 4]


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 90),
    st.sampled_from([0.05, 0.1, 0.15, 0.2]),
    st.sampled_from(["continuous", "reset"]),
)
def test_lengths_and_reach_are_told_in_advance(size, rate, positions):
    ids = np.arange(10, 10 + size, dtype=np.int32)
    text = Text(ids=ids, sentences=np.zeros_like(ids), language=0, target_language=1)
    objective = BTMLM(pseudo_rate=rate, positions=positions)
    sizes = np.array([[size]], np.int32)
    made = objective.build(text, VOCABULARY, np.random.default_rng(0))
    assert [len(sequence) for sequence in made] == objective.lengths(sizes)[0].tolist()
    assert (
        max(int(sequence.positions.max()) for sequence in made) < objective.num_positions(sizes)[0]
    )
    assert (made[0].roles == 1).sum() == max(round(rate * size), 1)


def test_a_slot_depends_on_the_sentence_and_on_no_other_slot():
    encoder = make_encoder()
    sequence = built()[1]
    rows, (start, other) = rows_of([sequence, built(seed=2)[1]])
    for slot in sequence.markers["slots"]:
        gradient = sensitivity(encoder, rows, start + int(slot))
        others = [start + int(place) for place in sequence.markers["slots"] if place != slot]
        assert (gradient[others] == 0).all()
        assert (gradient[other:] == 0).all()
        assert (gradient[start : start + 22] > 0).all()
        assert gradient[start + slot] > 0


def test_each_slot_is_what_it_would_be_alone():
    encoder = make_encoder()
    assert encoder.languages is not None
    with torch.no_grad():
        encoder.languages.weight.normal_()
        sequence = built()[1]
        rows, (start,) = rows_of([sequence])
        hidden = encoder(rows).hidden[0]
        sees = np.zeros((len(sequence), len(sequence)), bool)
        for i in range(len(sequence)):
            for j in range(len(sequence)):
                sees[i, j] = sequence.roles[j] == 0 or i == j
        expected = reference_log_probabilities(encoder, sequence, sees)
        for slot in sequence.markers["slots"]:
            found = torch.log_softmax(encoder.model.lm_head(hidden[start + slot]), dim=-1)
            assert (found - expected[slot]).abs().max() < 1e-9


def trainee_and_batch(corpus, *, dropout=0.0, **changes):
    torch.manual_seed(0)
    model = ModelConfig(
        size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=96, dropout=dropout,
        language_embeddings="slots",
    )  # fmt: skip
    objectives = {"mlm": MLM(), "btmlm": BTMLM(**changes), "tlm": TLM()}
    streams = {
        "text": TextStream(objectives=("btmlm", "mlm")),
        "parallel": ParallelStream(objectives=("tlm",)),
    }
    opened = open_streams(corpus, streams, objectives, row_length=96)
    loader = Loader(corpus, opened, BatchConfig(rows=8, micro_rows=8, row_length=96))
    encoder = Encoder.build(model, corpus.vocabulary, languages=corpus.languages)
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.dim() == 2:
                weight.normal_(std=0.3)
    (batch,) = next(loader.steps(Cursor()))
    return TrainModule(encoder, objectives, corpus), batch


def test_pseudo_tokens_stand_in_the_rows_and_nothing_else_changed(corpus):
    train_module, batch = trainee_and_batch(corpus, dropout=0.1)
    with torch.no_grad():  # a model that would write nothing but special tokens, if it might
        train_module.encoder.model.lm_head.bias[list(corpus.vocabulary.special)] = 1000.0
    before = batch.rows.ids.clone()
    slots = batch.markers["btmlm"]["slots"]
    assert (before.flatten()[slots] == corpus.vocabulary.mask).all()
    train_module.train()
    sums = train_module(batch)
    after = batch.rows.ids.flatten()
    assert not np.isin(after[slots].numpy(), corpus.vocabulary.special).any()
    changed = torch.zeros(before.numel(), dtype=torch.bool)
    changed[slots] = True
    assert (after == before.flatten())[~changed].all()
    assert train_module.encoder.training, "the first pass gives the encoder back as it was"
    sums["btmlm"].total.backward()
    assert train_module.encoder.languages.weight.grad.abs().sum() > 0, (
        "pseudo-tokens carry a language"
    )


def test_the_first_pass_has_no_dropout_and_reads_the_unmasked_sentence(corpus):
    """Each slot's token is the likeliest of a naive pass over the original sentence."""
    train_module, batch = trainee_and_batch(corpus, dropout=0.5)
    train_module.train()
    train_module(batch)
    rows, slots = batch.aux_rows["btmlm"], batch.aux_markers["btmlm"]["slots"]
    train_module.eval()
    with torch.no_grad():
        hidden = train_module.encoder(rows).hidden.flatten(0, 1)
        logits = train_module.encoder.model.lm_head(hidden[slots])
    logits[:, list(corpus.vocabulary.special)] = -torch.inf
    written = batch.rows.ids.flatten()[batch.markers["btmlm"]["slots"]]
    assert (written == logits.argmax(dim=1)).all()
    # the sentences of the auxiliary rows are those of the main rows, unmasked, in the same order
    original = batch.rows.ids.flatten().clone()
    start, stop = batch.target_slices["btmlm"]
    original[batch.target_positions[start:stop]] = batch.targets[start:stop]
    for main, side in zip(batch.markers["btmlm"]["slots"], slots, strict=True):
        found = []
        for of, flat, ids in ((batch.rows, main, original), (rows, side, rows.ids.flatten())):
            row = flat // of.ids.shape[1]
            inside = (of.sequences == of.sequences.flatten()[flat]) & (of.roles == 0)
            inside &= torch.arange(len(of.ids))[:, None] == row
            found.append(ids.view_as(of.ids)[inside].tolist())
        assert found[0] == found[1]


def test_what_was_written_is_measured(corpus):
    train_module, batch = trainee_and_batch(corpus, decoding="sample", temperature=10.0)
    ratios = train_module(batch)["btmlm"].ratios
    rows, slots = batch.aux_rows["btmlm"], batch.aux_markers["btmlm"]["slots"].tolist()
    written = batch.rows.ids.flatten()[batch.markers["btmlm"]["slots"]].tolist()
    pieces = corpus.token_texts()
    copied = letters = right = 0
    for flat, token in zip(slots, written, strict=True):
        row, place = divmod(flat, rows.ids.shape[1])
        own = rows.sequences[row, place]
        sentence = [
            int(rows.ids[row, i])
            for i in range(rows.ids.shape[1])
            if rows.sequences[row, i] == own and rows.roles[row, i] == 0
        ]
        copied += token in sentence
        script = script_of(pieces[token])
        language = corpus.languages[int(rows.languages[row, place])]
        letters += script is not None
        right += script == {"aa": "LATIN", "bb": "CYRILLIC", "cc": "LATIN"}[language]
    assert copied > 0
    assert 0 < right < letters
    assert [int(number) for number in ratios["copied"]] == [copied, len(slots)]
    assert [int(number) for number in ratios["in_script"]] == [right, letters]


def test_drawing_follows_the_seed_and_the_temperature(corpus):
    def written(seed, **changes):
        train_module, batch = trainee_and_batch(corpus, decoding="sample", **changes)
        torch.manual_seed(seed)
        train_module(batch)
        return batch.rows.ids.flatten()[batch.markers["btmlm"]["slots"]].tolist()

    assert written(0) == written(0)
    assert written(0) != written(1)
    cold, likeliest = written(0, temperature=1e-4), written(0, temperature=1e-5)
    assert cold == likeliest
    train_module, batch = trainee_and_batch(corpus)
    train_module(batch)
    assert cold == batch.rows.ids.flatten()[batch.markers["btmlm"]["slots"]].tolist()


def test_a_micro_batch_without_texts_writes_nothing(corpus):
    train_module, batch = trainee_and_batch(corpus)
    batch.markers.pop("btmlm")
    batch.aux_markers.pop("btmlm")
    train_module.objective("btmlm").before_forward("btmlm", batch, Inference(train_module.encoder))
    found = train_module.objective("btmlm")._ratios
    assert {name: (int(a), int(b)) for name, (a, b) in found.items()} == {
        "copied": (0, 0),
        "in_script": (0, 0),
    }


def test_other_languages_are_drawn_as_asked(corpus):
    def drawn(**changes):
        stream = TextStream(objectives=("btmlm",), unit="sentence", languages=("bb",), **changes)
        parts = stream.open(
            corpus, split="train", sequence_length=lambda sizes: sizes[:, 0], row_length=200
        )
        chances = np.random.default_rng(0).random(400)
        texts = [parts[0].example(0, float(chance)) for chance in chances]
        found = [text.target_language for text in texts if isinstance(text, Text)]
        return np.bincount(found, minlength=3) / 400

    assert drawn() == pytest.approx([0.5, 0.0, 0.5], abs=0.08)
    assert drawn(target_languages=("cc",)).tolist() == [0, 0, 1]
    assert drawn(target_languages=("xx", "cc", "bb")).tolist() == [0, 0, 1]
    tokens = corpus.tokens_of_languages()
    share = tokens["aa"] ** 3 / (tokens["aa"] ** 3 + tokens["cc"] ** 3)
    assert drawn(target_alpha=3.0)[0] == pytest.approx(share, abs=0.08)
    with pytest.raises(IsoglotError, match=r"texts in 'bb' have no other language of .*aa, bb, cc"):
        drawn(target_languages=("xx",))
    with pytest.raises(IsoglotError, match="texts in 'bb' have no other language of "):
        drawn(target_languages=("bb",))


def test_a_language_without_text_is_no_language_to_write_in(tmp_path):
    for code, text in (("aa", "ka lo mi tu.\n"), ("bb", "бо да ги му.\n"), ("cc", "")):
        (tmp_path / f"{code}.txt").write_text(text * 60, encoding="utf-8")
    files: dict[str, tuple[str, ...]] = {code: (f"{code}.txt",) for code in ("aa", "bb", "cc")}
    settings = PrepareConfig(
        sources={"text": SourceConfig(kind="text", files=files)},
        tokenizer=TokenizerConfig(vocab_size=340),
        heldout_share=0.0,
    )
    prepare(settings, tmp_path / "corpus", base=tmp_path)
    corpus = Corpus.open(tmp_path / "corpus")
    others = target_languages(corpus, "aa", (), 0.0)
    assert others.ids == (corpus.languages.index("bb"),)
    stream = TextStream(objectives=("btmlm",))
    (opened,) = open_streams(corpus, {"text": stream}, {"btmlm": BTMLM()}, row_length=64)
    assert "text: text/cc: none of its examples is read" in next(describe_dropped((opened,))).text
    named = replace(stream, languages=("aa", "cc"))
    (opened,) = open_streams(corpus, {"text": named}, {"btmlm": BTMLM()}, row_length=64)
    assert "text: text/cc: none of its examples is read" in next(describe_dropped((opened,))).text


def test_one_language_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "aa.txt").write_text("ka lo mi tu.\n" * 50 + "se ra no pe.\n" * 50)
    settings = PrepareConfig(
        sources={"text": SourceConfig(kind="text", files={"aa": ("aa.txt",)})},
        tokenizer=TokenizerConfig(vocab_size=300),
    )
    prepare(settings, tmp_path / "corpus", base=tmp_path)
    corpus = Corpus.open(tmp_path / "corpus")
    encoder = make_encoder(size=corpus.vocabulary.size, layers=1)
    with pytest.raises(IsoglotError, match="in one only \\(aa\\)"):
        BTMLM().build_module(encoder, corpus)


def test_scripts_are_counted_in_the_text(corpus):
    assert [script_of(text) for text in ("Ġabc", "12.", "приvет", "日本", "日の", "")] == [
        "LATIN", None, "CYRILLIC", "CJK", "CJK", None,
    ]  # fmt: skip
    of_piece, names = scripts_of_tokens(corpus.token_texts())
    found = scripts_of_languages(corpus, of_piece, len(names))
    spoken = [{name for name, on in zip(names, row, strict=True) if on} for row in found]
    assert spoken == [{"LATIN"}, {"CYRILLIC"}, {"LATIN"}]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"pseudo_rate": 0.0}, "pseudo_rate"), ({"temperature": 0.0}, "temperature")],
)
def test_settings_that_cannot_work_are_refused(wrong, message):
    with pytest.raises(IsoglotError, match=message):
        BTMLM(**wrong)


class Saying:
    """Says the same at every slot."""

    def __init__(self, logits, number):
        self.said = logits.expand(number, -1)

    def states(self, _rows):
        return None

    def logits(self, _states, _slots):
        for some in self.said.split(4096):
            yield some.clone()


def test_what_is_drawn_has_the_probabilities_of_the_logits(corpus):
    """At a temperature, and of the words that may be written: one of four here may not."""
    train_module, batch = trainee_and_batch(corpus, decoding="sample", temperature=2.0)
    words, number = [*corpus.vocabulary.ordinary[:3].tolist(), corpus.vocabulary.mask], 20_000
    logits = torch.full((train_module.encoder.vocabulary_size,), -60.0)
    logits[words] = torch.tensor([0.0, 2.0, 4.0, 9.0])
    torch.manual_seed(0)
    module = train_module.objective("btmlm")
    written = module._generate(batch.aux_rows["btmlm"], None, Saying(logits, number))
    shares = written.bincount(minlength=len(logits))[words] / number
    expected = torch.tensor([0.0, 1.0, 2.0]).softmax(dim=0)
    torch.testing.assert_close(shares[:3], expected, rtol=0, atol=0.015)
    assert shares[3] == 0

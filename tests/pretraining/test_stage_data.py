"""What a run says of its stages' languages and length, and what `btmlm` generates by default."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console
from safetensors.torch import load_file

from isoglot.batching.loader import open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.corpus import Corpus
from isoglot.models.language_embeddings import FILE
from isoglot.objectives.btmlm import BTMLM
from isoglot.pretraining.config import PretrainConfig, StageConfig
from isoglot.pretraining.run import pretrain
from isoglot.pretraining.stage_data import (
    describe_length,
    describe_missing,
    with_target_languages,
)
from isoglot.types import Text
from tests.pretraining.driver import config


def recipe(text: tuple[str, ...], pairs: tuple[str, ...] = ()) -> PretrainConfig:
    streams = {
        "text": TextStream(objectives=("mlm",), languages=text, target_languages=text),
        "parallel": ParallelStream(objectives=("tlm",), languages=pairs),
    }
    stage = StageConfig(steps=1, streams=streams)
    return replace(config(), stages=(stage, stage))


def test_languages_that_the_corpus_lacks_are_said_once(corpus):
    note = describe_missing(recipe(("aar", "zh-min-nan", "bb"), ("aa-bb", "aa-zz")), corpus)
    assert note is not None
    assert note.count("zh-min-nan") == 1
    assert "2 of the recipe's languages or pairs, which are left out: zh-min-nan, aa-zz." in note


def test_nothing_is_said_where_the_corpus_has_all(corpus):
    assert describe_missing(recipe(("aa", "bb"), ("bb-aa",)), corpus) is None
    assert describe_missing(recipe(()), corpus) is None


def with_slots(
    pairs: tuple[str, ...], targets: tuple[str, ...] = (), **model: str
) -> PretrainConfig:
    """CAMLM on some pairs, then BTMLM on text of all languages."""
    text = TextStream(objectives=("btmlm",), unit="sentence", target_languages=targets)
    stages = (
        StageConfig(
            steps=1,
            streams={
                "parallel": ParallelStream(objectives=("tlm", "camlm"), languages=pairs),
                "others": ParallelStream(objectives=("tlm",)),
            },
        ),
        StageConfig(steps=1, streams={"text": text}),
    )
    base = config(stages=stages, batch=BatchConfig(rows=4, micro_rows=4, row_length=96))
    return replace(base, model=replace(base.model, **model))  # type: ignore[arg-type]


def generated(recipe: PretrainConfig, corpus: Corpus) -> set[str]:
    """The languages that the second stage's texts are drawn with."""
    stage = with_target_languages(recipe, corpus).stages[1]
    opened = open_streams(corpus, stage.streams, {"btmlm": BTMLM()}, row_length=96)
    slices = [one for stream in opened for one in stream.slices]
    draws = [one.example(0, n / 50) for one in slices for n in range(50)]
    assert all(isinstance(draw, Text) for draw in draws)
    return {corpus.languages[draw.target_language] for draw in draws if isinstance(draw, Text)}


def test_pseudo_tokens_are_of_languages_whose_embedding_camlm_has_trained(corpus):
    assert generated(with_slots(("aa-bb",)), corpus) == {"aa", "bb"}
    assert generated(with_slots(()), corpus) == {"aa", "bb", "cc"}, "all pairs"
    assert generated(with_slots(("aa-bb",), ("bb", "cc")), corpus) == {"bb", "cc"}, "as named"
    everywhere = with_slots(("aa-bb",), language_embeddings="all")
    assert generated(everywhere, corpus) == {"aa", "bb", "cc"}, "all tokens have embeddings"


def test_without_camlm_pseudo_tokens_are_of_all_languages(corpus):
    recipe = with_slots(("aa-bb",))
    text_alone = replace(recipe, stages=(recipe.stages[1], recipe.stages[1]))
    assert generated(text_alone, corpus) == {"aa", "bb", "cc"}


def test_a_run_draws_them_so(corpus, tmp_path):
    pretrain(with_slots(("aa-bb",)), corpus, tmp_path)
    embeddings = load_file(tmp_path / "model" / FILE)["weight"]
    untrained = {
        code: not row.any() for code, row in zip(corpus.languages, embeddings, strict=True)
    }
    assert untrained == {"aa": False, "bb": False, "cc": True}


def test_the_line_about_the_length_says_what_decided():
    by_epochs = StageConfig(epochs=10, streams={"text": TextStream(objectives=("mlm",))})
    assert describe_length(by_epochs, 2345) == "epochs 10: 2,345 steps"
    both = replace(by_epochs, steps=2)
    assert describe_length(both, 2) == "steps: 2; epochs: 10 would take as many or more"
    assert describe_length(replace(both, steps=50), 7) == "epochs 10: 7 steps, fewer than steps: 50"


def told(corpus, folder, *streams: ParallelStream) -> list[str]:
    """What a run with one stage of two steps for each stream says about examples."""
    stages = tuple(StageConfig(steps=2, streams={"parallel": one}) for one in streams)
    out = StringIO()
    console = Console(file=out, width=10_000)
    assert pretrain(config(stages=stages), corpus, folder, console=console).finished
    return [line for line in out.getvalue().splitlines() if "examples are dropped" in line]


def test_what_is_left_out_is_told_once_with_its_reason(corpus, tmp_path):
    short = ParallelStream(objectives=("tlm",), max_tokens=16)
    (line,) = told(corpus, tmp_path / "same", short, short)
    assert line.startswith("warning: parallel: ")
    assert "have more than 16 tokens in both sides (the stream's max_tokens, " in line
    shorter = replace(short, max_tokens=14)
    lines = told(corpus, tmp_path / "other", short, shorter, short)
    assert ["more than 16" in line for line in lines] == [True, False]


def test_a_run_whose_streams_must_fit_another_objective(corpus, tmp_path):
    """The other objective is not trained, and gives no loss."""
    stream = ParallelStream(objectives=("mlm",), must_fit=("camlm",))
    stage = StageConfig(steps=2, streams={"parallel": stream})
    losses: list[set[str]] = []
    pretrain(
        config(stages=(stage,), batch=BatchConfig(rows=4, micro_rows=2, row_length=96)),
        corpus,
        tmp_path,
        on_step=lambda step: losses.append(set(step.losses)),
    )
    assert losses == [{"mlm"}] * 2

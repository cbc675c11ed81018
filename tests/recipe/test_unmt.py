"""The recipes of unsupervised translation say what the papers and the released codes say."""

import pytest

from isoglot.recipe import load_recipe

PAIRS = [("unmt-mass", "mass"), ("unmt-xlm", "mlm")]


@pytest.mark.parametrize(("name", "objective"), PAIRS)
def test_the_papers_values(name, objective):
    """MLM-GC 4.1 for pre-training, A.2.2 for training."""
    recipe = load_recipe(name)
    first, second = recipe.optimizer_in(0), recipe.optimizer_in(1)
    assert (first.betas, first.eps, first.warmup_steps) == ((0.9, 0.999), 1e-8, 10_000)
    assert first.learning_rate == 1e-4
    assert (second.betas, second.eps, second.warmup_steps) == ((0.9, 0.997), 1e-9, 8000)
    assert second.learning_rate == 7e-4
    assert recipe.objectives["backtranslate"].label_smoothing == 0.1  # type: ignore[attr-defined]
    assert recipe.model.dropout == 0.1
    assert recipe.objectives_in(0) == [objective]
    assert all(stage.steps == 400_000 for stage in recipe.stages)
    assert recipe.batch.rows * recipe.batch.row_length == 8192


def test_what_is_trained_beside_back_translation():
    """MASS itself with MASS, denoising with XLM; in the released code of MASS nothing."""
    for name, objectives in (
        ("unmt-mass", ["mass", "backtranslate"]),
        ("unmt-mass-released", ["backtranslate"]),
        ("unmt-xlm", ["denoise", "backtranslate"]),
        ("unmt-xlm-released", ["denoise", "backtranslate"]),
    ):
        assert load_recipe(name).objectives_in(1) == objectives


@pytest.mark.parametrize(("name", "host"), [*PAIRS, ("unmt-mass-tiny", "mass")])
def test_with_co_occurrence_nothing_else_changes(name, host):
    plain, changed = load_recipe(name), load_recipe(f"{name}+gc")
    assert changed.objectives["cooccurrence"].depends_on() == (host,)
    assert changed.objectives["cooccurrence"].weight == 1.0, "lambda"
    assert changed.objectives_in(0) == [host, "cooccurrence"]
    assert changed.objectives_in(1) == plain.objectives_in(1)
    for number, (stage, other) in enumerate(zip(plain.stages, changed.stages, strict=True)):
        assert stage.steps == other.steps
        assert plain.optimizer_in(number) == changed.optimizer_in(number)
        (one,), (two,) = stage.streams.values(), other.streams.values()
        assert (one.unit, one.languages) == (two.unit, two.languages)  # type: ignore[attr-defined]
    assert plain.model == changed.model
    assert plain.batch == changed.batch


@pytest.mark.parametrize("name", [name for name, _ in PAIRS])
def test_with_co_occurrence_its_own_choices_are_named_too(name):
    plain, changed = load_recipe(name), load_recipe(f"{name}+gc")
    assert plain.differs.items() < changed.differs.items()
    assert "alpha" in changed.differs["regression"]


@pytest.mark.parametrize(
    "name",
    ["unmt-xlm", "unmt-xlm+gc", "unmt-xlm+pmi", "unmt-xlm-tiny", "ablations/unmt-xlm-words"],
)
def test_mlm_is_told_the_language_as_translation_is(name):
    mlm = load_recipe(name).objectives["mlm"]
    assert mlm.uses_language_tokens, "the first token of both sides, as `differs` says"


def test_the_regression_reads_the_half_that_predicts():
    for name, half in (("unmt-mass+gc", "decoder"), ("unmt-xlm+gc", "encoder")):
        assert load_recipe(name).objectives["cooccurrence"].states == half  # type: ignore[attr-defined]


def test_the_released_codes():
    mass = load_recipe("unmt-mass-released")
    assert mass.objectives["mass"].length == "batch"  # type: ignore[attr-defined]
    assert mass.model.language_embeddings == "all"
    assert mass.model.decoder is not None
    assert mass.model.decoder.cross_attention_output == "language"
    xlm = load_recipe("unmt-xlm-released")
    for recipe in (mass, xlm):
        assert recipe.optimizer_in(1).learning_rate == 1e-4
        assert recipe.optimizer_in(1).betas == (0.9, 0.98)
        assert recipe.objectives["backtranslate"].label_smoothing == 0.0  # type: ignore[attr-defined]


def test_phrases_are_hidden_in_pre_training_only():
    recipe, plain = load_recipe("unmt-xlm+pmi"), load_recipe("unmt-xlm")
    masking = recipe.objectives["mlm"].masking  # type: ignore[attr-defined]
    assert masking.unit == "pmi"
    assert masking.phrases is None, "they are found in the corpus; nobody has a file yet"
    assert recipe.objectives_in(0) == ["mlm"]
    assert recipe.stages == plain.stages
    assert recipe.differs["masking"].startswith("at most 15 %")
    assert set(plain.differs) < set(recipe.differs), "what unmt-xlm says of itself holds here too"

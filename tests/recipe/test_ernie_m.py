"""The recipes of ERNIE-M say what its tables say, typed in here a second time."""

import pytest

from isoglot.recipe import load_recipe

TABLE_8 = """
af hi or am hr pa ar hu pl as hy ps az id pt be is ro bg it ru bn ja sa br jv sd bs ka si ca kk sk
cs km sl cy kn so da ko sq de ku sr el ky su en la sv eo lo sw es lt ta et lv te eu mg th fa mk tl
fi ml tr fr mn ug fy mr uk ga ms ur gd my uz gl ne vi gu nl yi he no zh
""".split()
XNLI = "en fr es de el bg ru tr ar vi th zh hi sw ur".split()


@pytest.mark.parametrize(
    ("name", "start", "rate", "steps"),
    [
        ("ernie-m", "xlm-roberta-base", 2e-4, 150_000),
        ("ernie-m-large", "xlm-roberta-large", 1e-4, 200_000),
    ],
)
def test_table_10(name, start, rate, steps):
    recipe = load_recipe(name)
    assert recipe.model.init_from == start
    assert recipe.model.dropout == 0.1
    assert sum(stage.steps or 0 for stage in recipe.stages) == steps
    assert (recipe.batch.rows, recipe.batch.row_length) == (2048, 512)
    optimizer = recipe.optimizer
    assert (optimizer.name, optimizer.learning_rate, optimizer.eps) == ("adamw", rate, 1e-6)
    assert optimizer.betas == (0.98, 0.999)
    assert (optimizer.weight_decay, optimizer.warmup_steps) == (0.01, 10_000)
    assert optimizer.schedule == "linear"


def test_the_stages_of_section_3():
    recipe = load_recipe("ernie-m")
    assert [set(recipe.objectives_in(number)) for number in (0, 1)] == [
        {"mlm", "tlm", "camlm"},
        {"mlm", "tlm", "btmlm"},
    ]
    for stage in recipe.stages:
        assert {stream.alpha for stream in stage.streams.values()} == {0.1}
    assert load_recipe("ablations/ernie-m-usual-betas").optimizer.betas == (0.9, 0.98)


@pytest.mark.parametrize("tiny", ["", "tiny-"])
def test_table_6(tiny):
    expected = [{"mlm"}, {"mlm", "tlm"}, {"mlm", "camlm"}, {"mlm", "btmlm", "camlm"}]
    for number, objectives in enumerate(expected, 1):
        recipe = load_recipe(f"ablations/ernie-m-{tiny}exp{number}")
        last = len(recipe.stages) - 1
        assert set(recipe.objectives_in(last)) == objectives
        if not tiny:
            assert (last, recipe.stages[0].steps, recipe.batch.rows) == (0, 50_000, 2048)


def test_the_fifteen_languages_of_table_13():
    recipe = load_recipe("ernie-m-15")
    for stage in recipe.stages:
        assert set(stage.streams["text"].languages) == set(XNLI)
        assert set(stage.streams["parallel"].languages) == {f"en-{code}" for code in XNLI[1:]}


def test_the_languages_of_tables_8_and_9():
    recipe = load_recipe("ernie-m-96")
    text = [stream for stage in recipe.stages for stream in stage.streams.values()]
    sizes = {len(stream.languages) for stream in text if stream.kind == "text"}
    assert sizes == {len(set(TABLE_8))} == {90}
    for stage in recipe.stages:
        assert set(stage.streams["text"].languages) == set(TABLE_8)
        assert set(stage.streams["parallel"].languages) == {f"en-{code}" for code in XNLI[1:]}
    assert load_recipe("ernie-m").optimizer == recipe.optimizer


def test_pseudo_tokens_are_written_for_single_sentences():
    """As CAMLM's are: slots after a block would stand where none has ever stood."""
    for name in (
        "ernie-m",
        "ernie-m-large",
        "ernie-m-15",
        "ernie-m-96",
        "ernie-m-tiny",
        "ablations/ernie-m-exp4",
    ):
        for stage in load_recipe(name).stages:
            for stream in stage.streams.values():
                if "btmlm" in stream.objectives:
                    assert stream.unit == "sentence"  # type: ignore[attr-defined]

"""Documents: what they extend, what --set changes, and where every value came from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot import yaml_text
from isoglot.errors import RecipeError
from isoglot.recipe import document


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return write


def refusal(action, *arguments) -> str:
    with pytest.raises(RecipeError) as caught:
        action(*arguments)
    return str(caught.value)


def with_settings(data, *changes):
    return document.with_settings(document.Document(data=data), changes).data


def value_of(text):
    return with_settings({}, f"value={text}")["value"]


SHAPED = {"model": {"size": "tiny", "num_layers": 2, "dropout": 0.1}}


class TestOneSource:
    """A model starts from a folder or has a shape of its own; what is given last decides."""

    def test_a_model_to_start_from_replaces_a_shape(self):
        found = with_settings(SHAPED, "model.init_from=runs/one")
        assert found == {"model": {"init_from": "runs/one", "dropout": 0.1}}

    def test_a_size_replaces_a_model_to_start_from(self):
        started = {"model": {"init_from": "runs/one", "dropout": 0.1}}
        found = with_settings(started, "model.size=small", "model.num_heads=2")
        assert found == {"model": {"size": "small", "num_heads": 2, "dropout": 0.1}}

    def test_both_at_once_are_left_to_be_refused(self):
        found = with_settings(SHAPED, "model.init_from=runs/one", "model.size=small")
        assert found["model"] == {**SHAPED["model"], "size": "small", "init_from": "runs/one"}

    def test_other_settings_and_null_take_nothing_out(self):
        assert with_settings(SHAPED, "model.dropout=0.1", "model.freeze=none")["model"] == {
            **SHAPED["model"],
            "freeze": "none",
        }
        found = with_settings(SHAPED, "model.init_from=null")["model"]
        assert found == {**SHAPED["model"], "init_from": None}

    def test_so_does_a_recipe_that_extends_another(self, write):
        write("base.yaml", "model: {size: tiny, hidden_size: 32, freeze: body}")
        mine = write("mine.yaml", "extends: base.yaml\nmodel: {init_from: runs/one}")
        assert document.read(mine).data == {"model": {"init_from": "runs/one", "freeze": "body"}}


class TestExtends:
    def test_a_built_in_recipe_by_its_name(self, write):
        found = document.read(write("mine.yaml", "extends: xlm\nname: mine\n"))
        assert found.data["name"] == "mine"
        assert found.data["batch"]["row_length"] == 256
        assert "extends" not in found.data

    def test_a_path_is_relative_to_the_file_that_names_it(self, write, tmp_path, monkeypatch):
        write("base.yaml", "seed: 1")
        write("sub/base.yaml", "seed: 2")
        monkeypatch.chdir(tmp_path)
        assert document.read(write("sub/a.yaml", "extends: base.yaml")).data == {"seed": 2}
        assert document.read(write("sub/b.yaml", "extends: ../base.yaml")).data == {"seed": 1}

    def test_mappings_are_joined_and_lists_replaced(self, write):
        write("base.yaml", "batch: {rows: 8, micro_rows: 4}\nstages: [{steps: 1}, {steps: 2}]")
        change = "extends: base.yaml\nbatch: {rows: 16}\nstages: [{streams: {}}]"
        assert document.read(write("a.yaml", change)).data == {
            "batch": {"rows": 16, "micro_rows": 4},
            "stages": [{"streams": {}}],
        }

    def test_over_several_files_the_last_word_counts(self, write):
        write("a.yaml", "x: {p: 1, q: 1, r: 1}")
        write("b.yaml", "extends: a.yaml\nx: {q: 2, r: 2}")
        assert document.read(write("c.yaml", "extends: b.yaml\nx: {r: 3}")).data == {
            "x": {"p": 1, "q": 2, "r": 3}
        }

    def test_each_value_knows_its_file_and_line(self, write):
        base = write("base.yaml", "x:\n  p: 1\n  q: [1, 2]\n")
        change = write("a.yaml", "# mine\nextends: base.yaml\nx:\n  q: [3]\n")
        found = document.read(change)
        assert found.where(("x", "p")) == f"{base}:2"
        assert found.where(("x", "q", 0)) == f"{change}:4"
        assert found.where(("x", "q", 1)) == f"{change}:4", "the base's second item is gone"
        assert found.where(("x", "unheard", "of")) == f"{change}:3"

    @pytest.mark.parametrize("chain", [["a"], ["a", "b"], ["a", "b", "c"]])
    def test_a_circle_is_refused(self, write, chain):
        for name, following in zip(chain, chain[1:] + chain[:1], strict=True):
            write(f"{name}.yaml", f"extends: {following}.yaml")
        assert "a.yaml extends itself" in refusal(
            document.read, write("a.yaml", f"extends: {chain[-1]}.yaml")
        )

    def test_what_is_not_there_is_named_with_the_line(self, write):
        file = write("a.yaml", "name: x\nextends: xml\n")
        assert refusal(document.read, file).startswith(
            f"{file}:2: extends: there is no recipe 'xml'; did you mean 'xlm'?"
        )
        file = write("b.yaml", "extends: none.yaml")
        missing = file.parent / "none.yaml"
        assert f"{file}:1: extends: there is no file {missing}" in refusal(document.read, file)

    def test_only_one_recipe_can_be_extended(self, write):
        file = write("a.yaml", "extends: [xlm, tiny]")
        assert refusal(document.read, file) == f"{file}:1: extends must name one recipe or file."


class TestSet:
    def test_into_mappings_and_lists(self):
        data = {"batch": {"rows": 8}, "stages": [{"steps": 1}, {"steps": 2}]}
        assert with_settings(data, "batch.rows=16", "stages.1.steps=5", "loss.weighting=sites") == {
            "batch": {"rows": 16},
            "stages": [{"steps": 1}, {"steps": 5}],
            "loss": {"weighting": "sites"},
        }

    def test_values_are_yaml(self):
        assert with_settings({}, "a=[1, x]", "b={c: 1e-4}", "d=", "e=null", "f='2'", "g=a=b") == {
            "a": [1, "x"],
            "b": {"c": 1e-4},
            "d": None,
            "e": None,
            "f": "2",
            "g": "a=b",
        }

    def test_the_document_itself_is_left_alone(self):
        before = document.Document(data={"a": {"b": 1}, "c": [{"d": 1}]})
        document.with_settings(before, ["a.b=2", "c.0.d=2"])
        assert before.data == {"a": {"b": 1}, "c": [{"d": 1}]}

    def test_a_number_can_be_a_name(self):
        assert with_settings({"files": {}}, "files.7=x") == {"files": {"7": "x"}}

    def test_null_takes_a_stream_out(self):
        stage = {"steps": 2, "streams": {"text": {"share": 1}, "parallel": {"share": 2}}}
        left = with_settings({"stages": [stage]}, "stages.0.streams.parallel=null")
        assert left == {"stages": [{"steps": 2, "streams": {"text": {"share": 1}}}]}
        assert stage["streams"] == {"text": {"share": 1}, "parallel": {"share": 2}}
        said = refusal(with_settings, left, "stages.0.streams.text=null")
        assert said.endswith("a stage needs a stream, and this is its only one.")
        said = refusal(with_settings, left, "stages.0.streams.txet=null")
        assert said.endswith("there is no such stream; did you mean 'text'?")
        assert with_settings({}, "stages.0.streams.text=null")["stages"], "no list of stages yet"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ("rows", "--set rows: write it as path.to.setting=value."),
            ("=3", "--set =3: write it as path.to.setting=value."),
            ("s.2=1", "--set s.2=1: '2' must be a place in a list of 2: a number from 0 to 1."),
            ("s.x=1", "--set s.x=1: 'x' must be a place in a list of 2: a number from 0 to 1."),
            (
                "a.b.c=1",
                "--set a.b.c=1: 'c' cannot be set below the plain value 1. Shorten the path.",
            ),
            (
                "a=[1",
                "--set a=[1: this is not YAML; expected ',' or ']', but got '<stream end>'.",
            ),
        ],
    )
    def test_what_cannot_be_set(self, change, message):
        assert refusal(with_settings, {"a": {"b": 1}, "s": [1, 2]}, change) == message


# PyYAML itself loses some line ends other than LF
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]) | st.just("\n"))


class TestDialect:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1e-4", 1e-4),
            ("1E5", 1e5),
            ("-2.5e+3", -2500.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("10", 10),
            ("'0.2'", "0.2"),
            ("1e", "1e"),
            ("e5", "e5"),
            ("no", "no"),
            ("on", "on"),
            ("true", True),
            ("False", False),
            ("null", None),
            ("2024-01-01", "2024-01-01"),
            (".inf", float("inf")),
        ],
    )
    def test_what_values_mean(self, text, value):
        found = value_of(text)
        assert found == value
        assert type(found) is type(value)

    @settings(max_examples=200, deadline=None)
    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False)
            | TEXT
            | st.from_regex(r"[-+.0-9eE_:]{1,8}", fullmatch=True)
            | st.sampled_from(["no", "y", "off", "TRUE", "~", "null", "1e-4", "2024-01-01"]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
            max_leaves=6,
        ),
        st.booleans(),
    )
    def test_what_is_written_is_read(self, value, one_line):
        assert value_of(yaml_text.write(value, one_line=one_line)) == value


class TestFaults:
    def test_a_key_that_is_there_twice(self, write):
        file = write("a.yaml", "batch:\n  rows: 1\n  micro_rows: 2\n  rows: 3\n")
        assert refusal(document.read, file) == f"{file}:4: 'rows' is given twice."

    def test_not_yaml(self, write):
        file = write("a.yaml", "name: x\nbatch: {rows: 1\n")
        message = refusal(document.read, file)
        assert message.startswith(f"{file}:3: this is not YAML; expected ',' or '}}'")
        assert message.count("\n") == 0

    def test_a_tag_is_not_obeyed(self, write):
        file = write("a.yaml", "name: x\nseed: !!python/name:os.system\n")
        assert refusal(document.read, file).startswith(f"{file}:2: this is not YAML; could not")

    def test_not_text(self, tmp_path):
        file = tmp_path / "a.yaml"
        file.write_bytes(b"name: \xff\xfe\n")
        assert refusal(document.read, file) == f"{file} cannot be read: it is not UTF-8 text."

    @pytest.mark.parametrize("text", ["- a\n- b\n", "just words\n", "17\n"])
    def test_not_settings(self, write, text):
        file = write("a.yaml", text)
        assert refusal(document.read, file).startswith(f"{file} must hold settings (key: value)")

    def test_an_empty_file_holds_no_settings_but_has_a_place(self, write):
        file = write("a.yaml", "# nothing yet\n")
        assert document.read(file).where(("name",)) == f"{file}:1"

    def test_a_file_that_is_missing(self, tmp_path):
        file = tmp_path / "a.yaml"
        assert refusal(document.read, file) == f"{file} cannot be read: No such file or directory."
        assert refusal(document.find, str(file)).startswith(f"there is no file {file}")

    def test_a_name_that_is_unknown(self, write, monkeypatch, tmp_path):
        write("mine.yaml", "name: mine")
        monkeypatch.chdir(tmp_path)
        assert document.find("mine.yaml").is_file()
        assert "there is no recipe 'mine'" in refusal(document.find, "mine")
        assert "named with its .yaml" in refusal(document.find, "mine")

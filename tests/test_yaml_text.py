"""YAML that would never end, fill the memory or end in a traceback is refused in a sentence."""

from __future__ import annotations

import time

import pytest

from isoglot import yaml_text
from isoglot.errors import RecipeError
from isoglot.recipe import load_recipe
from isoglot.yaml_text import MAX_BYTES, MAX_DEPTH, MAX_VALUES, parse, read

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
"""Ten times as many values with each line: 10^12 in all."""

HOSTILE = {
    "bomb": (BOMB, "more than 100,000 values, those that aliases"),
    "mappings": (BOMB.replace("[", "{k: [").replace("]", "]}"), "more than 100,000 values"),
    "list in itself": ("a: &a [1, *a]", "f:1: an alias .* stands for what it is in"),
    "mapping in itself": ("x: 1\na: &a\n  b: {c: *a}", "f:2: an alias"),
    "all in itself": ("&a [*a]", "f:1: an alias"),
    "deep lists": ("[" * 5000 + "]" * 5000, "f:1: this is not YAML; it is nested more than 40"),
    "deep mappings": ("{a: " * 5000 + "1" + "}" * 5000, "nested more than 40 deep"),
    "deep and open": ("[" * 100_000, "nested more than 40 deep"),
    "deep blocks": ("".join(f"{' ' * n}a:\n" for n in range(200)), "nested more than 40 deep"),
    "dashes": ("- " * 3000 + "1", "nested more than 40 deep"),
    "no int": ("a: !!int abc", "f:1: 'abc' cannot be read as int"),
    "no float": ("a: !!float x", "'x' cannot be read as float"),
    "no bool": ("a: !!bool maybe", "'maybe' cannot be read as bool"),
    "no time": ("a: !!timestamp 2024-99-99", "cannot be read as timestamp"),
    "no time at all": ("a: !!timestamp abc", "cannot be read as timestamp"),
    "no bytes": ("a: !!binary é", "this is not YAML"),
    "digits": ("a: " + "9" * 5000, "f:1: '9{40}...' cannot be read as int"),
    "a list as a name": ("? [a, b]\n: 1", "f:1: a name is a mapping or a list"),
    "objects": ("a: !!python/object/apply:os.system [ls]", "no_error"),
    "an object": ("a: !!python/name:os.system", "could not determine a constructor"),
    "zero bytes": ("a: \0", "characters that YAML does not allow"),
    "two documents": ("a: 1\n---\nb: 2", "this is not YAML"),
    "an unknown alias": ("a: *b", "found undefined alias"),
    "surrogates": ('a: "\\uD800\\ud800"', "no_error"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_at_once(name):
    text, message = HOSTILE[name]
    start = time.process_time()
    if message == "no_error":
        # read as plain data: nothing is called
        assert isinstance(parse(text, "f")[0], dict)
    else:
        with pytest.raises(RecipeError, match=message):
            parse(text, "f")
    assert time.process_time() - start < 5


def test_what_is_just_small_enough_is_read():
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    data, _ = parse(deep, "f")
    for _ in range(MAX_DEPTH - 1):
        (data,) = data
    assert data == []
    aliases = f"a: &a [{'x, ' * 10}]\nb: [{'*a, ' * 900}]"
    data, _ = parse(aliases, "f")
    assert sum(map(len, data["b"])) == 9000
    assert parse(f"[{'1, ' * (MAX_VALUES - 1)}]", "f")[0][-1] == 1
    with pytest.raises(RecipeError, match="more than 100,000 values"):
        parse(f"[{'1, ' * MAX_VALUES}]", "f")


def test_one_anchor_may_be_used_twice_but_not_inside_itself():
    data, places = parse("a: &x {p: 1}\nb: *x\nc: [*x, *x]", "f")
    assert data == {"a": {"p": 1}, "b": {"p": 1}, "c": [{"p": 1}, {"p": 1}]}
    assert places["b",] == "f:2"


def test_files(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_bytes(b"a: \xff\xfe")
    with pytest.raises(RecipeError, match="it is not UTF-8 text"):
        read(file)
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(RecipeError, match="more than 4,000,000 bytes"):
        read(file)
    with pytest.raises(RecipeError, match="cannot be read: Is a directory"):
        read(tmp_path)
    file.write_text("")
    assert read(file) == (None, {})


def test_recipes_and_settings_are_read_with_these_limits(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text(BOMB)
    with pytest.raises(RecipeError, match=r"a\.yaml has more than 100,000 values"):
        load_recipe(str(file))
    for text, message in (("&a [*a]", "an alias"), ("!!int abc", "'abc' cannot be read as int")):
        with pytest.raises(RecipeError, match=rf"^seed=.*: {message}"):
            load_recipe("tiny", [f"seed={text}"])


def test_nothing_else_reads_yaml():
    """One loader with limits for the whole library."""
    from pathlib import Path

    source = Path(yaml_text.__file__).parent
    users = {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if "import yaml\n" in file.read_text("utf-8") or "from yaml" in file.read_text("utf-8")
    }
    assert users == {"yaml_text.py"}


def test_a_file_of_a_similar_name_is_proposed(tmp_path):
    (tmp_path / "prepare.yaml").write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(
        RecipeError, match=r"prepare\.yml cannot .*; did you mean 'prepare\.yaml'\?"
    ):
        yaml_text.read(tmp_path / "prepare.yml")
    with pytest.raises(RecipeError, match=r"No such file or directory\.$"):
        yaml_text.read(tmp_path / "none/other.yml")

"""JSON that anybody may have written: every fault is a JSONDecodeError."""

import json

import pytest

from isoglot import json_text


def test_json_is_read():
    assert json_text.parse('{"a": [1, null]}') == {"a": [1, None]}
    assert json_text.parse(b'"\xc3\xa9"') == "é"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ("9" * 10_000, "digits"),
        (b"\xff\xfe\x00", "decode"),
    ],
)
def test_every_fault_is_one_error(text, said):
    with pytest.raises(json.JSONDecodeError, match=said):
        json_text.parse(text)

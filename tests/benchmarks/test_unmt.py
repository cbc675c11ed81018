"""The study of translation without translations: no translation of a sentence is ever seen."""

from __future__ import annotations

import json

from benchmarks.alignment.sentences import essence
from benchmarks.unmt import cell, real_text


def test_halves_share_no_translation():
    first, second = ([f"{side}{n}" for n in range(101)] for side in "ab")
    one, other = real_text.halves(first, second)
    assert len(one) + len(other) == 101
    assert not {text[1:] for text in one} & {text[1:] for text in other}


def test_what_is_kept_of_a_text():
    found = ["A b c d.", "a b c d", "too short", "In the test here.", " ".join("x" * 99)]
    forbidden = {essence("in the test here")}
    assert list(real_text.kept(found, forbidden)) == ["A b c d."]


def test_the_table_has_means_over_seeds(tmp_path):
    for seed, value in enumerate((10.0, 20.0)):
        folder = tmp_path / f"mass-seed{seed}"
        folder.mkdir()
        score = {"sacrebleu": value, "multi_bleu": value / 2}
        found = {"recipe": "x/mass.yaml", "bleu": {"en-de": score}}
        (folder / cell.BLEU).write_text(json.dumps(found))
    assert cell.table(sorted(tmp_path.iterdir())).splitlines()[-1] == "| mass | 2 | 15.0 (7.5) |"
    assert cell.table([]) == "no cell has finished"

"""New words get their share of the probability; the tokens that were there keep their logits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isoglot.models.transplant import output_bias
from isoglot.models.transplant.output_bias import shares_of, solve_shift
from isoglot.models.transplant.run import grow
from isoglot.models.transplant.tokens import TokenizerTokens
from tests.models.tiny import ARCHITECTURES
from tests.models.transplant.tiny_tokenizers import model_for, of_words, opened

NEW = ["nyumba", "mbwa", "kubwa"]
LINES = {
    "sw": ["nyumba kubwa a", "mbwa nyumba the", "a mbwa kubwa nyumba", "nyumba nyumba mbwa a"],
    "en": ["the big dog a house", "a house", "the dog the dog big", "house a mbwa"],
}


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 30))
def test_the_mean_probability_of_each_new_word_is_its_share(seed, words, targets):
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(0, 2, (targets, 7 + words)))
    weights = torch.from_numpy(rng.dirichlet(np.ones(targets)))
    shares = torch.from_numpy(rng.dirichlet(np.ones(words + 1))[:words] * 0.5)
    found, before = solve_shift(
        logits[:, :7].logsumexp(dim=1), logits[:, 7:].float(), weights, shares
    )
    as_is = (weights[:, None] * logits.softmax(dim=1))[:, 7:].sum()
    assert before == pytest.approx(float(as_is), rel=1e-5)
    logits[:, 7:] += found
    after = (weights[:, None] * logits.softmax(dim=1))[:, 7:].sum(dim=0)
    differences = (shares * (shares / after).log().abs()).sum() / shares.sum()
    assert float(differences) < 0.05


def test_there_the_gradient_of_the_loss_at_the_biases_is_zero():
    """Targets of which a share are new words: MLM itself would not move their biases."""
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(0, 2, (400, 10)))
    targets = torch.from_numpy(rng.integers(0, 10, 400))
    shares = torch.tensor([float((targets == word).double().mean()) for word in (8, 9)])
    shift, _ = solve_shift(
        logits[:, :8].logsumexp(dim=1), logits[:, 8:], torch.full((400,), 1 / 400), shares.double()
    )
    bias = torch.zeros(10, dtype=torch.float64)
    bias[8:] = shift
    bias.requires_grad_()
    torch.nn.functional.cross_entropy(logits + bias, targets).backward()
    assert bias.grad is not None
    old, new = bias.grad[:8].abs(), bias.grad[8:].abs()
    assert new.max() < 0.01 * shares.sum()
    assert old.max() > 10 * new.max()


def test_shares_are_the_mean_over_files_however_large_the_vocabulary_is():
    counts = np.zeros((2, 250_003), np.int64)
    counts[:, 7] = 1_900, 50
    counts[0, -2] = 100
    counts[1, 9] = 50
    first = len(counts[0]) - 3
    assert shares_of(counts, first) == pytest.approx([0.5 / 2_100, 0.025, 0.5 / 2_100])
    # a list of words that the text does not have does not take the text's place
    assert shares_of(counts[:, : first + 1], 100).sum() < 0.011


def written(folder):
    files = []
    for code, lines in LINES.items():
        files.append(folder / f"{code}.txt")
        files[-1].write_text("\n".join(lines * 50) + "\n")
    return files


def grown(folder, architecture, monkeypatch, *, fit):
    source = model_for(
        of_words("unigram", folder / "source", ["house", "big", "dog", "a", "the"], "nyumbakw"),
        architecture=architecture,
    )
    with monkeypatch.context() as patched:
        if not fit:
            patched.setattr(output_bias, "_ROUNDS", 0)
        out = folder / f"large-{fit}"
        report = grow(source, out, NEW, balance=written(folder))
    return report, out, TokenizerTokens.open(source).vocabulary.size


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_old_logits_stay_bit_for_bit(tmp_path, monkeypatch, architecture):
    _, plain, size = grown(tmp_path, architecture, monkeypatch, fit=False)
    report, fitted, _ = grown(tmp_path, architecture, monkeypatch, fit=True)
    (before, tokenizer), (after, _) = opened(plain), opened(fitted)
    encoded = tokenizer("the mbwa a house", return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        old, new = before(**encoded).logits, after(**encoded).logits
    assert torch.equal(old[..., :size], new[..., :size])
    if architecture == "eurobert":  # its LM head has no biases
        assert torch.equal(old, new)
        assert not report.notes
    else:
        moved = (new - old)[..., size:]
        assert moved.abs().max() > 0.1
        torch.testing.assert_close(moved, moved[:, :1].expand_as(moved), atol=1e-5, rtol=0)
        assert "of the probability of a masked token" in report.notes[-1]


def test_new_words_have_their_share_of_the_probability_on_text(tmp_path, monkeypatch):
    """Each masked token by itself through plain transformers; each file counts as much."""
    _, plain, size = grown(tmp_path, "xlm-r", monkeypatch, fit=False)
    _, fitted, _ = grown(tmp_path, "xlm-r", monkeypatch, fit=True)
    shares: list[float] = []
    masses: dict[Path, list[float]] = {plain: [], fitted: []}
    for lines in LINES.values():
        of_file: dict[Path, list[float]] = {plain: [], fitted: []}
        new = total = 0
        for folder, found in of_file.items():
            model, tokenizer = opened(folder)
            for line in lines:
                ids = tokenizer(line, return_tensors="pt")["input_ids"]
                for place in range(1, ids.shape[1] - 1):
                    masked = ids.clone()
                    masked[0, place] = tokenizer.mask_token_id
                    with torch.no_grad():
                        logits = model(input_ids=masked).logits[0, place]
                    found.append(float(logits.softmax(dim=0)[size:].sum()))
                    new, total = new + int(ids[0, place] >= size), total + 1
            masses[folder].append(float(np.mean(found)))
        shares.append(new / total)
    share = np.mean(shares)
    assert abs(np.mean(masses[fitted]) - share) < 0.05 < abs(np.mean(masses[plain]) - share)


def test_no_text_no_change(tmp_path):
    source = model_for(of_words("unigram", tmp_path / "source", ["the"], "nyumba"))
    assert not grow(source, tmp_path / "large", ["nyumba"]).notes

"""The search in tiles against brute force in double precision; a stopped search continues."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoglot.mining import search
from isoglot.mining.faiss_search import _filled, search_faiss
from isoglot.mining.search import NearestSoFar, Saver, SearchState, search_exact


def made_up(number, seed, width=12):
    vectors = np.random.default_rng(seed).normal(size=(number, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(search, "_BLOCK", {"cpu": 7, "cuda": 7})
    monkeypatch.setattr(search, "_TILE", {"cpu": 11, "cuda": 11})


def check(found, queries, vectors, k, tolerance=1e-6):
    cosines = queries.astype(np.float64) @ vectors.astype(np.float64).T
    expected = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    assert found.indices.tolist() == expected.tolist()
    best = np.take_along_axis(cosines, expected, axis=1)
    np.testing.assert_allclose(found.cosines.numpy(), best, atol=tolerance)


@pytest.mark.parametrize(
    ("numbers", "k"), [((50, 64), 4), ((3, 40), 4), ((40, 3), 4), ((22, 9), 1)]
)
def test_neighbors_are_those_of_brute_force(numbers, k):
    first, second = made_up(numbers[0], 1), made_up(numbers[1], 2)
    done: list[int] = []
    forward, backward = search_exact(first, second, k, progress=done.append)
    check(forward, first, second, k)
    check(backward, second, first, k)
    assert done[-1] == numbers[0]


def test_half_precision_on_disk():
    first, second = (made_up(40, seed).astype(np.float16) for seed in (1, 2))
    forward, backward = search_exact(first, second, 2)
    check(forward, first, second, 2)
    check(backward, second, first, 2)


def test_a_stopped_search_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "SAVE_SECONDS", 0.0)
    first, second = made_up(50, 1), made_up(64, 2)
    file = tmp_path / "state.npz"

    def stop(done):
        if done >= 21:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_exact(first, second, 3, saver=Saver(file, "a"), progress=stop)
    steps: list[int] = []
    forward, backward = search_exact(
        first, second, 3, saver=Saver(file, "a"), progress=steps.append
    )
    assert steps[0] == 28
    check(forward, first, second, 3)
    check(backward, second, first, 3)
    assert SearchState.load(file, "another search") is None
    file.write_bytes(b"damaged")
    assert SearchState.load(file, "a") is None


def test_nothing_is_saved_in_the_first_minute(tmp_path):
    saver = Saver(tmp_path / "state.npz", "a")
    saver(SearchState(NearestSoFar.empty(2, 1), NearestSoFar.empty(2, 1)))
    assert list(tmp_path.iterdir()) == []


def test_faiss_with_all_clusters_is_exact_and_continues(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(search, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr("isoglot.mining.faiss_search._CHUNK", 16)
    first, second = made_up(50, 1), made_up(64, 2)
    file = tmp_path / "state.npz"

    def stop(done):
        if done >= 66:  # in the second direction
            raise KeyboardInterrupt

    named = {"num_clusters": 5, "num_probes": 5}
    with pytest.raises(KeyboardInterrupt):
        search_faiss(first, second, 3, saver=Saver(file, "a"), progress=stop, **named)
    steps: list[int] = []
    forward, backward = search_faiss(
        first, second, 3, saver=Saver(file, "a"), progress=steps.append, **named
    )
    assert steps == [82, 98, 114]
    check(forward, first, second, 3, 1e-5)
    check(backward, second, first, 3, 1e-5)


def test_faiss_with_fewer_clusters_finds_most():
    pytest.importorskip("faiss")
    first = made_up(3000, 1, 32)
    noise = np.random.default_rng(2).normal(size=first.shape).astype(np.float32)
    second = first + 0.02 * noise
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    for kind in (np.float32, np.float16):
        forward, _ = search_faiss(first.astype(kind), second.astype(kind), 4, num_probes=16)
        found = (forward.indices[:, 0].numpy() == np.arange(len(first))).mean()
        assert found > 0.97


def test_missing_neighbors_of_faiss_are_filled():
    cosines = np.array([[0.9, 0.5, -3e38], [-3e38, -3e38, -3e38]], np.float32)
    indices = np.array([[4, 2, -1], [-1, -1, -1]])
    values, places = _filled(cosines, indices)
    assert torch.equal(values, torch.tensor([[0.9, 0.5, 0.5], [0.0, 0.0, 0.0]]))
    assert places.tolist() == [[4, 2, 2], [0, 0, 0]]


@pytest.mark.gpu
def test_neighbors_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    first, second = made_up(50, 1), made_up(64, 2)
    forward, backward = search_exact(first, second, 4)
    check(forward, first, second, 4, 1e-5)
    check(backward, second, first, 4, 1e-5)

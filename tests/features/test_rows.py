"""Three ways to the same values: the packed store in memory or through the map, computed, computed and remembered."""

import numpy as np
import pytest

from esc50.features.recipe import Recipe
from esc50.features.rows import ComputedRows, PackedRows
from esc50.features.store import build_store

both_kinds = pytest.mark.parametrize("kind", ["mel_png", "waveform"])
ORDERS = ([0], [3, 1, 3], [4, 0, 2, 1, 5], list(range(6)), np.array([5, 5]))


@pytest.fixture
def computed(monkeypatch) -> list[str]:
    """Names of the files that were computed."""
    names, compute = [], Recipe.compute
    monkeypatch.setattr(Recipe, "compute", lambda self, path: names.append(path.name) or compute(self, path))
    return names


@both_kinds
@pytest.mark.parametrize("cache_size", [0, 2, 100])
def test_computed_values_are_those_of_the_store(make_clips, make_recipe, tmp_path, kind, cache_size):
    clips, recipe = make_clips(6), make_recipe(kind)
    packed = PackedRows(*build_store(clips, root=tmp_path / "store", recipe=recipe), memory_limit=1e9)
    rows = ComputedRows(clips, recipe, cache_size=cache_size)
    for order in (*ORDERS, *ORDERS):
        expected = packed.take(order)
        assert expected.shape == (len(order), *recipe.stored_shape)
        assert expected.dtype == recipe.stored_dtype
        assert np.array_equal(rows.take(order), expected)


@both_kinds
def test_a_store_larger_than_the_limit_is_read_through_the_map(make_clips, make_recipe, tmp_path, kind):
    clips, recipe = make_clips(6), make_recipe(kind)
    packed, rows = build_store(clips[::-1], root=tmp_path / "store", recipe=recipe)
    held = PackedRows(packed, rows, memory_limit=packed.nbytes)
    streamed = PackedRows(packed, rows, memory_limit=packed.nbytes - 1)
    assert held.in_memory and not streamed.in_memory
    for order in ORDERS:
        expected = [recipe.compute(clips[5 - number].path) for number in order]
        assert np.array_equal(held.take(order), expected)
        assert np.array_equal(streamed.take(order), expected)


def test_the_limit_counts_the_clips_asked_for(make_clips, make_recipe, tmp_path):
    clips, recipe = make_clips(6), make_recipe()
    whole, _ = build_store(clips, root=tmp_path / "store", recipe=recipe)
    few = PackedRows(*build_store(clips[4:], root=tmp_path / "store", recipe=recipe), memory_limit=whole.nbytes / 3)
    assert few.in_memory
    assert np.array_equal(few.take([0, 1]), whole[4:])


@pytest.mark.parametrize("memory_limit", [0, 1e9])
def test_values_taken_may_be_written_into(make_clips, make_recipe, tmp_path, memory_limit):
    rows = PackedRows(*build_store(make_clips(3), root=tmp_path / "store", recipe=make_recipe()), memory_limit=memory_limit)
    before = rows.take([1]).copy()
    rows.take([1])[:] = 0
    assert np.array_equal(rows.take([1]), before)
    assert before.any()


def test_without_a_cache_every_access_computes(make_clips, make_recipe, computed):
    rows = ComputedRows(make_clips(3), make_recipe())
    rows.take([0, 1])
    rows.take([1])
    assert computed == ["clip0.wav", "clip1.wav", "clip1.wav"]


def test_the_cache_forgets_what_was_used_longest_ago(make_clips, make_recipe, computed):
    rows = ComputedRows(make_clips(3), make_recipe(), cache_size=2)
    rows.take([0, 1, 0])  # 1 was used longest ago
    assert computed == ["clip0.wav", "clip1.wav"]
    rows.take([2])
    rows.take([0])
    assert computed == ["clip0.wav", "clip1.wav", "clip2.wav"]
    rows.take([1])
    assert computed[3:] == ["clip1.wav"]


def test_what_the_cache_remembers_cannot_be_written_into(make_clips, make_recipe):
    rows = ComputedRows(make_clips(1), make_recipe(), cache_size=1)
    before = rows.take([0]).copy()
    rows.take([0])[:] = 0
    assert np.array_equal(rows.take([0]), before)

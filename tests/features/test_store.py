"""The store: every clip computed once, again when its file or a parameter changes, whole whatever happens."""

import json
import logging
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import soundfile

from esc50.data.clip import Clip
from esc50.errors import ConfigError, DataError
from esc50.features.pack import LEFTOVER_SECONDS
from esc50.features.png import is_whole, read_png
from esc50.features.recipe import Recipe
from esc50.features.store import build_store, store_folder

both_kinds = pytest.mark.parametrize("kind", ["mel_png", "waveform"])


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def computed(monkeypatch) -> list[str]:
    """Names of the files that were computed since it was cleared."""
    names, compute = [], Recipe.compute
    monkeypatch.setattr(Recipe, "compute", lambda self, path: names.append(path.name) or compute(self, path))
    return names


def values(clips: Sequence[Clip], **options) -> np.ndarray:
    """What the store gives for these clips, in their order."""
    packed, rows = build_store(clips, **options)
    return np.array(packed[rows])


def expected(clips: Sequence[Clip], recipe: Recipe) -> np.ndarray:
    return np.stack([recipe.from_waveform(recipe.read(clip.path)) for clip in clips])


def change(clip: Clip) -> None:
    """Write other samples, of the same number, at another time."""
    soundfile.write(clip.path, 0.5 * np.sin(np.arange(soundfile.info(clip.path).frames) / 3), 8000, subtype="PCM_16")
    stat = clip.path.stat()
    os.utime(clip.path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Everything below a folder, with modification time and size."""
    return {path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def context():
    """Starts processes quickly: they branch off one that has imported everything."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["esc50.features.store", "scipy.sparse", "PIL.Image"])
    return context


def run_at_once(context, work: Callable, *arguments: tuple) -> None:
    """Run `work(*arguments)` in one process for each `arguments`, beginning at the same moment, and see them end well."""
    barrier = context.Barrier(len(arguments))
    processes = [context.Process(target=_work_at_once, args=(barrier, work, own)) for own in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
        assert process.exitcode == 0


def _work_at_once(barrier, work: Callable, arguments: tuple) -> None:
    barrier.wait(timeout=60)
    work(*arguments)


# What it holds


@both_kinds
def test_rows_are_what_direct_computation_gives(make_clips, make_recipe, root, kind):
    clips, recipe = make_clips(5), make_recipe(kind)
    packed, rows = build_store(clips, root=root, recipe=recipe)
    assert packed.shape == (5, *recipe.stored_shape)
    assert packed.dtype == recipe.stored_dtype
    assert isinstance(packed, np.memmap) and not packed.flags.writeable
    assert np.array_equal(packed[rows], expected(clips, recipe))


def test_rows_follow_the_clips_asked_for(make_clips, make_recipe, root):
    clips, recipe = make_clips(5), make_recipe()
    whole = values(clips, root=root, recipe=recipe)
    order = [3, 0, 4]
    assert np.array_equal(values([clips[number] for number in order], root=root, recipe=recipe), whole[order])


def test_every_clip_has_a_png_of_its_values(make_clips, make_recipe, root):
    clips, recipe = make_clips(3), make_recipe()
    kept = values(clips, root=root, recipe=recipe)
    for clip, image in zip(clips, kept, strict=True):
        read, texts = read_png(store_folder(root, clips, recipe) / "png" / f"{clip.filename}.png")
        assert np.array_equal(read, image)
        stat = clip.path.stat()
        assert texts == {"parameters": recipe.parameters(), "source": {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}}


def test_clips_in_folders_of_classes_keep_apart(make_recipe, make_clips, tmp_path, root):
    """Two classes may each hold a file of one name."""
    clips = []
    for number, clip in enumerate(make_clips(2)):
        path = tmp_path / "sounds" / f"class{number}" / "same.wav"
        path.parent.mkdir(parents=True)
        shutil.copy(clip.path, path)
        clips.append(
            Clip(filename=f"class{number}/same.wav", path=path, target=number, category=f"class{number}", fold=1, source="same")
        )
    assert np.array_equal(values(clips, root=root, recipe=make_recipe()), expected(clips, make_recipe()))


def test_nothing_is_written_inside_the_data_root(make_clips, make_recipe, tmp_path, root):
    clips = make_clips(3)
    before = files(tmp_path / "data")
    for kind in ("mel_png", "waveform"):
        build_store(clips, root=root, recipe=make_recipe(kind))
    assert files(tmp_path / "data") == before


def test_data_in_different_places_have_stores_of_their_own(make_clips, make_recipe, tmp_path, root):
    clips, recipe = make_clips(2), make_recipe()
    shutil.copytree(tmp_path / "data", tmp_path / "other" / "data")
    moved = [Clip(**(vars(clip) | {"path": tmp_path / "other" / "data" / "audio" / clip.filename})) for clip in clips]
    assert store_folder(root, moved, recipe).parent != store_folder(root, clips, recipe).parent


# What is computed, and what is not


@both_kinds
def test_a_second_call_computes_and_writes_nothing(make_clips, make_recipe, root, computed, kind):
    clips, recipe = make_clips(4), make_recipe(kind)
    first = values(clips, root=root, recipe=recipe)
    assert sorted(computed) == [clip.filename for clip in clips]
    computed.clear()
    before = files(root)
    assert np.array_equal(values(clips, root=root, recipe=recipe), first)
    assert computed == []
    assert files(root) == before


@both_kinds
def test_a_changed_file_alone_is_computed_again(make_clips, make_recipe, root, computed, kind):
    clips, recipe = make_clips(4), make_recipe(kind)
    first = values(clips, root=root, recipe=recipe)
    computed.clear()
    change(clips[2])
    second = values(clips, root=root, recipe=recipe)
    assert computed == ["clip2.wav"]
    assert np.array_equal(second, expected(clips, recipe))
    assert not np.array_equal(second[2], first[2])
    assert len(list(store_folder(root, clips, recipe).glob("*.npy"))) == 1  # the old pack is gone


def test_rows_given_before_a_change_stay_as_they_were(make_clips, make_recipe, root):
    clips, recipe = make_clips(3), make_recipe()
    packed, rows = build_store(clips, root=root, recipe=recipe)
    first = expected(clips, recipe)
    change(clips[0])
    build_store(clips, root=root, recipe=recipe)
    assert np.array_equal(packed[rows], first)


def test_64_bands_then_128_are_two_stores(make_clips, make_recipe, root, computed):
    clips = make_clips(2)
    few, many = (make_recipe(mel={"n_mels": n_mels, "n_fft": 2048}) for n_mels in (64, 128))
    for recipe in (few, many):
        kept = values(clips, root=root, recipe=recipe)
        assert kept.shape == (2, recipe.mel.n_mels, 41)
        assert np.array_equal(kept, expected(clips, recipe))
    assert len(computed) == 4
    values(clips, root=root, recipe=few)
    assert len(computed) == 4  # the first store is still there


def test_waveform_and_logmel_share_a_store(make_clips, make_recipe, root, computed):
    clips = make_clips(2)
    first = values(clips, root=root, recipe=make_recipe("waveform"))
    assert np.array_equal(values(clips, root=root, recipe=make_recipe("logmel")), first)
    assert len(computed) == 2


@both_kinds
def test_a_larger_set_extends_the_store_of_its_subset(make_clips, make_recipe, root, computed, kind):
    clips, recipe = make_clips(6), make_recipe(kind)
    subset = [clips[4], clips[1]]
    values(subset, root=root, recipe=recipe)
    computed.clear()
    assert np.array_equal(values(clips, root=root, recipe=recipe), expected(clips, recipe))
    assert sorted(computed) == ["clip0.wav", "clip2.wav", "clip3.wav", "clip5.wav"]
    computed.clear()
    assert np.array_equal(values(subset, root=root, recipe=recipe), expected(subset, recipe))
    assert computed == []


def test_the_layout_does_not_depend_on_how_the_store_grew(make_clips, make_recipe, root, tmp_path):
    """Packs are named after their entries: under one name there must be one order of rows."""
    clips, recipe = make_clips(4), make_recipe()
    build_store([clips[3]], root=root, recipe=recipe)
    build_store(clips, root=root, recipe=recipe)
    build_store(clips[::-1], root=tmp_path / "at once", recipe=recipe)
    folders = [store_folder(place, clips, recipe) for place in (root, tmp_path / "at once")]
    grown, at_once = ([(path.name, path.read_bytes()) for path in folder.glob("pack-*.npy")] for folder in folders)
    assert grown == at_once


# Colours


def test_coloured_pngs_lie_beside_the_grey_ones_and_change_no_value(make_clips, make_recipe, root, computed):
    clips, recipe = make_clips(2), make_recipe()
    first = values(clips, root=root, recipe=recipe)
    folder = store_folder(root, clips, recipe)
    grey = files(folder / "png")
    computed.clear()
    assert np.array_equal(values(clips, root=root, recipe=recipe, colormap="magma"), first)
    assert computed == []  # painted from what is kept
    assert files(folder / "png") == grey
    for clip, image in zip(clips, first, strict=True):
        assert np.array_equal(read_png(folder / "png-magma" / f"{clip.filename}.png")[0], image)


def test_an_unknown_colour_map_leaves_no_store(make_clips, make_recipe, root):
    clips, recipe = make_clips(2), make_recipe()
    with pytest.raises(ConfigError, match="no colour map 'magna'"):
        build_store(clips, root=root, recipe=recipe, colormap="magna")
    assert not [path for path in root.rglob("*") if path.is_file() and path.name != ".lock"]


# Damage


@pytest.mark.parametrize("damage", ["deleted", "cut short", "emptied"])
def test_a_damaged_png_is_written_again_from_what_is_kept(make_clips, make_recipe, root, computed, caplog, damage):
    clips, recipe = make_clips(3), make_recipe()
    first = values(clips, root=root, recipe=recipe)
    path = store_folder(root, clips, recipe) / "png" / "clip1.wav.png"
    whole = path.read_bytes()
    if damage == "deleted":
        path.unlink()
    else:
        path.write_bytes(whole[:-20] if damage == "cut short" else b"")
    computed.clear()
    assert np.array_equal(values(clips, root=root, recipe=recipe), first)
    assert path.read_bytes() == whole
    assert computed == []
    assert ("clip1.wav.png is cut short" in caplog.text) == (damage != "deleted")


@pytest.mark.parametrize("lost", ["pack", "index"])
def test_without_pack_or_index_the_pngs_are_read(make_clips, make_recipe, root, computed, lost):
    clips, recipe = make_clips(3), make_recipe()
    first = values(clips, root=root, recipe=recipe)
    next(store_folder(root, clips, recipe).glob("pack-*.npy" if lost == "pack" else "index.json")).unlink()
    computed.clear()
    assert np.array_equal(values(clips, root=root, recipe=recipe), first)
    assert computed == []


@pytest.mark.parametrize("which", ["pack-*.npy", "index.json"])
@pytest.mark.parametrize("length", [0, 10, 200])
def test_a_pack_or_index_cut_short_is_built_again(make_clips, make_recipe, root, caplog, which, length):
    clips, recipe = make_clips(3), make_recipe()
    first = values(clips, root=root, recipe=recipe)
    path = next(store_folder(root, clips, recipe).glob(which))
    path.write_bytes(path.read_bytes()[:length])
    assert np.array_equal(values(clips, root=root, recipe=recipe), first)
    assert "is damaged" in caplog.text
    caplog.clear()
    values(clips, root=root, recipe=recipe)
    assert not caplog.text


def test_a_png_damaged_inside_is_computed_again(make_clips, make_recipe, root, computed, caplog):
    clips, recipe = make_clips(3), make_recipe()
    first = values(clips, root=root, recipe=recipe)
    folder = store_folder(root, clips, recipe)
    (folder / "index.json").unlink()
    path = folder / "png" / "clip1.wav.png"
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + bytes(20) + whole[-20:])
    assert is_whole(path)
    computed.clear()
    assert np.array_equal(values(clips, root=root, recipe=recipe), first)
    assert computed == ["clip1.wav"]
    assert path.read_bytes() == whole
    assert "clip1.wav.png is damaged" in caplog.text


def test_a_png_of_another_file_or_recipe_is_not_believed(make_clips, make_recipe, root, computed):
    clips, recipe, other = make_clips(2), make_recipe(), make_recipe(mel={"f_max": 3000.0})
    values(clips, root=root, recipe=recipe)
    values(clips, root=root, recipe=other)
    folder = store_folder(root, clips, recipe)
    (folder / "index.json").unlink()
    shutil.copy(store_folder(root, clips, other) / "png" / "clip0.wav.png", folder / "png" / "clip0.wav.png")
    change(clips[1])
    computed.clear()
    assert np.array_equal(values(clips, root=root, recipe=recipe), expected(clips, recipe))
    assert sorted(computed) == ["clip0.wav", "clip1.wav"]


# Bad and short recordings


@both_kinds
def test_a_bad_file_is_named_and_the_others_are_kept(make_clips, make_recipe, root, computed, kind):
    clips, recipe = make_clips(4), make_recipe(kind)
    good = clips[1].path.read_bytes()
    clips[1].path.write_text("<html>404</html>")
    with pytest.raises(DataError, match=r"1 of 4 clips cannot be used.*clip1\.wav") as caught:
        build_store(clips, root=root, recipe=recipe)
    assert "\n" not in str(caught.value)
    computed.clear()
    clips[1].path.write_bytes(good)
    assert np.array_equal(values(clips, root=root, recipe=recipe), expected(clips, recipe))
    assert computed == ["clip1.wav"]


@both_kinds
def test_a_bad_file_stays_bad_at_the_second_call(make_clips, make_recipe, root, kind):
    clips, recipe = make_clips(3), make_recipe(kind)
    clips[0].path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(DataError, match=r"clip0\.wav"):
            build_store(clips, root=root, recipe=recipe)
    assert np.array_equal(values(clips[1:], root=root, recipe=recipe), expected(clips[1:], recipe))


def test_several_bad_files_are_all_named_in_their_order(make_clips, make_recipe, root, caplog):
    clips = make_clips(5)
    for number in (1, 3, 4):
        clips[number].path.write_bytes(b"")
    with pytest.raises(DataError, match=r"3 of 5 clips cannot be used, the first: .*clip1\.wav.*named above"):
        build_store(clips, root=root, recipe=make_recipe())
    named = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert [message.split(".wav")[0][-1] for message in named] == ["1", "3", "4"]


def test_missing_files_are_an_error_before_anything_is_computed(make_clips, make_recipe, root, computed):
    clips = make_clips(4)
    clips[1].path.unlink()
    clips[2].path.unlink()
    with pytest.raises(DataError, match=r"2 of 4 clips are not there, the first is .*clip1\.wav; check data\.root"):
        build_store(clips, root=root, recipe=make_recipe())
    assert computed == []
    assert not root.exists()


@both_kinds
@pytest.mark.parametrize("pad", ["zero", "repeat"])
def test_padded_clips_are_counted_in_one_warning(make_clips, make_recipe, root, caplog, kind, pad):
    recipe = make_recipe(kind, pad=pad)
    clips = make_clips(5)
    for clip, seconds in zip(clips, (0.001, 0.39, 0.397, 0.4, 0.5), strict=True):
        soundfile.write(clip.path, np.full(round(seconds * 8000), 0.1), 8000)
    values(clips, root=root, recipe=recipe)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [f"2 of 5 clips are shorter than features.seconds=0.4 and were padded ({pad})"]
    caplog.clear()
    values(clips, root=root, recipe=recipe)  # nothing is built
    for path in root.rglob("*.png"):
        path.unlink()
    values(clips, root=root, recipe=recipe)  # nothing is padded
    assert not caplog.records


def test_clips_of_full_length_that_end_in_silence_are_no_cause_for_a_warning(make_clips, make_recipe, root, caplog):
    clips = make_clips(2)
    soundfile.write(clips[0].path, np.r_[np.full(100, 0.1), np.zeros(3100)], 8000)
    values(clips, root=root, recipe=make_recipe())
    assert not caplog.records


@pytest.mark.slow
def test_one_recording_of_esc10_is_short(shared, make_recipe, root, caplog):
    from esc50.data.tables import read_table

    clips = read_table(shared / "esc10")
    build_store(clips, root=root, recipe=Recipe(kind="waveform", sample_rate=44100, seconds=5.0))
    assert [record.getMessage() for record in caplog.records] == [
        "1 of 400 clips are shorter than features.seconds=5 and were padded (zero)"
    ]


# Several processes, and processes that end early


def build_and_save(clips, recipes, root, out):
    for recipe in recipes:
        np.save(f"{out}-{recipe.kind}.npy", values(clips, root=root, recipe=recipe))


def test_two_processes_at_once_give_what_one_gives(make_clips, make_recipe, root, tmp_path, context):
    clips, recipes = make_clips(30), [make_recipe("mel_png"), make_recipe("waveform")]
    run_at_once(context, build_and_save, *((clips, recipes, root, tmp_path / name) for name in ("one", "two")))
    alone = tmp_path / "alone"
    for recipe in recipes:
        single = values(clips, root=alone, recipe=recipe)
        assert np.array_equal(values(clips, root=root, recipe=recipe), single)
        for name in ("one", "two"):
            assert np.array_equal(np.load(tmp_path / f"{name}-{recipe.kind}.npy"), single)
    written = {path.relative_to(root) for path in root.rglob("*") if path.is_file()}
    assert written == {path.relative_to(alone) for path in alone.rglob("*") if path.is_file()}


def build_by_and_by(clips, sizes, recipe, root):
    for size in sizes:
        assert np.array_equal(values(clips[:size], root=root, recipe=recipe), expected(clips[:size], recipe))


def test_subset_and_whole_built_at_once_both_succeed(make_clips, make_recipe, root, context):
    """Each replaces the other's pack, whenever it likes."""
    clips, recipe = make_clips(12), make_recipe("waveform")
    for attempt in range(3):
        run_at_once(
            context,
            build_by_and_by,
            *((clips, sizes, recipe, root / str(attempt)) for sizes in ([2, 4, 6, 9, 12], [12, 5, 12], [3, 5, 7, 12])),
        )
        assert np.array_equal(values(clips, root=root / str(attempt), recipe=recipe), expected(clips, recipe))


def test_a_pack_replaced_while_the_store_is_opened_is_looked_up_again(make_clips, make_recipe, root, computed, monkeypatch):
    clips, recipe = make_clips(4), make_recipe("waveform")
    values(clips[:2], root=root, recipe=recipe)
    load = np.load

    def after_another_process(path, **options):
        monkeypatch.setattr(np, "load", load)
        values(clips, root=root, recipe=recipe)  # replaces the pack whose name was just read
        computed.clear()
        return load(path, **options)

    monkeypatch.setattr(np, "load", after_another_process)
    assert np.array_equal(values(clips, root=root, recipe=recipe), expected(clips, recipe))
    assert computed == []


def build_and_stop_after_five(clips, recipe, root, stopped):
    compute, begun = Recipe.compute, []

    def slowly(self, path):
        begun.append(path)
        if len(begun) > 5:
            stopped.set()
            time.sleep(600)
        return compute(self, path)

    Recipe.compute = slowly
    build_store(clips, root=root, recipe=recipe, num_workers=1)


def test_a_killed_build_leaves_nothing_half_and_is_resumed(make_clips, make_recipe, root, computed, context):
    clips, recipe, stopped = make_clips(12), make_recipe(), context.Event()
    process = context.Process(target=build_and_stop_after_five, args=(clips, recipe, root, stopped))
    process.start()
    assert stopped.wait(timeout=60)
    process.kill()
    process.join(timeout=60)
    folder = store_folder(root, clips, recipe)
    seen = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert sorted(path.name for path in seen) == [f"{clip.filename}.png" for clip in clips[:5]]
    for path in seen:
        read_png(path)
    assert np.array_equal(values(clips, root=root, recipe=recipe), expected(clips, recipe))
    assert sorted(computed) == sorted(clip.filename for clip in clips[5:])


def test_an_interrupted_build_leaves_no_temporary_file(make_clips, make_recipe, root, monkeypatch):
    clips, recipe = make_clips(4), make_recipe()

    def interrupt(self, path):
        raise KeyboardInterrupt

    monkeypatch.setattr(Recipe, "compute", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build_store(clips, root=root, recipe=recipe)
    assert not [path for path in root.rglob("*") if path.is_file() and path.name != ".lock"]


def test_what_killed_processes_left_long_ago_is_removed(make_clips, make_recipe, root):
    clips, recipe = make_clips(3), make_recipe()
    build_store(clips[:2], root=root, recipe=recipe)
    folder = store_folder(root, clips, recipe)
    old, young = folder / ".123-abcd.part.npy", folder / ".124-abcd.part.npy"
    for path in (old, young):
        path.write_bytes(b"half a pack")
    stat = old.stat()
    os.utime(old, (stat.st_atime, stat.st_mtime - LEFTOVER_SECONDS - 60))
    build_store(clips, root=root, recipe=recipe)
    assert not old.exists()
    assert young.exists()  # another process may be at work on it


def test_the_index_says_what_the_store_was_made_with(make_clips, make_recipe, root):
    clips, recipe = make_clips(2), make_recipe()
    build_store(clips, root=root, recipe=recipe)
    index = json.loads((store_folder(root, clips, recipe) / "index.json").read_text())
    assert index["parameters"] == recipe.parameters()
    assert list(index["clips"]) == ["clip0.wav", "clip1.wav"]


def test_what_only_prepares_data_does_without_torch():
    """Its import alone would take more memory than everything else that precomputing needs."""
    program = "import sys, esc50.assembly.data, esc50.commands.precompute, esc50.data.synthetic; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_of_two_that_want_one_store_one_computes_and_the_other_waits(make_clips, make_recipe, root, monkeypatch):
    clips, recipe = make_clips(4), make_recipe()
    compute, calls = Recipe.compute, []

    def slowly(self, path):
        calls.append(path)
        time.sleep(0.05)
        return compute(self, path)

    monkeypatch.setattr(Recipe, "compute", slowly)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: build_store(clips, root=root, recipe=recipe, progress=False), range(2))
    assert sorted(calls) == sorted(clip.path for clip in clips)
    np.testing.assert_array_equal(first[0][first[1]], second[0][second[1]])

import json
import warnings

import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task, bundled, list_spaces, load_space, write_dataset
from dre_jax.data.hpob import outline
from dre_jax.errors import ConfigError, DataError, DataWarning

TRAIN, VALIDATION, TEST = (f"meta-{split}-dataset" for split in ("train", "validation", "test"))
AUGMENTED, DESIGNS = f"{TRAIN}-augmented", "bo-initializations"


def table(n_rows=6, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    return {"X": rng.random((n_rows, n_columns)).tolist(), "y": rng.random((n_rows, 1)).tolist()}


def content():
    """A folder's files: space `s` is everywhere, `t` only in training files, `u` only in the test file."""
    return {
        TRAIN: {"s": {"s1": table(), "s2": table(8)}, "t": {"t1": table(n_columns=2)}},
        AUGMENTED: {"s": {"s1": table(), "s2": table(8), "s3": table(9)}, "t": {"t1": table(n_columns=2)}},
        VALIDATION: {"s": {"v1": table(7)}},
        TEST: {"s": {"e1": table(5), "e2": table(4)}, "u": {"u1": table(n_columns=4)}},
        DESIGNS: {"s": {"v1": {"test0": [6, 0]}, "e1": {"test0": [4, 0], "test1": [1, 2]}}},
    }


def save(folder, files):
    for stem, value in files.items():
        (folder / f"{stem}.json").write_text(json.dumps(value))
    return folder


def splits_of(space):
    return {split: sorted(space.split(split)) for split in ("train", "validation", "test")}


@pytest.mark.parametrize(
    ("mode", "train", "validation", "test", "spaces"),
    [
        ("v3", ["s1", "s2"], ["v1"], ["e1", "e2"], "stu"),
        ("v3-train-augmented", ["s1", "s2", "s3"], ["v1"], ["e1", "e2"], "stu"),
        ("v3-test", [], [], ["e1", "e2"], "su"),
        ("v2", [], [], ["e1", "e2", "s1", "s2", "v1"], "st"),
        ("v1", [], [], ["e1", "e2", "s1", "s2", "s3", "v1"], "st"),
    ],
)
def test_modes(tmp_path, mode, train, validation, test, spaces):
    folder = save(tmp_path, content())
    space = load_space(folder, "s", mode)
    assert splits_of(space) == {"train": train, "validation": validation, "test": test}
    assert sorted(space.designs) == (["e1"] if mode == "v3-test" else ["e1", "v1"])
    np.testing.assert_array_equal(space.designs["e1"]["test1"], [1, 2])
    # What is listed is what can be loaded.
    assert list_spaces(folder, mode) == list(spaces)
    for name in "stu":
        if name in spaces:
            assert load_space(folder, name, mode).n_columns > 0
        else:
            with pytest.raises(DataError, match=f"unknown space '{name}'; mode {mode} knows {', '.join(spaces)}"):
                load_space(folder, name, mode)


def test_round_trip(tmp_path):
    spaces = [load_space(save(tmp_path, content()), name) for name in "stu"]
    folder = tmp_path / "new" / "folder"
    write_dataset(folder, spaces)
    assert {path.name for path in folder.iterdir()} == {f"{stem}.json" for stem in (TRAIN, VALIDATION, TEST, DESIGNS)}
    assert list_spaces(folder) == ["s", "t", "u"]
    for space in spaces:
        again = load_space(folder, space.name)
        assert splits_of(again) == splits_of(space)
        for (_, mine), (_, theirs) in zip(again.tasks(), space.tasks(), strict=True):
            assert mine.name == theirs.name
            np.testing.assert_array_equal(mine.X, theirs.X, strict=True)
            np.testing.assert_array_equal(mine.y, theirs.y, strict=True)
        np.testing.assert_equal(again.designs, space.designs)


def test_writing_refuses(tmp_path):
    folder = save(tmp_path, content())
    space = load_space(folder, "s")
    with pytest.raises(DataError, match="every space must have its own name, but got s, s"):
        write_dataset(tmp_path / "new", [space, space])
    with pytest.raises(DataError, match=rf"{TRAIN}.json cannot be made a folder: File exists"):
        write_dataset(folder / f"{TRAIN}.json", [space])
    broken = SearchSpace("s", train={"s1": Task("s1", np.ones((1, 1), np.float32), np.array([np.nan]))})
    with pytest.raises(DataError, match=rf"{TRAIN}.json: space 's', dataset 's1': X and y must be finite"):
        write_dataset(tmp_path / "new", [broken])
    assert list((tmp_path / "new").iterdir()) == []


WIDTH = "X must have as many columns in the whole space, 3 like dataset 's1' of the train split, but has 2"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.pop(VALIDATION), rf"must hold {VALIDATION}.json or .*, but has neither"),
        (lambda f: f.pop(DESIGNS), rf"must hold {DESIGNS}.json or .*, but has neither"),
        (lambda f: f[TRAIN].update(s={}) or f[VALIDATION].clear() or f[TEST].clear(), "must hold at least one task"),
        (lambda f: f[TEST]["s"].update(e2=table(n_columns=2)), f"{TEST}.json: space 's', dataset 'e2': {WIDTH}"),
        (lambda f: f[DESIGNS]["s"]["e1"].update(test1=[0, 5]), "dataset 'e1', seed 'test1': .* but got row 5"),
        (lambda f: f[DESIGNS]["s"].update(nowhere={"test0": [0]}), "dataset 'nowhere': .* but none has this name"),
    ],
)
def test_inconsistent_files_are_named(tmp_path, change, message):
    files = content()
    change(files)
    with pytest.raises(DataError, match=message):
        load_space(save(tmp_path, files), "s")


def test_unknown_words(tmp_path):
    folder = save(tmp_path, content() | {TRAIN: {f"s{i}": {"d": table()} for i in range(30)}})
    with pytest.raises(ConfigError, match=r"the mode must be one of v1, v2, .*, but got 'v4'"):
        load_space(folder, "s", "v4")
    with pytest.raises(DataError, match=r"unknown space 'x'; mode v3 knows s0, .*, s19 and 12 more$"):
        load_space(folder, "x")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda s: [s[name].update(y=[[0.5]] * len(s[name]["X"])) for name in ("e1", "e2")],
            ["space 's': the response is constant in test/e1, test/e2;"],
        ),
        (
            lambda s: [s[name]["X"].__setitem__(0, [0.5, x, 0.5]) for name, x in (("e1", 1.5), ("e2", -3))],
            ["X should lie in [0, 1], but dataset 'e1' of the test split spans"],
        ),
        # A rounding error is let through.
        (lambda s: s["e1"]["X"].__setitem__(0, [1 + 1e-7, -1e-9, 1.0]), []),
    ],
)
def test_one_warning_for_each_problem(tmp_path, change, said):
    files = content()
    change(files[TEST]["s"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert load_space(save(tmp_path, files), "s").n_columns == 3
    assert [type(each.message) for each in caught] == [DataWarning] * len(said)
    assert all(start in str(each.message) for start, each in zip(said, caught, strict=True))
    assert all(each.filename == __file__ for each in caught)


@pytest.mark.parametrize(("split", "mode"), [("test", "v3"), ("validation", "v3"), ("test", "v2")])
def test_an_outline_agrees_with_the_tables(split, mode):
    result = outline(bundled.path(), split, mode)
    assert list(result) == list_spaces(bundled.path(), mode)
    for name, space in result.items():
        loaded = load_space(bundled.path(), name, mode)
        assert (space.name, space.n_columns) == (name, loaded.n_columns)
        assert list(space.datasets) == list(loaded.split(split))
        assert space.seeds == {dataset: tuple(loaded.designs.get(dataset, ())) for dataset in loaded.split(split)}


def test_one_split_reads_no_other_file(tmp_path):
    space = bundled.load("svm")
    write_dataset(tmp_path, [space])
    (tmp_path / "meta-train-dataset.json").write_text("{ this is no JSON")
    (tmp_path / "meta-validation-dataset.json").unlink()
    result = load_space(tmp_path, "svm", splits=["test"])
    assert list(result.test) == list(space.test)
    assert result.train == result.validation == {}
    assert set(result.designs) == set(space.test)
    assert outline(tmp_path, "test")["svm"].datasets == tuple(space.test)
    with pytest.raises(DataError, match="meta-train-dataset"):
        load_space(tmp_path, "svm", splits=["test", "train"])


def test_outlines_of_malformed_folders(tmp_path):
    write_dataset(tmp_path, [bundled.load("svm")])
    with pytest.raises(ConfigError, match="must be one of test in mode v3-test, but got 'validation'"):
        outline(tmp_path, "validation", "v3-test")
    with pytest.raises(ConfigError, match="'all'"):
        load_space(tmp_path, "svm", splits=["all"])
    (tmp_path / "bo-initializations.json").write_text('{"svm": {"d": [1]}}')
    with pytest.raises(DataError, match=r"bo-initializations\.json: space 'svm', dataset 'd': an object must follow"):
        outline(tmp_path, "test")

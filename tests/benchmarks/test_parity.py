"""The command that compares the library with PyTorch, its PyTorch half: it resumes, and refuses what does not fit."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from benchmarks import parity  # noqa: E402
from dre_jax.data import bundled, read_results, write_dataset  # noqa: E402
from dre_jax.data.files import read_json  # noqa: E402


@pytest.fixture
def go(tmp_path):
    """Runs the command on two validation tasks of the bundled data; `go.folder` has what it keeps."""
    space = bundled.load("svm")
    train, few = (dict(list(split.items())[:n]) for split, n in ((space.train, 3), (space.validation, 2)))
    designs = {name: space.designs[name] for name in (*few, *space.test)}
    write_dataset(tmp_path / "data", [replace(space, train=train, validation=few, designs=designs)])
    given = ["--data", str(tmp_path / "data"), "--space", "svm", "--out", str(tmp_path / "parity.json"), "--steps", "2"]
    given += ["--epochs", "1", "--trials", "5", "--designs", "test0,test1", "--variants", "torch,reference"]

    def run(*more):
        parity.main([*given, *more])
        return read_json(tmp_path / "parity.json")

    run.folder = tmp_path / "parity"
    return run


def test_runs_resumes_and_refuses(go, capsys):
    summary = go()
    assert "reference - torch" in capsys.readouterr().out
    (found,) = summary["comparisons"].values()
    assert [(one["trial"], one["runs"]) for one in found] == [(1, 4), (5, 4)]
    for variant, regret in zip(("reference", "torch"), found[1]["regret"], strict=True):
        traces = [trace for *_, trace in read_results(go.folder / f"{variant}.json").runs()]
        assert regret == pytest.approx(1.0 - np.mean(traces, axis=0)[5], abs=1e-8)
    files = {path.name: path.read_bytes() for path in go.folder.iterdir()}
    assert {name for name in files if name.startswith("weights")} == {
        f"weights-{who}-svm-{design}.npz" for who in ("torch", "reference") for design in ("test0", "test1")
    }

    # A run that is lost is made again, with the same weights and the same outcome; the rest is left alone.
    content = read_json(go.folder / "torch.json")
    next(iter(content["svm"].values())).pop("test1")
    (go.folder / "torch.json").write_text(json.dumps(content))
    go()
    again = capsys.readouterr().out
    assert "meta-trained" not in again
    assert "1 runs in" in again
    assert {path.name: path.read_bytes() for path in go.folder.iterdir()} == files
    assert go("--summary") == summary
    with pytest.raises(SystemExit, match="give another --out"):
        go("--epochs", "2")


def test_a_repeat_is_another_training_from_the_same_design(go):
    go("--repeats", "2", "--designs", "test0", "--variants", "torch")
    for runs in read_results(go.folder / "torch.json").traces["svm"].values():
        assert set(runs) == {"test0", "test0~1"}
        assert runs["test0"][0] == runs["test0~1"][0]
    first, second = (np.load(path) for path in sorted(go.folder.glob("weights-*.npz")))
    assert all((first[name] != second[name]).any() for name in first.files)

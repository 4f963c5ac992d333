"""The command that compares the library with PyTorch, its PyTorch half: it resumes, and refuses what does not fit."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from benchmarks import parity  # noqa: E402
from dre_jax.data import bundled, read_results, write_dataset  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two validation tasks of the bundled data."""
    space = bundled.load("svm")
    few = {name: space.validation[name] for name in list(space.validation)[:2]}
    small = replace(
        space,
        train=dict(list(space.train.items())[:3]),
        validation=few,
        designs={name: rows for name, rows in space.designs.items() if name in {*few, *space.test}},
    )
    path = tmp_path_factory.mktemp("data")
    write_dataset(path, [small])
    return path


def go(folder, out, *more):
    numbers = ["--steps", "2", "--epochs", "1", "--trials", "5", "--designs", "test0,test1"]
    variants = ["--variants", "torch,reference"]
    parity.main(["--data", str(folder), "--space", "svm", "--out", str(out), *numbers, *variants, *more])


def test_runs_resumes_and_refuses(folder, tmp_path, capsys):
    out = tmp_path / "parity.json"
    go(folder, out)
    said = capsys.readouterr().out
    assert "reference - torch" in said
    summary = json.loads(out.read_text())
    assert list(summary["comparisons"]) == ["reference - torch"]
    assert [one["trial"] for one in summary["comparisons"]["reference - torch"]] == [1, 5]
    assert {one["runs"] for one in summary["comparisons"]["reference - torch"]} == {4}
    files = {path.name: path.read_bytes() for path in out.with_suffix("").iterdir()}
    assert {name for name in files if name.startswith("weights")} == {
        f"weights-{who}-svm-{design}.npz" for who in ("torch", "reference") for design in ("test0", "test1")
    }

    # A run that is lost is made again, with the same weights and the same outcome; the rest is left alone.
    path = out.with_suffix("") / "torch.json"
    content = json.loads(path.read_text())
    lost = content["svm"][next(iter(content["svm"]))].pop("test1")
    path.write_text(json.dumps(content))
    go(folder, out)
    again = capsys.readouterr().out
    assert "meta-trained" not in again
    assert "1 runs in" in again
    assert read_results(path).traces["svm"][next(iter(content["svm"]))]["test1"].tolist() == lost
    assert {p.name: p.read_bytes() for p in out.with_suffix("").iterdir() if p.name != "torch.json"} == {
        name: data for name, data in files.items() if name != "torch.json"
    }
    go(folder, out, "--summary")
    assert json.loads(out.read_text()) == summary

    with pytest.raises(SystemExit, match="give another --out"):
        go(folder, out, "--epochs", "2")


def test_a_repeat_is_another_training_from_the_same_design(folder, tmp_path):
    out = tmp_path / "parity.json"
    go(folder, out, "--repeats", "2", "--designs", "test0", "--variants", "torch")
    for runs in read_results(out.with_suffix("") / "torch.json").traces["svm"].values():
        assert set(runs) == {"test0", "test0~1"}
        assert runs["test0"][0] == runs["test0~1"][0]
    first, second = (np.load(path) for path in sorted(out.with_suffix("").glob("weights-*.npz")))
    assert all((first[name] != second[name]).any() for name in first.files)

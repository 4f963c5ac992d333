"""Errors of the user's: one line, exit status 2, and nothing half-written. Other tests hold each rule's message."""

import pytest

from dre_jax.data import bundled

DATA = str(bundled.path())


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"trials": 0}, ["--trials"]),
        ({"seeds": "test0,test0"}, ["--seeds", "different"]),
        ({"method": "dre", "checkpoints": "/nowhere/at/all"}, ["/nowhere/at/all/svm", "must hold a checkpoint"]),
        ({"wrong": 3}, ["--wrong"]),
        ({"out": "/dev/null/at/all.json"}, ["/dev/null/at", "cannot be made a folder"]),
        ({"devices": 1000}, ["devices to use", "devices=1000"]),
        ({"processes": 2}, ["must be given together", "--coordinator and --process-id are missing"]),
        ({"coordinator": "here", "processes": 2, "process-id": 0}, ["HOST:PORT", "'here'"]),
        ({"coordinator": "a:1", "processes": 2, "process-id": 2}, ["--process-id must be less", "2 of 2"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_evaluate_refuses(refused, tmp_path, changed, named, evaluate):
    line = refused(*evaluate(**({"out": tmp_path / "a.json"} | changed)), "--quiet")
    for text in named:
        assert text in line
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_something_else(refused, tmp_path, evaluate):
    out, content = tmp_path / "a.json", '{"svm": 3}'
    out.write_text(content)
    for command in (
        evaluate(seeds="test0", out=out),
        ["meta-train", "--data", DATA, "--space", "svm", "--out", out, "--steps", 20],
    ):
        assert str(out) in refused(*command, "--quiet")
        assert out.read_text() == content
    assert str(tmp_path) in refused(*evaluate(seeds="test0", out=tmp_path), "--quiet")
    assert list(tmp_path.iterdir()) == [out]

"""Errors of the user's: one line, exit status 2, and nothing half-written."""

import shutil

import pytest

from dre_jax.data import bundled

DATA = str(bundled.path())


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"method": "radnom"}, ["'radnom'", "did you mean random?"]),
        ({"trials": 0}, ["--trials"]),
        ({"trials": "many"}, ["--trials", "integer"]),
        ({"epochs": -1}, ["--epochs"]),
        (
            {"method": "dre", "set": "acquisition.bet=2"},
            ["dre takes acquisition.kind, acquisition.beta", "'acquisition.bet'"],
        ),
        ({"method": "dre", "set": "beta"}, ["FIELD=VALUE", "'beta'"]),
        ({"seed": -1}, ["--seed"]),
        ({"space": "xgboost"}, ["unknown space 'xgboost'", "svm"]),
        ({"seeds": "test0,test0"}, ["--seeds", "different"]),
        ({"data": "/nowhere/at/all"}, ["/nowhere/at/all"]),
        ({"method": "dre", "checkpoints": "/nowhere/at/all"}, ["/nowhere/at/all/svm", "must hold a checkpoint"]),
        ({"wrong": 3}, ["--wrong"]),
        ({"out": "/dev/null/at/all.json"}, ["/dev/null/at", "cannot be made a folder"]),
        ({"devices": 0}, ["--devices"]),
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


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nonsense"], "nonsense"),
        (["meta-train", "--out", "a"], "--data"),
        (["meta-train", "--data", DATA, "--out", "a", "--stepz", "3"], "--stepz"),
        (["meta-train", "--data", DATA, "--out", "a", "--steps", "0"], "--steps"),
        (["meta-train", "--data", DATA, "--out", "a", "--preset", "thesis"], "default, paper"),
        (["meta-train", "--data", DATA, "--out", "a", "--space", "xgboost"], "unknown space 'xgboost'"),
        (["meta-train", "--data", "nowhere", "--out", "a"], "nowhere"),
        (["info"], "Missing argument"),
        (["info", "nowhere"], "nowhere must hold a checkpoint"),
        (["info", DATA], "must hold a checkpoint"),
    ],
)
def test_other_commands_refuse(refused, monkeypatch, tmp_path, arguments, named):
    monkeypatch.chdir(tmp_path)
    assert named in refused(*arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("split", ["meta-train-dataset", "meta-test-dataset"])
def test_bad_data(refused, cli, tmp_path, split, evaluate, small_folder):
    path, out = small_folder(split, lambda content: content[:-40]), tmp_path / "out"
    for command in (
        ["meta-train", "--data", path.parent, "--out", out, "--steps", 20],
        evaluate(data=path.parent, space="s", out=out),
    ):
        # An evaluation reads the split that it evaluates and no other, so gigabytes of training data stay unread.
        if command[0] == "evaluate" and split == "meta-train-dataset":
            assert cli(*command)[0] == 0
            continue
        line = refused(*command)
        assert str(path) in line
        assert "ends inside" in line
        assert not out.exists()


def test_checkpoints_that_do_not_fit(refused, trained, tmp_path, evaluate):
    (tmp_path / "random-forest").symlink_to(trained / "svm")
    line = refused(*evaluate("dre", space="random-forest", checkpoints=tmp_path, out=tmp_path / "a.json"))
    assert "space (random-forest here, svm in the checkpoint)" in line
    # And meta-training does not go on with it, nor with one of another seed or method.
    going_on = ["meta-train", "--data", DATA, "--steps", 20, "--evaluate-every", 10, "--quiet"]
    line = refused(*going_on, "--space", "random-forest", "--out", tmp_path)
    assert "space (random-forest here, svm in the checkpoint)" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["random-forest"]
    root = shutil.copytree(trained, tmp_path / "root")
    going_on += ["--space", "svm", "--out", root]
    assert "holds another training: key" in refused(*going_on, "--method", "dre", "--seed", 1)
    said = "holds another training: method (committee here, dre in the checkpoint)"
    assert said in refused(*going_on, "--method", "committee")
    for path in (root / "svm" / "steps" / "20" / "arrays").rglob("manifest.ocdbt"):
        path.write_bytes(b"")
    assert "damaged" in refused(*evaluate("dre", checkpoints=root, out=tmp_path / "a.json"))
    assert "damaged" in refused("info", root / "svm")


@pytest.mark.parametrize("content", [b"", b'{"svm": 3}', b'{"svm": {"a": {"test0": [0.5, 0.4]}}}'])
def test_a_file_of_something_else(refused, tmp_path, content, evaluate):
    out = tmp_path / "a.json"
    out.write_bytes(content)
    meta_train = ["meta-train", "--data", DATA, "--space", "svm", "--out", out, "--steps", 20]
    for command in (evaluate(seeds="test0", out=out), meta_train):
        assert str(out) in refused(*command, "--quiet")
        assert out.read_bytes() == content
    assert str(tmp_path) in refused(*evaluate(seeds="test0", out=tmp_path), "--quiet")
    assert list(tmp_path.iterdir()) == [out]

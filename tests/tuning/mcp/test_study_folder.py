"""Names of files: nothing outside of the folder is read or written."""

import json
import os
from functools import partial

import pytest

from dre_jax import Float, Optimizer, Space, Surrogate
from dre_jax.errors import CheckpointError, DataError
from dre_jax.runtime.locks import file_in_use
from dre_jax.tuning.mcp import study_folder
from dre_jax.tuning.mcp.study_folder import StudyFolder
from tests.error_messages import raises_line

SPACE = Space({"x": Float(0.0, 1.0)})


@pytest.fixture
def folder(tmp_path):
    """A folder with a study `a`, beside a study that is not the server's."""
    Optimizer(SPACE).save(tmp_path / "outside.json")
    folder = StudyFolder(tmp_path / "served")
    Optimizer(SPACE).save(tmp_path / "served" / "a.json")
    return folder


@pytest.mark.parametrize(
    "name", ["../outside", "b/../../outside", "/etc/passwd", "", ".", "..", ".a", "b/.a", "a\0", "..\\outside", "~/.a"]
)
def test_names_that_leave_the_folder(folder, name, tmp_path):
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with raises_line(DataError, "a name must be that of a file in the server's folder", repr(f"{name}.json")[1:-1]):
        folder.load(name)
    with raises_line(DataError, "a name must be"), folder.creating(name):
        pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_links_that_leave_the_folder(folder, tmp_path):
    os.symlink(tmp_path / "outside.json", tmp_path / "served" / "link.json")
    os.symlink(tmp_path, tmp_path / "served" / "up")
    os.symlink(tmp_path / "served" / "a.json", tmp_path / "served" / "b.json")
    for name in ("link", "up/outside"):
        with raises_line(DataError, "a name must be"):
            folder.read(name)
    assert folder.names() == ["a", "b"]
    with folder.open("b") as study:
        study.add({"x": 0.5}, 1.0)
    assert len(folder.read("a").trials) == 1
    assert (tmp_path / "served" / "b.json").is_symlink()


def test_a_study_file_cannot_name_a_surrogate_elsewhere(folder, tmp_path):
    content = json.loads((tmp_path / "served" / "a.json").read_text())
    for path, words in ((str(tmp_path / "stolen"), "is in"), (None, "no file")):
        content["surrogate"] = {"fingerprint": "0", "path": path, "method": "gcp", "configuration": {}}
        (tmp_path / "served" / "a.json").write_text(json.dumps(content, indent=1))
        with raises_line(DataError, "must be in the server's folder, but that of 'a'", words):
            folder.load("a")


def test_links_in_a_checkpoint(folder, tmp_path):
    (tmp_path / "served" / "past").mkdir()
    with raises_line(CheckpointError, "past"):
        folder.surrogate("b", SPACE, ["past"], "minimize")
    os.symlink(tmp_path / "outside.json", tmp_path / "served" / "past" / "metadata.json")
    with raises_line(DataError, "must not lead out of the server's folder"):
        folder.surrogate("b", SPACE, ["past"], "minimize")


def test_names_of_studies(folder, tmp_path):
    with folder.creating("runs/svc"):
        folder.save_new("runs/svc", Optimizer(SPACE))
    (tmp_path / "served" / "space.json").write_text('{"x": {"type": "float", "low": 0, "high": 1}}')
    (tmp_path / "served" / ".hidden").mkdir()
    Optimizer(SPACE).save(tmp_path / "served" / ".hidden" / "c.json")
    assert folder.names() == ["a", "runs/svc"]
    with raises_line(DataError, "must not be taken, but 'runs/svc' is"), folder.creating("runs/svc"):
        pass
    with raises_line(DataError, "one of those in the folder, a, runs/svc, but got 'b'"):
        folder.read("b")


def test_an_error_leaves_the_study_of_the_file(folder):
    def fail():
        with folder.open("a") as study:
            study.add({"x": 0.5}, 1.0)
            study.add({"x": 0.5}, "none")

    with raises_line(DataError, "must be a number"):
        fail()
    assert folder.load("a").trials == ()


def test_a_file_that_changes_is_read_again(folder, tmp_path):
    study = folder.load("a")
    assert folder.load("a") is study
    other = Optimizer.load(tmp_path / "served" / "a.json")
    other.add({"x": 0.5}, 1.0)
    other.save(tmp_path / "served" / "a.json")
    with folder.open("a") as study:
        assert len(study.trials) == 1


def test_a_file_that_another_process_keeps(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(study_folder, "_PATIENCE", 0.1)
    in_use = file_in_use(tmp_path / "served" / "a.json")
    with in_use, raises_line(DataError, "must be used by one process at a time"), folder.open("a"):
        pass


def test_past_studies_of_another_direction(folder):
    with raises_line(DataError, "past studies must maximize one value", "'a' has the directions {'value': 'minimize'}"):
        folder.surrogate("b", SPACE, ["a"], "maximize")


@pytest.mark.slow
def test_past_studies_tables_and_checkpoints(folder, tmp_path, monkeypatch):
    fit = partial(Surrogate.fit, method="gcp", settings={"prior.steps": 5})
    monkeypatch.setattr(Surrogate, "fit", fit)
    trials = [(i / 9, (i / 9 - 0.3) ** 2) for i in range(10)]
    lines = [f"{task},{x},{value}" for task in "pq" for x, value in trials]
    (tmp_path / "served" / "runs.csv").write_text("\n".join(["task,x,value", *lines]))
    with folder.open("a") as study:
        for x, value in trials:
            study.add({"x": x}, value)
    of_table = folder.surrogate("b", SPACE, ["runs.csv"], "minimize")
    of_studies = folder.surrogate("c", SPACE, ["a"], "minimize")
    assert (len(of_table.facts["tasks"]), len(of_studies.facts["tasks"])) == (2, 1)
    of_file = folder.surrogate("d", SPACE, ["b.past.npz"], "minimize")
    with folder.creating("d"):
        folder.save_new("d", Optimizer(SPACE, of_file))
    restarted = StudyFolder(tmp_path / "served").load("d")
    assert restarted.surrogate.fingerprint == of_table.fingerprint
    assert restarted.surrogate.path == str(tmp_path / "served" / "b.past.npz")

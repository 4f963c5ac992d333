import errno
import gzip
import os
import pickle
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from dre_jax.data import files
from dre_jax.errors import DataError, MissingExtraError


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_json_round_trip(tmp_path, name):
    value = {"numbers": [0.1, 2], "word": "é"}
    arrays = {"array": np.arange(2), "scalar": np.float32(0.5), "whole": np.int64(3)}
    files.write_json(tmp_path / name, value | arrays)
    assert files.read_json(tmp_path / name) == value | {"array": [0, 1], "scalar": 0.5, "whole": 3}
    assert os.listdir(tmp_path) == [name]
    (tmp_path / "b").touch()
    assert (tmp_path / name).stat().st_mode == (tmp_path / "b").stat().st_mode
    # The same content gives the same bytes, whatever the time and the name.
    files.write_json(tmp_path / f"b.{name}", value | arrays)
    assert (tmp_path / f"b.{name}").read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.parametrize(
    ("value", "message"), [(float("nan"), "not JSON compliant"), (object(), "JSON holds no object")]
)
def test_values_outside_of_json_leave_the_old_file(tmp_path, value, message):
    path = tmp_path / "a.json"
    files.write_text(path, "old")
    with pytest.raises(DataError, match=f"a.json cannot be written: .*{message}"):
        files.write_json(path, [value])
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
@pytest.mark.parametrize(("call", "code"), [("fsync", errno.ENOSPC), ("replace", errno.EACCES)])
def test_errors_of_the_disk_leave_the_old_file(tmp_path, monkeypatch, name, call, code):
    def refuse(*_):  # simulated, because tests may run as root, who may write everywhere
        raise OSError(code, os.strerror(code))

    (tmp_path / name).write_bytes(b"old")
    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(DataError, match=f"{name} cannot be written: {os.strerror(code)}"):
        files.write_text(tmp_path / name, "new")
    assert (tmp_path / name).read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError])
def test_a_failure_while_writing_leaves_nothing_behind(tmp_path, failure):
    def write_half():
        with files.atomic_writer(tmp_path / "a.txt") as stream:
            stream.write(b"half")
            raise failure

    with pytest.raises(failure):
        write_half()
    assert os.listdir(tmp_path) == []


@pytest.mark.multiprocess
def test_a_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    program = """
        import os, signal, sys
        from dre_jax.data.files import atomic_writer
        with atomic_writer(sys.argv[1]) as stream:
            stream.write(b"new" * 100_000)
            stream.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, env=environment, timeout=60, check=False).returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert len(os.listdir(tmp_path)) == 2  # nobody could remove the temporary file


def test_missing_files_and_folders(tmp_path):
    (tmp_path / "a.json").mkdir()
    with pytest.raises(DataError, match=r"nowhere/a.json cannot be written: No such file or directory"):
        files.write_json(tmp_path / "nowhere" / "a.json", {})
    for path in (tmp_path / "a.json", "/"):
        with pytest.raises(DataError, match=f"{path} must be a regular file, a pipe or a device, but is a folder"):
            files.write_json(path, {})
    with pytest.raises(DataError, match=r"a.json cannot be read: Is a directory"):
        files.read_json(tmp_path / "a.json")
    with pytest.raises(DataError, match=r"b.json cannot be read: No such file or directory"):
        files.read_json(tmp_path / "b.json")
    assert os.listdir(tmp_path) == ["a.json"]


def test_find_json_and_an_error_of_a_worker_process(tmp_path):
    (tmp_path / "file").touch()
    for folder, output in (
        (tmp_path, "must hold a.json or a.json.gz, but has neither"),
        (tmp_path / "nowhere", "must be a folder, but .*nowhere does not exist"),
        (tmp_path / "file", "must be a folder, but .*file is a file"),
    ):
        with pytest.raises(DataError, match=output):
            files.find_json(folder, "a")
    for name in ("a.json.gz", "a.json"):  # the plain one is preferred
        (tmp_path / name).touch()
        assert files.find_json(tmp_path, "a").name == name
    missing = pickle.loads(pickle.dumps(MissingExtraError("torch", "baselines")))
    assert (missing.package, missing.extra) == ("torch", "baselines")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b'{"a": 1', "not valid JSON at position 7"),
        (b"\xff\xfe", "not UTF-8 text at byte 0"),
        (b'{"a": 1, "b": 2, "a": 3}', "a key must occur once, but 'a' occurs 2 times"),
        (b"1" * 5000, "not readable as JSON: .*digits"),
        (b"[" * 200_000, "not readable as JSON: .*recursion"),
    ],
)
def test_broken_json(tmp_path, content, message):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError, match=f"a.json: {message}"):
        files.read_json(tmp_path / "a.json")


@pytest.mark.parametrize(
    "content", [b"{}", gzip.compress(b"{}" * 1000, mtime=0)[:-9], gzip.compress(b"{}", mtime=0)[:12] + b"junk" * 9]
)
def test_broken_gzip(tmp_path, content):
    (tmp_path / "a.json.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"a.json.gz: not a whole gzip file"):
        files.read_json(tmp_path / "a.json.gz")

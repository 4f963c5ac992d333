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
from dre_jax.errors import CheckpointError, ConfigError, DataError, DreError, MissingExtraError


@pytest.fixture
def full_disk(monkeypatch):
    def fail(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)


def test_errors_are_one_line_and_of_one_family():
    for kind in (DataError, ConfigError, CheckpointError):
        error = kind("a rule,\n  but this was given\n")
        assert isinstance(error, DreError)
        assert str(error) == "a rule, but this was given"


def test_missing_extra_names_the_command_and_survives_pickling():
    error = pickle.loads(pickle.dumps(MissingExtraError("torch", "baselines")))
    assert isinstance(error, DreError)
    assert "'torch'" in str(error)
    assert "pip install 'dre_jax[baselines]'" in str(error)
    assert (error.package, error.extra) == ("torch", "baselines")


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_json_round_trip(tmp_path, name):
    value = {"numbers": [0.1, 2], "word": "é"}
    files.write_json(tmp_path / name, value)
    assert files.read_json(tmp_path / name) == value
    assert os.listdir(tmp_path) == [name]


def test_gz_is_compressed_and_deterministic(tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        files.write_text(tmp_path / name, "text\n" * 1000)
    packed = (tmp_path / "a.json.gz").read_bytes()
    assert packed == (tmp_path / "b.json.gz").read_bytes()
    assert len(packed) < 200
    assert gzip.decompress(packed) == b"text\n" * 1000


def test_arrays_and_scalars_become_plain_json(tmp_path):
    files.write_json(tmp_path / "a.json", {"a": np.arange(2), "b": np.float32(0.5), "c": np.int64(3)})
    assert files.read_json(tmp_path / "a.json") == {"a": [0, 1], "b": 0.5, "c": 3}


@pytest.mark.parametrize(
    ("value", "message"), [(float("nan"), "not JSON compliant"), (object(), "JSON holds no object")]
)
def test_what_json_cannot_hold_leaves_the_old_file(tmp_path, value, message):
    path = tmp_path / "a.json"
    files.write_text(path, "old")
    with pytest.raises(DataError, match=f"a.json cannot be written: .*{message}"):
        files.write_json(path, [value])
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    files.write_text(tmp_path / "a.txt", "a")
    (tmp_path / "b.txt").write_text("b")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_full_disk(tmp_path, full_disk, name):
    (tmp_path / name).write_bytes(b"old")
    with pytest.raises(DataError, match=f"{name} cannot be written: No space left on device"):
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


def test_missing_folder(tmp_path):
    with pytest.raises(DataError, match=r"nowhere/a.json cannot be written: No such file or directory"):
        files.write_json(tmp_path / "nowhere" / "a.json", {})


def test_unwritable_folder(tmp_path, monkeypatch):
    # Simulated, because tests may run as root, who may write everywhere.
    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(DataError, match=r"a.json cannot be written: Permission denied"):
        files.write_json(tmp_path / "a.json", {})
    assert os.listdir(tmp_path) == []


def test_a_folder_in_the_place_of_the_file(tmp_path):
    (tmp_path / "a.json").mkdir()
    with pytest.raises(DataError, match=r"a.json cannot be written: Is a directory"):
        files.write_json(tmp_path / "a.json", {})
    with pytest.raises(DataError, match=r"a.json cannot be read: Is a directory"):
        files.read_json(tmp_path / "a.json")
    assert os.listdir(tmp_path) == ["a.json"]


def test_find_json_prefers_plain(tmp_path):
    files.write_json(tmp_path / "a.json.gz", {})
    assert files.find_json(tmp_path, "a").name == "a.json.gz"
    files.write_json(tmp_path / "a.json", {})
    assert files.find_json(tmp_path, "a").name == "a.json"


def test_find_json_says_what_is_missing(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"must hold a.json or a.json.gz, but has neither"):
        files.find_json(tmp_path, "a")
    with pytest.raises(DataError, match=r"must be a folder, but .*nowhere does not exist"):
        files.find_json(tmp_path / "nowhere", "a")
    with pytest.raises(DataError, match=r"must be a folder, but .*file is a file"):
        files.find_json(tmp_path / "file", "a")


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


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"a.json cannot be read: No such file or directory"):
        files.read_json(tmp_path / "a.json")

"""Writing to what is no regular file: standard output, pipes and devices."""

import gzip
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from dre_jax.data.files import check_target, write_json, write_text
from dre_jax.errors import DataError
from dre_jax.tuning import Float, Optimizer
from tests.conftest import REPOSITORY
from tests.error_messages import raises_line

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/fd/1"), reason="this system has no paths of open files")
PRINT = """
import sys
from dre_jax.data.files import check_target, write_text
for path in sys.argv[1:]:
    print("before", path)
    check_target(path)
    write_text(path, "page\\n")
    print("after")
"""


@pytest.fixture
def pipe(tmp_path):
    """A named pipe, and what a reader got from it."""
    os.mkfifo(tmp_path / "pipe.gz")
    contents = []
    reader = threading.Thread(target=lambda: contents.append((tmp_path / "pipe.gz").read_bytes()))
    reader.start()
    yield tmp_path / "pipe.gz", lambda: [reader.join(30), *contents][-1]
    assert not reader.is_alive()


def test_a_pipe_stays_one(pipe):
    path, read = pipe
    check_target(path)
    write_text(path, "content")
    assert gzip.decompress(read()) == b"content"
    assert stat.S_ISFIFO(os.stat(path).st_mode)
    assert os.listdir(path.parent) == [path.name]


def test_a_device_stays_one(tmp_path):
    """Root may replace the machine's own /dev/null, and gets another one."""
    path = Path("/dev/null")
    if os.getuid() == 0:
        path = tmp_path / "null"
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.stat("/dev/null").st_rdev)
            path.write_bytes(b"")
        except OSError:
            pytest.skip("no device can be made here")
    check_target(path)
    write_json(path, {})
    assert stat.S_ISCHR(os.stat(path).st_mode)


@pytest.mark.parametrize("is_pipe", [True, False])
def test_standard_output_in_order(tmp_path, is_pipe):
    """Also where it is a file: nothing that was printed before or is printed after gets lost."""
    paths = [path for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1") if os.path.exists(path)]
    command = [sys.executable, "-c", PRINT, *paths]
    with (tmp_path / "out").open("wb") as file:
        output = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE if is_pipe else file, check=True).stdout
    expected = "".join(f"before {path}\npage\nafter\n" for path in paths)
    assert (output if is_pipe else (tmp_path / "out").read_bytes()).decode() == expected


def test_an_open_file_of_this_process(tmp_path):
    reader, writer = os.pipe()
    with open(reader, "rb") as at_end, open(writer, "wb"):
        path = f"/dev/fd/{writer}"
        (tmp_path / "link").symlink_to(path)
        for target in (path, tmp_path / "link"):
            check_target(target)
            write_text(target, "content")
            assert os.read(at_end.fileno(), 100) == b"content"
        with raises_line(DataError, f"/dev/fd/{reader} cannot be written: Permission denied"):
            check_target(f"/dev/fd/{reader}")
    with raises_line(DataError, f"{path} cannot be written: Bad file descriptor"):
        check_target(path)


def test_what_is_never_replaced(tmp_path):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/socket")  # the address of a socket is short
        for path, kind in ((f"{folder}/socket", "a socket"), (str(tmp_path), "a folder")):
            for write in (check_target, lambda path: write_text(path, "")):
                with raises_line(DataError, f"{path} must be a regular file, a pipe or a device, but is {kind}"):
                    write(path)
        assert stat.S_ISSOCK(os.stat(f"{folder}/socket").st_mode)


def test_a_study_is_refused_as_any_file_is(tmp_path):
    optimizer = Optimizer({"x": Float(0.0, 1.0)})
    with raises_line(DataError, f"{tmp_path} must be a regular file, a pipe or a device, but is a folder"):
        optimizer.save(tmp_path)
    for path in ("/proc/study.json", "/proc/none/study.json"):
        with raises_line(DataError, f"{path} cannot be written: "):
            optimizer.save(path)


def test_a_study_goes_through_a_pipe(pipe):
    path, read = pipe
    optimizer = Optimizer({"x": Float(0.0, 1.0)})
    optimizer.save(path)
    assert json.loads(gzip.decompress(read()))["trials"] == []
    assert os.listdir(path.parent) == [path.name]


def test_targets(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "none" / "file")
    for path in (tmp_path / "none" / "file", tmp_path / "link", Path(__file__, "file"), "/proc/file"):
        with raises_line(DataError, f"{path} cannot be written: "):
            check_target(path)
    (tmp_path / "old").write_text("old")
    for path in (tmp_path / "old", tmp_path / "new"):
        check_target(path, streams=False)
    assert sorted(os.listdir(tmp_path)) == ["link", "old"]
    assert (tmp_path / "old").read_text() == "old"
    for path, kind in (("/dev/null", "a device"), ("/dev/stdout", "an open file of this process")):
        with raises_line(DataError, f"{path} must be a regular file, as it is read as well, but is {kind}"):
            check_target(path, streams=False)

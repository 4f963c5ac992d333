"""Files of tables, small and large."""

import gzip
import json
import os

import numpy as np
import pytest

from dre_jax.data import table_files
from dre_jax.data.table_files import read_tables
from dre_jax.errors import DataError

CONTENT = {
    "a": {"one": {"X": [[0.5, 1.0], [0.1, 1e-17]], "y": [[0.25], [-3]]}, "../two": {"X": [[1]], "y": [0.1]}},
    'b "{[\\': {"X0": {"X": [[0.25]], "y": [[1.0]]}},
    "c": {},
}


def plain(tables):
    return {
        space: {n: {k: v.tolist() for k, v in t.items()} for n, t in part.items()} for space, part in tables.items()
    }


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    monkeypatch.setattr(table_files, "LARGE", {"small": 2**24, "large": 0}[request.param])
    return request.param


@pytest.mark.parametrize("name", ["d.json", "d.json.gz"])
def test_content_equals_that_of_json(tmp_path, size, name):
    text = json.dumps(CONTENT).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    for _ in range(2):
        assert plain(read_tables(tmp_path / name)) == CONTENT
        table_files._read.cache_clear()  # as another process
    assert sorted(os.listdir(tmp_path)) == [f".{name}.npz", name][size == "small" :]
    assert [*read_tables(tmp_path / name)] == [*CONTENT]


def test_a_large_file_is_converted_once_and_after_each_change(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "LARGE", 0)
    path, parsed, parse = tmp_path / "d.json", [], table_files.read_json
    monkeypatch.setattr(table_files, "read_json", lambda *args: parsed.append(args) or parse(*args))
    for content in (CONTENT, {"new": {"n": {"X": [[0.5]], "y": [[0.5]]}}}):
        path.write_text(json.dumps(content))
        for _ in range(3):
            table_files._read.cache_clear()
            tables = read_tables(path)
        assert plain(tables) == content
    assert len(parsed) == 2


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    def refuse(*_):  # simulated, because tests may run as root, who may write everywhere
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(table_files, "LARGE", 0)
    path = tmp_path / "d.json"
    path.write_text(json.dumps(CONTENT))
    monkeypatch.setattr(os, "replace", refuse)
    assert plain(read_tables(path)) == CONTENT
    assert os.listdir(tmp_path) == ["d.json"]


def test_half_a_converted_file_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "LARGE", 0)
    path = tmp_path / "d.json"
    path.write_text(json.dumps(CONTENT))
    read_tables(path)
    converted = tmp_path / ".d.json.npz"
    converted.write_bytes(converted.read_bytes()[:-40])
    table_files._read.cache_clear()
    assert plain(read_tables(path)) == CONTENT
    assert isinstance(np.load(converted)["X0"], np.ndarray)


def test_a_truncated_file_is_refused_at_every_length(tmp_path):
    text = json.dumps(CONTENT).encode()
    for length in range(len(text)):
        (tmp_path / "d.json").write_bytes(text[:length])
        with pytest.raises(DataError, match=r"d\.json: (the file is empty|not valid JSON at position)"):
            read_tables(tmp_path / "d.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", r"an object must follow, but got \[1\]"),
        ('{"a": [1]}', r"space 'a': an object must follow, but got \[1\]"),
        ('{"a": {"one": 3}}', "space 'a', dataset 'one': an object must follow, but got 3"),
        ('{"a": {"one": {}, "one": {}}}', "a key must occur once, but 'one' occurs 2"),
        (b'{"a": {"one": {}}, "\xff": {}}', "not UTF-8 text at byte 20"),
    ],
)
def test_malformed_files(tmp_path, text, message):
    path = tmp_path / "d.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=rf"d\.json: {message}"):
        read_tables(path)


def test_a_large_file_is_checked_while_it_is_converted(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "LARGE", 0)
    (tmp_path / "d.json").write_text('{"a": {"one": {"X": [[1], [1, 2]], "y": [1, 2]}}}')
    with pytest.raises(DataError, match=r"space 'a', dataset 'one', row 1: every row of X must have 1 columns"):
        read_tables(tmp_path / "d.json")

import gzip
import json
import math
import tracemalloc

import pytest

from dre_jax.data.json_stream import iter_datasets, list_spaces
from dre_jax.errors import DataError

CONTENT = {
    "a": {"one": {"X": [[0.5, 1.0]], "y": [[0.25]]}, "two": {"X": [], "y": []}},
    'b "{[\\': {"}": {"note": 'a brace } and a quote " and a backslash \\'}, "é": {"nested": {"deep": {}}}},
    "c": {},
}


def write(folder, text):
    path = folder / "d.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("layout", [{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_content_equals_that_of_json(tmp_path, layout):
    path = write(tmp_path, json.dumps(CONTENT, **layout))
    assert list_spaces(path) == list(CONTENT)
    for space, datasets in CONTENT.items():
        assert list(iter_datasets(path, space)) == list(datasets.items())
    assert list(iter_datasets(path, "unknown")) == []


def test_gzip_reads_like_plain(tmp_path):
    path, packed = tmp_path / "d.json.gz", gzip.compress(json.dumps(CONTENT).encode())
    path.write_bytes(packed)
    assert list_spaces(path) == list(CONTENT)
    assert dict(iter_datasets(path, "a")) == CONTENT["a"]
    path.write_bytes(packed[:-20])
    with pytest.raises(DataError, match=r"d\.json\.gz: not a whole gzip file"):
        list_spaces(path)


def test_a_byte_order_mark_and_values_that_are_no_json_numbers(tmp_path):
    [(_, value)] = iter_datasets(write(tmp_path, b'\xef\xbb\xbf{"a": {"one": {"y": [NaN, Infinity, -Infinity]}}}'), "a")
    assert math.isnan(value["y"][0])
    assert value["y"][1:] == [math.inf, -math.inf]


@pytest.mark.parametrize("space", ["a", "c", "unknown"])
def test_a_truncated_file_is_refused_at_every_length(tmp_path, space):
    text = json.dumps(CONTENT).encode()
    for length in range(len(text)):
        with pytest.raises(DataError, match=r"d\.json.*the file (ends|is empty)"):
            list(iter_datasets(write(tmp_path, text[:length]), space))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", r"the top level must be an object .*, but it starts with '\['"),
        ("{1: 2}", "not valid JSON at position 1: "),
        ('{"a" {}}', "not valid JSON at position 5: "),
        ('{"a": [1]}', r"space 'a': an object must follow, but got \[1\]"),
        ('{"a": {"one": 3}}', "space 'a', dataset 'one': an object must follow, but got 3"),
        ('{"a": {"one": [{}]}}', r"space 'a', dataset 'one': an object must follow, but got \[\{\}\]"),
        ('{"a": {"one": {"X": 1} "b": {}}', "the file ends inside an object"),
        ('{"a": {"one": {"X": 1} "b": {}}}', "not valid JSON at position 23: "),
        ('{"a": {"one": {}}} {}', "not valid JSON at position 19: "),
        ('{"a": {"one": {}}, "a": {}}', "a key must occur once, but 'a' occurs 2"),
        ('{"a": {"one": {}, "one": {}}}', "a key must occur once, but 'one' occurs 2"),
        ('{"a": {"one": {"X": 1, "X": 2}}}', "space 'a', dataset 'one': a key must occur once, but 'X' occurs 2"),
        ('{"a": {"one": {"X": [1, }}}', "space 'a', dataset 'one': not valid JSON at position 24"),
        (b'{"a": {"one": {}}, "\xff": {}}', "not UTF-8 text at byte 20"),
        (b'{"a": {"one": {"\xff": 1}}}', "space 'a', dataset 'one': not UTF-8 text at byte 16"),
    ],
)
def test_malformed_files(tmp_path, text, message):
    with pytest.raises(DataError, match=rf"d\.json: {message}"):
        list(iter_datasets(write(tmp_path, text), "a"))


def test_skipping_holds_next_to_nothing(tmp_path):
    table = {"X": [[i / 7.0, 0.5, 0.25] for i in range(2000)], "y": [[i / 3.0] for i in range(2000)]}
    path = write(tmp_path, json.dumps({"big": {str(i): table for i in range(200)}, "small": {"one": {}}}))
    size = path.stat().st_size
    tracemalloc.start()
    assert [name for name, _ in iter_datasets(path, "small")] == ["one"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000 < size / 10

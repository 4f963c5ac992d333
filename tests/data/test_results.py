import json

import numpy as np
import pytest

from dre_jax.data import Results, add_trace, lengths, read_results, write_results
from dre_jax.errors import DataError, DataWarning

NAN = float("nan")


def save(folder, value):
    (folder / "r.json").write_text(json.dumps(value))
    return folder / "r.json"


def one_run(trace):
    return {"s": {"d": {"test0": trace}}}


@pytest.mark.parametrize("name", ["r.json", "r.json.gz"])
def test_round_trip(tmp_path, name):
    results = Results(meta={"method": "DRE", "seed": 0, "trials": np.int64(2)})
    results = add_trace(results, "s", "d", "test0", [0.1, 0.1, 1])
    results = add_trace(results, "s", "d", "test1", np.array([0.2, 1 / 3]))
    results = add_trace(results, "s", "e", "test0", (0.0,))
    results = add_trace(results, "t", "d", "test0", np.float32([0.5, 1.0]))
    write_results(tmp_path / name, results)
    read = read_results(tmp_path / name)
    np.testing.assert_equal(read.traces, results.traces)
    assert read.meta == results.meta
    assert [run[:3] for run in read.runs()] == [run[:3] for run in results.runs()]
    assert lengths(read) == {1: 1, 2: 2, 3: 1}


def test_a_file_without_meta_is_hpobs_own_format(tmp_path):
    write_results(tmp_path / "r.json", add_trace(Results(), "s", "d", "test0", [0.5, 1.0]))
    assert json.loads((tmp_path / "r.json").read_text()) == one_run([0.5, 1.0])
    assert read_results(tmp_path / "r.json").meta == {}
    (tmp_path / "r.json").write_text("{}")
    assert lengths(read_results(tmp_path / "r.json")) == {}


def test_adding_refuses(tmp_path):
    results = add_trace(Results(), "s", "d", "test0", [0.5])
    with pytest.raises(DataError, match="space 's', dataset 'd', seed 'test0': a run must be added once"):
        add_trace(results, "s", "d", "test0", [0.5])
    with pytest.raises(DataError, match="a space must not be called '_meta'"):
        add_trace(results, "_meta", "d", "test0", [0.5])
    with pytest.raises(DataError, match="a space must not be called '_meta'"):
        write_results(tmp_path / "r.json", Results({"_meta": {"d": {"test0": np.array([0.5])}}}))
    with pytest.raises(DataError, match=r"must be a list of at least one incumbent, but has shape \(1, 2\)"):
        add_trace(results, "s", "d", "test1", [[0.5, 0.5]])
    with pytest.raises(DataError, match="space 's', dataset 'd', seed 'test1': incumbents must not decrease"):
        add_trace(results, "s", "d", "test1", [0.5, 0.4])


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ([0.5, NAN], "incumbents must be finite, but entry 1 is nan"),
        ([0.5, 1.1], r"incumbents must lie in \[0, 1\], but entry 1 is 1.1"),
        ([-0.1, 0.5], r"incumbents must lie in \[0, 1\], but entry 0 is -0.1"),
        ([0.5, 0.6, 0.4], "incumbents must not decrease, but entry 2 is 0.4 after 0.6"),
        ([], r"a run must be a list of at least one incumbent"),
    ],
)
def test_incumbents_that_cannot_be(tmp_path, trace, message):
    path = save(tmp_path, one_run(trace))
    before = path.read_bytes()
    results = Results({"s": {"d": {"test0": np.array(trace)}}})
    for call in (lambda: read_results(path), lambda: write_results(path, results)):
        with pytest.raises(DataError, match=rf"r\.json: space 's', dataset 'd', seed 'test0': {message}"):
            call()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], r": results must be .*, but got list"),
        ({"s": 1}, ": space 's': results must be .*, but got int"),
        ({"s": {"d": [0.5]}}, ": space 's', dataset 'd': results must be .*, but got list"),
        ({"_meta": 1}, ": _meta: .*, but got int"),
        (one_run(0.5), ": space 's', dataset 'd', seed 'test0': a run must be a list .*, but got 0.5"),
        (one_run([0.5, "1"]), ": space 's', dataset 'd', seed 'test0': incumbents must be numbers, but entry 1 is '1'"),
        (one_run([0.5, [1]]), r": .*seed 'test0': incumbents must be numbers, but entry 1 is \[1\]"),
        (one_run([0.5, True]), ": .*seed 'test0': incumbents must be numbers, but entry 1 is True"),
    ],
)
def test_other_layouts(tmp_path, value, message):
    with pytest.raises(DataError, match=rf"r\.json{message}"):
        read_results(save(tmp_path, value))


def test_defects_of_published_files(tmp_path):
    rounded, fallen = [-1e-10, 1 + 1e-10], [0.5, 0.25, 0.75]
    np.testing.assert_array_equal(read_results(save(tmp_path, one_run(rounded))).traces["s"]["d"]["test0"], rounded)
    with pytest.warns(DataWarning, match=r"seed 'test0': .*\(1 such runs"):
        results = read_results(save(tmp_path, one_run(fallen)))
    np.testing.assert_array_equal(results.traces["s"]["d"]["test0"], fallen)
    with pytest.raises(DataError, match=r"incumbents must not decrease, but entry 1 is 0.25 after 0.5"):
        write_results(tmp_path / "new.json", results)
    constant = {"s": {"d": {"test0": [NAN, NAN], "test1": [0.5, 0.5]}, "e": {"test0": [NAN]}}}
    with pytest.warns(DataWarning, match=r"NaN throughout and left out \(2 such runs in this file\)"):
        results = read_results(save(tmp_path, constant))
    assert [run[:3] for run in results.runs()] == [("s", "d", "test1")]

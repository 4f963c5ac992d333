"""Which method a file is of, and what is said about what the files hold."""

import gzip
import warnings

import pytest

from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.report import compare
from dre_jax.report.result_files import read_files, warn_of_differences


def warnings_of(files):
    """What is warned of, as a list."""
    read = read_files(files)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_differences(read, compare({name: file.results for name, file in read.items()}))
    assert all(warning.category is DataWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def test_names(result_file, tmp_path):
    one, two = result_file("one"), result_file("two", meta={"method": "dre"})
    packed = tmp_path / "three.json.gz"
    packed.write_bytes(gzip.compress(one.read_bytes()))
    assert list(read_files([one, two, packed])) == ["one", "dre", "three"]
    assert list(read_files([str(two), f"mine={one}"])) == ["dre", "mine"]
    assert list(read_files({"b": one, "a": two})) == ["b", "a"]
    assert read_files({"b": one, "a": two})["a"].path == two
    files = [result_file(name, meta={"method": "dre"}) for name in ("epochs-100", "epochs-1000")]
    other = result_file("other", meta={"method": "random"})
    assert list(read_files([*files, other])) == ["epochs-100", "epochs-1000", "random"]
    # Also where another file has the name for its own, or its own is of no use.
    assert list(read_files([result_file("dre"), files[0]]))[1] == "epochs-100"
    for useless in (None, 3, "", "  "):
        assert list(read_files([result_file("one", meta={"method": useless})])) == ["one"]


def test_missing_files_and_equal_names(result_file, tmp_path):
    with pytest.raises(ConfigError, match="at least one result file"):
        read_files([])
    with pytest.raises(ConfigError, match="NAME=FILE"):
        read_files([f"={result_file('a')}"])
    with pytest.raises(DataError, match=r"nowhere\.json"):
        read_files([tmp_path / "nowhere.json"])
    with pytest.raises(DataError, match=r"none\.json: results must hold at least one run"):
        read_files([result_file("none", tasks=())])
    one, same = result_file("one"), result_file("lr=0.1/one")
    for argument in ([one, one], [one, same], [f"a={one}", f"a={same}"], [f"one={same}", one]):
        with pytest.raises(ConfigError, match="different names"):
            read_files(argument)
    assert list(read_files([str(same), f"b={one}"])) == ["one", "b"]  # an equals sign in a path is no name's


V3 = {"mode": "v3", "split": "test", "trials": 6}
ONE, OTHER = {"protocol": V3}, {"protocol": V3 | {"split": "validation"}}
LEFT = "runs left out, as not every method has them"
X0, Y1 = ("s", "x", "test0"), ("t", "y", "test1")


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        ({"a": {}, "b": {"seed": 1}}, []),
        ({"a": {"meta": {"method": "a"}}, "b": {"meta": ONE}}, []),
        ({"a": {"lacks": [X0]}, "b": {"lacks": [X0, Y1]}, "c": {}}, [f"2 of 12 {LEFT}: a lacks 1, b lacks 2"]),
        (
            {"a": {"n_trials": 9}, "b": {"n_trials": 4}, "c": {"n_trials": 5}},
            ["all runs cut to 4 trials, the shortest: a has 9, c has 5"],
        ),
        (
            {"a": {"meta": ONE}, "b": {"meta": OTHER}, "c": {}, "d": {"meta": {"protocol": V3 | {"trials": 10}}}},
            ["the methods follow different protocols: a, d: mode v3, split test; b: mode v3, split validation"],
        ),
        ({"a": {"meta": ONE}, "b": {"meta": {"protocol": V3 | {"method": "host method"}}}}, []),
    ],
)
def test_warnings_of_differences(result_file, files, lines):
    assert warnings_of([result_file(name, **argument) for name, argument in files.items()]) == lines

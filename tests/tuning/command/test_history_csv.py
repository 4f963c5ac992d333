"""Histories as CSV."""

import pytest

from dre_jax import Bool, Categorical, DataError, Float, Int, Optimizer, Space, Trial
from dre_jax.tuning.command.history_csv import add_history, read_history
from tests.error_messages import raises_line

SPACE = Space(
    {
        "lr": Float(1e-6, 1.0, log=True),
        "kernel": Categorical(["rbf", "poly"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "bias": Bool(),
    }
)


@pytest.fixture
def read(tmp_path):
    def read(text, space=SPACE):
        path = tmp_path / "history.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_history(path, space)

    return read


RBF = {"lr": 0.5, "kernel": "rbf", "bias": True}
POLY = {"lr": 0.25, "kernel": "poly", "degree": 3, "bias": False}


class TestRows:
    def test_by_hand(self, read):
        text = (
            "bias,value,lr,degree,kernel,state\n"
            "true,0.75,0.5,,rbf,\n"
            "false,,2.5e-1,3,poly,running\n"
            "\n"
            "false,nan,0.25,3,poly,\n"
            " true , , 0.5 ,, rbf , failed \n"
            "true,-inf,0.5,,rbf,complete\n"
        )
        rows = (RBF, "complete", 0.75), (POLY,), (POLY, "failed"), (RBF, "failed"), (RBF, "complete", float("-inf"))
        expected = [Trial(number, *row) for number, row in enumerate(rows)]
        assert read(text) == expected
        for same in (text.replace("\n", "\r\n"), "\ufeff" + text, text.rstrip("\n"), text.replace("2.5e-1", '"0.25"')):
            assert read(same) == expected

    def test_choices_of_all_kinds(self, read):
        space = Space({"c": Categorical(["a", "", 1, "2", 2, 0.5, True, None, "true", "x,y", "ü"])})
        written = ['"""a"""', "a", '""""""', "1", '"""2"""', "2", "2.0", "0.5", "true", '"""true"""', "null", '"x,y"']
        for text, choice in zip(written, ["a", "a", "", 1, "2", 2, 2, 0.5, True, "true", None, "x,y"], strict=True):
            (row,) = read(f"c,value\n{text},1\n", space)
            assert type(row.params["c"]) is type(choice), text
            assert row.params["c"] == choice, text

    def test_none_may_be_an_empty_cell_where_it_is_active(self, read):
        none = Categorical([None, "l2"])
        space = Space({"p": none, "q": Categorical([None, "a"], when={"p": "l2"}), "x": Float(0.0, 1.0)})
        rows = read("p,q,x,value\n,,0.5,1\nl2,,0.5,1\nl2,a,0.5,1\n", space)
        expected = [{"p": None, "x": 0.5}, {"p": "l2", "q": None, "x": 0.5}, {"p": "l2", "q": "a", "x": 0.5}]
        assert [row.params for row in rows] == expected
        with pytest.raises(DataError, match="'q' is active only for"):
            read("p,q,x,value\n,a,0.5,1\n", space)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "'value' is missing"),
        ("lr,kernel,bias\n", "'value' is missing"),
        ("lr,kernel,bias,value,gamma\n", "got 'gamma'"),
        ("lr,lr,kernel,bias,value\n", "'lr' occurs 2 times"),
        ("value\n1\n", "line 2: a configuration must give every active hyperparameter, but 'lr' is missing"),
        ("lr,kernel,bias,value\n0.5,rbf,true,1\n0.5,rbf,1\n", "line 3: a row must have 4 cells, but has 3"),
        ("lr,kernel,bias,value\n2,rbf,true,1\n", "line 2: lr must be a number in"),
        ("lr,kernel,bias,value\n0.5,rbf,true,good\n", "line 2: value must be a number, but got 'good'"),
        ("lr,kernel,bias,value,state\n0.5,rbf,true,1,done\n", "line 2: state must be running"),
        ("lr,kernel,bias,value,state\n0.5,rbf,true,1,failed\n", "line 2: a complete trial must have a value"),
        ("lr,kernel,bias,value,state\n0.5,rbf,true,,complete\n", "line 2: a complete trial must have a value"),
        ('lr,kernel,bias,value\n0.5,"rbf,true,1\n', "line 2: not readable as CSV"),
        (b"\xff\xfe", "not UTF-8 text at byte 0"),
        (b"lr,kernel,bias,value\n0.5,rbf,true,1\0\n", "line 2"),
        ("lr,kernel,bias,value\n" + 200_000 * "1" + ",rbf,true,1\n", "not readable as CSV: field larger"),
    ],
)
def test_refused(read, text, rule):
    with raises_line(DataError, rule, "history.csv"):
        read(text)


@pytest.mark.parametrize("name", ["value", "state"])
def test_reserved_names(read, name):
    with raises_line(DataError, f"must not be called '{name}'"):
        read("value\n1\n", Space({name: Float(0.0, 1.0)}))


def test_into_a_study(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("lr,kernel,bias,value\n0.5,rbf,true,2\n0.25,rbf,true,\n0.125,rbf,true,nan\n")
    optimizer = Optimizer(SPACE)
    add_history(optimizer, path)
    assert [(t.number, t.state, t.value) for t in optimizer.trials] == [
        (0, "complete", 2.0), (1, "running", None), (2, "failed", None),
    ]  # fmt: skip
    path.write_text("lr,kernel,bias,value\n0.5,rbf,true,2\n9,rbf,true,1\n")
    with pytest.raises(DataError):
        add_history(optimizer, path)
    assert len(optimizer.trials) == 3

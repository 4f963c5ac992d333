"""Spaces of tables, tasks of YAHPO, regret and its table, and a comparison that resumes."""

import json

import numpy as np
import pandas as pd
import pytest

from dre_jax.data import SearchSpace, Task
from dre_jax.data.hpob import write_dataset
from dre_jax.errors import ConfigError
from dre_jax.tuning import Categorical, Float, Int

CONFIG = {
    "hyperparameters": [
        {"name": "task_id", "type": "categorical", "choices": ["7", "8", "9"]},
        {"name": "booster", "type": "categorical", "choices": ["gblinear", "gbtree"]},
        {"name": "nrounds", "type": "uniform_int", "log": True, "lower": 7, "upper": 2981},
        {"name": "eta", "type": "uniform_float", "log": True, "lower": 0.001, "upper": 1.0},
        {"name": "trainsize", "type": "uniform_float", "log": False, "lower": 0.03, "upper": 1.0},
    ],
    "conditions": [{"child": "eta", "parent": "booster", "type": "EQ", "value": "gbtree"}],
}
ENCODING = {
    "task_id": {"#na#": 0, "7": 1, "8": 2, "9": 3},
    "booster": {"#na#": 0, "gblinear": 1, "gbtree": 2},
    "num.impute.selected.cpo": {"#na#": 0},
}


class Session:
    """Returns the error 0.1 times the number of the task, and keeps its inputs."""

    def run(self, names, inputs):
        self.inputs = inputs
        return [np.stack([0.1 * inputs["x_cat"][:, 0], np.zeros(len(inputs["x_cat"]))], axis=1)]


def yahpo_space(part, name: str = "iaml_xgboost"):
    module = part("rivals.yahpo")
    return module.YahpoSpace(name, CONFIG["hyperparameters"], CONFIG["conditions"], ENCODING, Session())


def test_one_hot_columns_of_a_table_are_a_choice(part):
    """Six columns: a number, three levels, a flag, and one value throughout; back from configurations to rows."""
    script = part("rivals.table_spaces")
    rows = np.array([[0.2, 1, 0, 0, 1, 0.5], [0.9, 0, 1, 0, 0, 0.5], [0.4, 0, 0, 1, 1, 0.5], [0.4, 0, 0, 1, 0, 0.5]])
    space = script.table_space([rows[:2], rows[2:]])
    assert dict(space) == {"x0": Float(0.2, 0.9), "x1": Categorical(["1", "2", "3"]), "x4": Int(0, 1)}
    configurations = script.configurations(space, rows)
    assert configurations[2] == {"x0": 0.4, "x1": "3", "x4": 1}
    encoded = space.encode_rows(configurations)
    np.testing.assert_allclose(encoded[:, 0], (rows[:, 0] - 0.2) / 0.7)
    np.testing.assert_array_equal(encoded[:, 1:5], rows[:, 1:5])


def test_a_live_space_has_conditions_logarithms_and_no_budgets(part):
    space = yahpo_space(part).space
    assert list(space) == ["booster", "nrounds", "eta"]
    assert space["nrounds"] == Int(7, 2981, log=True)
    assert space["eta"] == Float(0.001, 1.0, log=True, when={"booster": ["gbtree"]})


def test_inputs_of_a_network_follow_its_layout(part):
    """Levels by their numbers, absent numbers 0, the largest budget, and the error turned."""
    live = yahpo_space(part)
    result = live.evaluate(
        "8", [{"booster": "gblinear", "nrounds": 50}, {"booster": "gbtree", "nrounds": 9, "eta": 0.5}]
    )
    np.testing.assert_allclose(result, [-0.2, -0.2])
    assert live.session.inputs["x_cat"].dtype == np.int32
    np.testing.assert_array_equal(live.session.inputs["x_cat"], [[2, 1], [2, 2]])
    numbers = live.session.inputs["x_cont"]
    assert (numbers.dtype, numbers.shape) == (np.float32, (2, 13))
    assert (numbers[0, 0], numbers[1, 0], numbers[0, 1], numbers[1, 1], numbers[0, 12]) == (50, 9, 0, 0.5, 1)
    assert np.count_nonzero(numbers) == 5


def test_past_studies_are_of_other_tasks(part):
    """Of three tasks, one that is searched leaves two for the past; two leave one, so each has the past of the rest."""
    script, live = part("rivals.live_tasks"), yahpo_space(part)
    assert sorted(live.tasks) == ["7", "8", "9"]
    assert script.split_tasks(live, 1, 2) == [([live.tasks[0]], list(live.tasks[1:]))]
    groups = script.split_tasks(live, 2, 2)
    assert [names for names, _ in groups] == [[live.tasks[0]], [live.tasks[1]]]
    assert all(sorted([*names, *others]) == ["7", "8", "9"] for names, others in groups)


def test_pasts_are_reversed_or_of_another_space(part, monkeypatch):
    """The same configurations: values of other tasks, those negated, and those of another space's task."""
    script, live = part("rivals.live_tasks"), yahpo_space(part)
    other = yahpo_space(part, "rbv2_xgboost")
    monkeypatch.setattr(script, "load_yahpo", lambda folder, name: live if name == live.name else other)
    families = [
        script.LiveFamily(live.name, None, 1, 2, 5, past, other.name) for past in ("own", "reversed", "unrelated")
    ]
    own, turned, unrelated = ([task] for family in families for task in family.tasks(0, 0))
    numbers = {name: 0.1 * ENCODING["task_id"][name] for name in live.tasks}
    for (task,), sign in ((own, -1.0), (turned, 1.0)):
        assert sorted(task.problem.past) == sorted(live.tasks[1:])
        for name, trials in task.problem.past.items():
            assert [trial.value for trial in trials] == pytest.approx([sign * numbers[name]] * 5)
    assert own[0].design == turned[0].design
    [first, *_] = own[0].problem.past
    params = [[trial.params for trial in task[0].problem.past[first]] for task in (own, turned, unrelated)]
    assert params[0] == params[1] == params[2]
    assert unrelated[0].problem.past[first][0].value > 0.0  # accuracy, which is not turned


def test_a_missing_network_is_an_error(part, tmp_path):
    script = part("rivals.yahpo")
    with pytest.raises(ConfigError, match=r"rbv2_rpart, .*'some'"):
        script.load_yahpo(tmp_path, "some")
    (tmp_path / "lcbench").mkdir()
    (tmp_path / "lcbench" / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1")
    with pytest.raises(ConfigError, match=r"network of each space"):
        script.load_yahpo(tmp_path, "lcbench")


def test_the_table_has_means_paired_differences_and_medians(part):
    """Two tasks and two designs by hand; a value that only one rival found is the best known."""
    script, search, study = part("rivals.outcomes"), part("rivals.search").Search, part("rivals.jobs").Study
    found = {
        study("gp-mixture", "f", "a", 0): search([0.0, 0.5, 0.6, 0.9], 2, 1.0, [0.2, 0.4]),
        study("gp-mixture", "f", "a", 1): search([0.0, 0.0, 0.8, 0.7], 2, 1.0, [0.2, 0.4]),
        study("gp-mixture", "f", "b", 0): search([2.0, 0.0, 1.0, 3.0], 2, 1.0, [0.2, 0.4]),
        study("random", "f", "a", 0): search([0.0, 0.5, 0.1, 1.0], 2, 1.0, [0.0, 0.1]),
        study("ax", "f", "a", 0): search([0.0, 0.5, 0.5, np.nan], 2, 3.0, [9.0]),
    }
    samples = {("f", "a"): np.array([0.0, 0.5, 0.9]), ("f", "b"): np.array([1.0, 0.0, 2.0])}
    frame = script.frame_of(found, samples, [1, 2], 2)
    np.testing.assert_allclose(frame[1], [0.8, 0.4, 0.5, 1.0, 1.0])  # (1 - value) / 0.5, and (3 - value) / 2
    np.testing.assert_allclose(frame[2], [0.2, 0.4, 0.0, 0.0, np.nan], atol=1e-12)
    text = script.table(frame, found)
    lines = part("rivals.registry").RIVALS["gp-mixture"].n_lines()
    assert (
        "| dre_jax, `gp-mixture` | no | 2 | 0.550 ± 0.050 | 0.150 ± 0.150 |  |  | 0.30 | 1.0 | " + f"{lines} |" in text
    )
    assert "| Ax, BOTL | yes | 1 | 1.000 ± 0.000 | – | +0.400 ± 0.000 | – | 9.00 | 3.0 |" in text
    assert "| Random search | no | 1 | 1.000 ± 0.000 | 0.000 ± 0.000 | +0.400 ± 0.000 | -0.300 ± 0.000 | 0.05 |" in text


def test_curves_are_means_over_tasks_of_means_over_designs(part):
    """By hand, of the regrets above; a rival that time did not suffice for has none."""
    frame = pd.DataFrame(
        {1: [0.8, 0.4, 0.5, 1.0, 1.0], 2: [0.2, 0.4, 0.0, 0.0, np.nan]},
        pd.MultiIndex.from_tuples(
            [
                ("gp", "f", "a", 0),
                ("gp", "f", "a", 1),
                ("gp", "f", "b", 0),
                ("random", "f", "a", 0),
                ("ax", "f", "a", 0),
            ],
            names=["rival", "family", "task", "seed"],
        ),
    )
    curves = part("rivals.outcomes").mean_curves(frame)
    assert curves == {
        "f": {
            "gp": {"regret": [0.55, 0.15], "error": [0.05, 0.15]},
            "random": {"regret": [1.0, 0.0], "error": [0.0, 0.0]},
        }
    }


@pytest.mark.multiprocess
@pytest.mark.slow
def test_a_comparison_resumes(part, tmp_path, capsys):
    rng = np.random.default_rng(0)
    tasks = [Task(f"t{i}", rng.random((20, 2)).astype(np.float32), rng.random(20)) for i in range(2)]
    write_dataset(tmp_path / "data", [SearchSpace("some", {"t0": tasks[0]}, {"t1": tasks[1]}, {})])
    script, out = part("compare_rivals"), tmp_path / "out.jsonl"
    arguments = ["--data", str(tmp_path / "data"), "--out", str(out), "--rivals", "random", "tpe-best", "--trials", "3"]
    assert script.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "| Random search | no | 2 |" in printed
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(row[:4] for row in rows) == [
        [r, "some", f"t{i}", 0] for r in ("random", "tpe-best") for i in range(2)
    ]
    values = {(row[0], row[2]): row[4] for row in rows}
    assert all(values["random", t.name][:2] == values["tpe-best", t.name][:2] for t in tasks)
    curves = tmp_path / "curves.json"
    assert script.main([*arguments, "--together", "so", "--by-family", "--curves", str(curves)]) == 0
    printed_again = capsys.readouterr().out
    assert printed_again.startswith(printed[printed.index("\nTasks") :])  # no search is started
    assert "\nso.\n" in printed_again
    content = json.loads(curves.read_text())
    assert content["tasks"] == {"so": 2}
    assert [len(curve["regret"]) for curve in content["families"]["so"].values()] == [4, 4]
    assert len(out.read_text().splitlines()) == 4

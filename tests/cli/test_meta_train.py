"""``dre-jax meta-train`` and ``info`` for methods that are more than a ranking ensemble, or none."""

import json
import math
import re
from functools import partial

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from dre_jax.data import bundled
from dre_jax.tuning import Surrogate, read_space

QUICK = ["--set=training.steps=4", "--set=common.rows=0", "--set=length_scales.steps=5"]
QUICK += ["--set=prior.members=1", "--set=prior.trend=8", "--set=prior.layers=4"]


@pytest.mark.slow
def test_the_recommended_method(cli, data, tmp_path):
    meta_train = partial(cli, "meta-train", "--data", data, "--space", "svm", "--out", tmp_path / "root")
    folder = tmp_path / "root" / "svm"
    status, out, error = meta_train("--steps", 4, *QUICK)
    assert status == 0, error
    count = len(bundled.load("svm").train)
    losses = r"training loss [\d.]+, validation loss [\d.]+"
    line = rf"svm: hedged-prior fitted to {count} tasks, 4 steps of dre, {losses}, saved in "
    chosen = r"svm: training 4 steps, as given; transfer probability 0.30\n"
    assert re.fullmatch(line + re.escape(f"{folder}\n") + chosen, out)
    assert "meta-train svm: 4/4 steps" in error
    assert "meta-train svm: fitting hedged-prior\n" in error
    assert json.loads((folder / "metadata.json").read_text())["method"] == "hedged-prior"
    assert meta_train("--steps", 4, *QUICK, "--quiet") == (0, out, "")  # all is there
    # The folder is a surrogate of the space that the data describe.
    surrogate = Surrogate.load(folder)
    assert surrogate.space["degree"].high == 5
    assert len(surrogate.start) == 2
    status, out, _ = cli("info", folder)
    facts = dict(line.split("  ", 1) for line in out.splitlines())
    facts = {name: text.strip() for name, text in facts.items()}
    assert (status, facts["method"], facts["search space"]) == (0, "hedged-prior", "svm, 14 columns")
    assert facts["training.steps"] == "4"
    assert facts["training"] == "4 steps, as given; transfer probability 0.30"
    assert facts["companion"] == "dre, 4 steps"
    assert facts["training data"].startswith(f"{count} tasks, fingerprint ")
    assert "log float: C" in facts["columns"]
    assert "level: kernel.ohe._" in facts["columns"]


@pytest.mark.slow
def test_past_studies(cli, quiet_optuna, tmp_path):
    space, out, studies = tmp_path / "space.json", tmp_path / "surrogate", tmp_path / "studies.log"
    storage = JournalStorage(JournalFileBackend(str(studies)))
    for i, low in enumerate((0.0, 0.1, 0.2, 7.0)):  # three that fit, and one that does not
        sampler = optuna.samplers.RandomSampler(seed=i)
        study = optuna.create_study(study_name=f"week {i}", storage=storage, sampler=sampler)
        study.optimize(lambda trial, low=low: trial.suggest_float("x", low, low + 0.5) ** 2, n_trials=5)
    space.write_text('{"x": {"type": "float", "low": 0, "high": 1}}')
    command = ["meta-train", "--from-optuna", studies, "--space-file", space, "--out", out, "--method", "gcp"]
    status, output, error = cli(*command, "--set", "prior.steps=2", "--quiet")
    assert (status, output) == (0, f"past: gcp fitted to 3 tasks, saved in {out}\n")
    lines = error.splitlines()
    assert [line.partition(": ")[2].partition(",")[0] for line in lines] == [
        "left out: week 3: x must be a number in [0.0",
        "left out: week 3: a task must have at least 3 different configurations with a value",
    ]
    surrogate = Surrogate.load(out)
    assert surrogate.space == read_space(space)
    assert len(surrogate.start) == 2
    assert min(params["x"] for params in surrogate.start) < 0.2
    space.write_text(space.read_text().replace("x", "y"))
    command[command.index(out)] = tmp_path / "other"
    status, _, error = cli(*command)
    rule = f"dre-jax: at least one past task must fit {space}, but none does"
    assert (status, error.splitlines()[-1]) == (2, rule)
    assert not (tmp_path / "other").exists()


def test_features_are_columns_of_a_table(cli, refused, tmp_path, registries):
    space, out, table = tmp_path / "space.json", tmp_path / "surrogate", tmp_path / "past.csv"
    space.write_text('{"x": {"type": "float", "low": 0, "high": 1}}')
    sizes = {"a": 100, "b": 1000, "c": 10000}  # the best x is 0.2, 0.3 and 0.4
    rows = [
        ("task", "rows", "x", "value"),
        *((name, n, x / 20, abs(x / 20 - math.log10(n) / 10)) for name, n in sizes.items() for x in range(21)),
    ]
    table.write_text("\n".join(",".join(map(str, row)) for row in rows))
    command = ["meta-train", "--from-csv", table, "--space-file", space, "--direction", "minimize", "--quiet"]
    method = "tests.known_methods:BestLine"
    status, _, error = cli(*command, "--features", "rows", "--method", method, "--out", out)
    assert (status, error) == (0, "")
    surrogate = Surrogate.load(out)
    assert surrogate.features.ranges == {"rows": (100.0, 10000.0)}
    assert surrogate.scaling.slopes[0].slope == pytest.approx(0.1, abs=1e-4)
    assert "has no 'tokens'" in refused(*command, "--features", "rows,tokens", "--method", method, "--out", out)
    unaware = ["--method", "tests.known_methods:TaskMeans", "--out", tmp_path / "unaware"]
    error = cli(*command, "--features", "rows", *unaware)[2]
    assert (
        error == "dre-jax: features of the task are not used, as tests.known_methods:TaskMeans does not use any: rows\n"
    )
    assert "--features needs --from-optuna or --from-csv" in refused(
        "meta-train", "--from-surrogate", out, "--space-file", space, "--features", "rows", "--out", out
    )


@pytest.mark.slow
def test_past_trials_in_a_table(cli, refused, tmp_path):
    space, out, table = tmp_path / "space.json", tmp_path / "surrogate", tmp_path / "past.csv"
    space.write_text('{"x": {"type": "float", "low": 0, "high": 1}}')
    best = {"a": 0.2, "b": 0.3, "c": 0.4}
    trials = [(name, x / 10, (x / 10 - low) ** 2) for name, low in best.items() for x in range(10)]
    rows = [("machine", "x", "seconds"), *trials, ("c", 7, 0)]
    table.write_text("\n".join(",".join(map(str, row)) for row in rows))
    command = ["meta-train", "--from-csv", table, "--space-file", space, "--out", out, "--method", "gcp"]
    command += ["--set", "prior.steps=2", "--quiet", "--task", "machine", "--value", "seconds"]
    assert "direction must be one of minimize, maximize, but got 'up'" in refused(*command, "--direction", "up")
    assert "has no 'task'" in refused(*command[:7], "--direction", "minimize")
    assert not out.exists()
    status, output, error = cli(*command, "--direction", "minimize")
    assert (status, output) == (0, f"past: gcp fitted to 3 tasks, saved in {out}\n")
    assert error == "dre-jax: left out: c: x must be a number in [0.0, 1.0], but got 7.0\n"
    surrogate = Surrogate.load(out)
    assert (surrogate.direction, surrogate.metric) == ("minimize", "seconds")
    assert (surrogate.studies.names, surrogate.studies.tasks.where.sum()) == (["a", "b", "c"], 30)
    assert re.search("^direction +minimize seconds$", cli("info", out)[1], re.MULTILINE)
    suggest = "suggest", "--space", space, "--checkpoint", out, "--direction", "maximize"
    assert "learned to minimize seconds, and the study is to maximize" in refused(*suggest)
    assert 0.2 <= surrogate.start[0]["x"] <= 0.4  # where every task's least value is near
    space.write_text('{"x": {"type": "float", "low": 0, "high": 2}, "y": {"type": "float", "low": 0, "high": 1}}')
    command[1:3], command[6] = ["--from-surrogate", out], tmp_path / "wider"
    status, output, error = cli(*command[:-4])
    assert (status, output) == (0, f"past: gcp fitted to 3 tasks, saved in {tmp_path / 'wider'}\n")
    assert error == "dre-jax: 3 of 3 past tasks have no 'y'\n"
    wider = Surrogate.load(tmp_path / "wider")
    assert (list(wider.space), wider.direction, wider.metric) == (["x", "y"], "minimize", "seconds")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ([], "one of --data, --from-optuna, --from-csv, --from-surrogate, --from, but got none"),
        (["--data", "a", "--from-optuna", "b"], "but got --data and --from-optuna"),
        (["--data", "a", "--space-file", "b"], "--space-file needs --from-optuna, --from-csv,"),
        (["--data", "a", "--task", "b"], "--task needs --from-csv, but got --data"),
        (["--from-optuna", "b"], "--space-file, but got none"),
        (["--from-csv", "b", "--space-file", "c"], "--from-csv takes --direction, but got none"),
        (["--from-optuna", "b", "--space-file", "c", "--space", "svm"], "but got --space"),
        (["--from-optuna", "b", "--space-file", "c"], "c cannot be read"),
    ],
)
def test_where_past_tasks_come_from(refused, tmp_path, options, named):
    assert named in refused("meta-train", "--out", tmp_path / "root", *options)
    assert not (tmp_path / "root").exists()

"""Tables whose tasks have features: what is read, the methods against NumPy, and a comparison that resumes."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning import Categorical, Float, Surrogate
from tests.known_methods import BestLine

SIZES = (1e6, 1e7, 1e8, 1e9, 1e10, 1e11)
RATES = 10.0 ** np.linspace(-5.0, 0.0, 21)
WIDTHS = (16.0, 32.0, 64.0)


def best_rate(size):
    return 30.0 * size**-0.5


def trainings():
    """Each task has the same configurations, and its least loss at the rate of a law and at a width of 32."""
    return pd.DataFrame(
        {"model": f"m{size:g}", "N": size, "rate": rate, "width": width, "loss": loss(size, rate, width)}
        for size in SIZES
        for rate, width in itertools.product(RATES, WIDTHS)
    )


def loss(size, rate, width):
    return 2.0 + abs(np.log10(rate / best_rate(size))) + 0.1 * abs(np.log2(width / 32.0))


@pytest.fixture
def tables(part):
    def tables_of(frame, path):
        frame.to_csv(path, index=False)
        script = part("rivals.scale_tables")
        columns = script.Columns(["model"], ["N"], ["rate", "width"], ["N", "rate", "width"], "loss", "minimize")
        return script.read_tables(path, columns)

    return tables_of


@pytest.mark.parametrize(
    ("expression", "value"), [("1.79*N**-0.713*D**0.307", 1.79 * 9.0**-0.713 * 2.0**0.307), ("-(N - D)/4", -1.75)]
)
def test_an_expression_has_the_value_that_python_gives(part, expression, value):
    assert part("rivals.formulas").evaluate(expression, {"N": 9.0, "D": 2.0}) == pytest.approx(value)


@pytest.mark.parametrize(
    "expression", ["abs(N)", "N.real", "M", "True", "N <", "N / 0", "(-N)**0.5", "9.0**9**9", "N if N else 1", "'N'"]
)
def test_an_expression_is_arithmetic_only(part, expression):
    with pytest.raises(ConfigError):
        part("rivals.formulas").evaluate(expression, {"N": 9.0})


def test_a_formula_is_of_every_hyperparameter(part):
    script = part("rivals.scale_tables")
    assert script.parse_formula(["b=N/2", "a = 3"], ["a", "b"]) == {"a": " 3", "b": "N/2"}
    for texts in (["a=3"], ["a=3", "b=4", "c=5"], ["a=3", "b=4", "b=5"]):
        with pytest.raises(DataError, match="one expression for each of a, b"):
            script.parse_formula(texts, ["a", "b"])


def test_a_table_has_the_best_trial_of_each_configuration(tables, tmp_path):
    frame = trainings()
    worse, diverged = frame.iloc[[3]].assign(loss=9.0), frame.iloc[[5]].assign(width=16.0, rate=0.5, loss=np.inf)
    read = tables(pd.concat([worse, frame, diverged]), tmp_path / "runs.csv")
    table = read.table("m1e+06")
    by_row = {(row["rate"], row["width"]): value for row, value in zip(table.rows, table.values, strict=True)}
    configurations = itertools.product(RATES, WIDTHS)
    assert by_row == pytest.approx({row: -loss(1e6, *row) for row in configurations})
    with pytest.raises(DataError, match="'N' is not"):
        tables(frame.assign(N=np.arange(len(frame)) + 1.0), tmp_path / "runs.csv")
    with pytest.raises(DataError, match="no column 'width'"):
        tables(frame.drop(columns="width"), tmp_path / "runs.csv")
    with pytest.raises(DataError, match="a number"):
        tables(frame.assign(width="wide"), tmp_path / "runs.csv")


def test_texts_are_choices_and_all_other_columns_hyperparameters(part, tmp_path):
    script, path = part("rivals.scale_tables"), tmp_path / "runs.csv"
    frame = trainings()
    frame.assign(width=frame["width"].map(dict(zip(WIDTHS, "snl", strict=True)))).to_csv(path, index=False)
    read = script.read_tables(path, script.Columns(["model"], ["N"], [], None, "loss", "minimize"))
    assert dict(read.space) == {"rate": Float(1e-5, 1.0, log=True), "width": Categorical(["l", "n", "s"])}
    assert read.log == ["N", "rate"]
    with pytest.raises(ConfigError, match="'width' is a choice"):
        part("compare_scales").formula_of(["rate=N", "width=N"], read)
    pd.read_csv(path).assign(width=None).to_csv(path, index=False)
    with pytest.raises(DataError, match="finite value of 'width'"):
        script.read_tables(path, script.Columns(["model"], ["N"], [], None, "loss", "minimize"))


def test_new_tasks_have_the_past_of_their_protocol(tables, tmp_path):
    read = tables(trainings(), tmp_path / "runs.csv")
    names = [f"m{size:g}" for size in SIZES]
    assert dict(read.splits("leave-one-out", "N", 99)) == {
        name: [other for other in names if other != name] for name in names
    }
    assert [*dict(read.splits("leave-one-out", "N", 2))] == [names[0], names[-1]]
    assert dict(read.splits("small-to-large", "N", 99)) == dict.fromkeys(names[-2:], names[:-2])
    assert dict(read.splits("small-to-large", "0 - N", 99)) == dict.fromkeys(names[:2][::-1], names[2:][::-1])
    past = read.past(names[:3], features=True)
    assert list(past.tasks) == names[:3]
    assert read.past(names[:3], features=False).features is None


def test_the_line_is_that_of_least_squares(part, tables, tmp_path):
    """In logarithms, a line through the mean of the best five rows of each task, at a size beyond them."""
    frame = trainings()
    frame["loss"] += np.random.default_rng(0).normal(size=len(frame)) * 0.3
    read = tables(frame, tmp_path / "runs.csv")
    past = [f"m{size:g}" for size in SIZES[:4]]
    target = part("rivals.scale_methods").line_target(read, past, "m1e+10")
    best = [frame[frame["model"] == name].nsmallest(5, "loss") for name in past]
    for name in ("rate", "width"):
        centres = [np.log10(rows[name]).mean() for rows in best]
        slope, intercept = np.polyfit(np.log10(SIZES[:4]), centres, 1)
        inside = np.clip(slope * 10.0 + intercept, *np.log10([frame[name].min(), frame[name].max()]))
        assert np.log10(target[name]) == pytest.approx(inside, abs=1e-5)


def test_rows_are_ordered_by_their_mean_regret(part, tables, tmp_path):
    read = tables(trainings(), tmp_path / "runs.csv")
    past = [f"m{size:g}" for size in SIZES[:3]]
    values = np.array([read.table(name).values for name in past])
    scale = values.max(axis=1) - np.median(values, axis=1)
    mean = ((values.max(axis=1)[:, None] - values) / scale[:, None]).mean(axis=0)
    order = part("rivals.scale_methods").average_order(read.table("m1e+10"), [read.table(name) for name in past])
    np.testing.assert_allclose(mean[order], np.sort(mean), atol=1e-12)


def test_random_search_has_its_expectation(part):
    """The mean over all pairs of rows, of which the first is the first suggestion."""
    table = part("rivals.problems").Table(None, [], np.array([0.0, 3.0, 1.0, 1.5, 2.0]))
    curve = part("compare_scales").random_curve(table)
    pairs = [[first, max(first, second)] for first, second in itertools.permutations(table.values, 2)]
    np.testing.assert_allclose(curve[:2], (3.0 - np.mean(pairs, axis=0)) / 1.5, rtol=1e-12)
    np.testing.assert_allclose(curve[4:], 0.0, atol=1e-12)


def test_the_tables_have_means_and_paired_differences(part, capsys):
    """Two tasks by hand: the errors are half of the difference between the tasks."""
    first, other = np.linspace(1.0, 0.0, 11), np.linspace(0.5, 0.0, 11)
    part("compare_scales").print_tables({"a": np.array([first, other]), "b": np.array([first, first])})
    text = capsys.readouterr().out
    assert "| a | 2 | 0.750 ± 0.250 | 0.675 ± 0.225 | 0.525 ± 0.175 | 0.375 ± 0.125 | 0.000 ± 0.000 |" in text
    assert "| b | 2 | 1.000 ± 0.000 |" in text
    assert "| b | 2 | +0.250 ± 0.250 | +0.225 ± 0.225 | +0.175 ± 0.175 | +0.125 ± 0.125 | +0.000 ± 0.000 |" in text


def test_a_task_whose_search_did_not_finish_is_in_no_mean(part, capsys):
    first, unfinished = np.linspace(1.0, 0.0, 11), np.full(11, np.nan)
    part("compare_scales").print_tables({"a": np.array([first, first]), "b": np.array([first, unfinished])})
    text = capsys.readouterr().out
    assert "| b | 1 | 1.000 ± 0.000 |" in text
    assert "| b | 1 | +0.000 ± 0.000 |" in text
    assert part("compare_scales").table({"b": np.array([unfinished])}).endswith("| b | 0 |" + " – |" * 5)


def test_the_tuner_knows_the_features_of_the_new_task(part, tables, tmp_path, registries, monkeypatch):
    """A method that suggests the line through the best of the past: the row nearest to the law at the new size."""
    methods = part("rivals.scale_methods")
    fit = Surrogate.fit
    monkeypatch.setattr(methods.Surrogate, "fit", lambda past, **options: fit(past, method=BestLine(), **options))
    frame = trainings()
    read = tables(frame[frame["width"] == 32.0].assign(width=frame["rate"]), tmp_path / "runs.csv")
    rival = methods.make_rival("features", read, "m1e+09", [f"m{size:g}" for size in SIZES[:3]], None, 0)
    assert rival.optimizer.features == {"N": 1e9}
    assert rival.ask()["rate"] == pytest.approx(RATES[np.abs(np.log10(RATES / best_rate(1e9))).argmin()])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["botorch", "baybe"])
def test_a_rival_searches_after_past_tasks(part, tables, tmp_path, method):
    """Its configurations differ; the process that knows the sizes begins within half a decade of the law."""
    pytest.importorskip(method)
    read, new = tables(trainings()[::2], tmp_path / "runs.csv"), "m1e+10"
    rival = part("rivals.scale_methods").make_rival(method, read, new, [f"m{size:g}" for size in SIZES[:4]], None, 0)
    table = read.table(new)
    left, rows = np.ones(len(table.rows), bool), []
    for _ in range(3):
        rows.append(table.nearest(rival.ask(), left))
        left[rows[-1]] = False
        rival.tell(table.rows[rows[-1]], table.values[rows[-1]])
    assert len(set(rows)) == 3
    if method == "botorch":
        assert abs(np.log10(table.rows[rows[0]]["rate"] / best_rate(1e10))) < 0.5


def test_a_comparison_resumes(part, tmp_path, capsys):
    script, path, out = part("compare_scales"), tmp_path / "runs.csv", tmp_path / "searches.jsonl"
    trainings().to_csv(path, index=False)
    arguments = ["--csv", str(path), "--out", str(out), "--task", "model", "--features", "N", "--value", "loss"]
    arguments += ["--parameters", "rate", "width", "--log", "N", "rate", "width", "--formula", "rate=30*N**-0.5"]
    arguments += ["width=32", "--methods", "average", "line", "formula", "tpe-best"]
    assert script.main(arguments) == 0
    searches, text = out.read_text(), capsys.readouterr().out
    assert len(searches.splitlines()) == 4 * (6 + 2)
    zero = " | 0.000 ± 0.000" * 5
    assert text.count(f"| published formula | 6{zero} |") == 1
    assert text.count(f"| published formula | 2{zero} |") == 1
    out.write_text("".join(searches.splitlines(keepends=True)[:-1]) + '["tpe-best", "small-to-la')
    assert script.main(arguments) == 0
    assert capsys.readouterr().out == text


def test_files_are_averaged_together(part, tmp_path, capsys):
    """Each task once; tasks of the same name would share their searches."""
    paths = [str(tmp_path / f"{name}.csv") for name in "ab"]
    for path, prefix in zip(paths, "ab", strict=True):
        trainings().assign(model=lambda frame, prefix=prefix: prefix + frame["model"]).to_csv(path, index=False)
    arguments = ["--task", "model", "--features", "N", "--value", "loss", "--methods", "line", "--csv", *paths]
    assert part("compare_scales").main([*arguments, "--out", str(tmp_path / "searches.jsonl")]) == 0
    text = capsys.readouterr().out
    assert "best of the past tasks | 12 |" in text
    assert "best of the past tasks | 4 |" in text
    with pytest.raises(DataError, match="different names"):
        part("compare_scales").main([*arguments, paths[0], "--out", str(tmp_path / "searches.jsonl")])

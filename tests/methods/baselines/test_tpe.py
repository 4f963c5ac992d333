"""TPE, against Optuna's own sampler on the same trials."""

import numpy as np
import pytest

optuna = pytest.importorskip("optuna", reason="the extra optuna is not installed")

from dre_jax.methods.baselines.tpe import TPE, MultivariateTPE  # noqa: E402

pytestmark = pytest.mark.usefixtures("quiet_optuna")
COLUMNS = 3


@pytest.fixture
def trials():
    rng = np.random.default_rng(4)
    x = rng.random((30, COLUMNS))
    return x, -np.sum((x - 0.3) ** 2, axis=1) + 0.01 * rng.normal(size=30)


def own(x, y, *, multivariate, monkeypatch):
    """What Optuna suggests after the trials, the points that it drew, and its values of them, by column."""
    calls = []
    whole = optuna.samplers.TPESampler._compute_acquisition_func

    def note(self, samples, *estimators):
        values = whole(self, samples, *estimators)
        calls.append((np.stack(list(samples.values()), axis=1), values))
        return values

    with monkeypatch.context() as patch:
        patch.setattr(optuna.samplers.TPESampler, "_compute_acquisition_func", note)
        sampler = optuna.samplers.TPESampler(seed=7, multivariate=multivariate, n_ei_candidates=50)
        study = optuna.create_study(direction="minimize", sampler=sampler)
        columns = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in "abc"[: x.shape[1]]}
        for row, response in zip(x, y, strict=True):
            params = dict(zip(columns, map(float, row), strict=True))
            study.add_trial(optuna.trial.create_trial(params=params, distributions=columns, value=-response))
        suggested = list(study.ask(columns).params.values())
    return np.array(suggested), calls


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_joint_densities_are_optunas(trials, monkeypatch):
    x, y = trials
    suggested, [(points, values)] = own(x, y, multivariate=True, monkeypatch=monkeypatch)
    method = MultivariateTPE()
    np.testing.assert_allclose(method.values(x, y, points), values, rtol=1e-12)
    # Of the points that Optuna drew, the one that it suggests is the one that is picked.
    np.testing.assert_array_equal(points[method.observe_and_suggest(x, y[:, None], points)], suggested)


def test_densities_of_columns_are_optunas(trials, monkeypatch):
    x, y = trials
    suggested, observed = own(x, y, multivariate=False, monkeypatch=monkeypatch)
    points = np.concatenate([drawn for drawn, _ in observed], axis=1)
    assert points.shape == (50, COLUMNS)
    method = TPE()
    np.testing.assert_allclose(method.values(x, y, points), sum(values for _, values in observed), rtol=1e-10)
    # The best of each column, put together, is Optuna's point; nothing that it could have drawn is better.
    rows = np.stack(np.meshgrid(*points.T[:, :10], indexing="ij"), axis=-1).reshape(-1, COLUMNS)
    rows = np.concatenate([rows, suggested[None]])
    assert method.observe_and_suggest(x, y[:, None], rows) == len(rows) - 1


def test_trial_by_trial_is_as_at_once_and_random_before_there_are_ten(trials):
    x, y = trials
    pending = np.random.default_rng(5).random((20, COLUMNS))
    grown = TPE()
    for n in (5, 6, 12, 29, 30):
        values = grown.values(x[:n], y[:n], pending)
    np.testing.assert_array_equal(values, TPE().values(x, y, pending))
    x, y = trials
    assert not TPE().values(x[:9], y[:9], x).any()
    assert TPE().values(x[:10], y[:10], x).any()
    assert TPE(startup=5).values(x[:5], y[:5], x).any()


def test_the_log_level_of_optuna_stays(trials, capsys):
    x, y = trials
    optuna.logging.set_verbosity(optuna.logging.INFO)
    TPE().values(x, y, x)
    assert optuna.logging.get_verbosity() == optuna.logging.INFO
    assert capsys.readouterr().err == ""

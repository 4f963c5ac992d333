"""Beliefs by name, learned from tables whose best rows are known."""

import numpy as np
import pytest

from dre_jax.tuning import Categorical, Float, Space


@pytest.fixture(scope="module")
def script(part):
    return part("compare_names")


def test_beliefs_are_where_the_best_rows_of_other_spaces_are(script):
    """Rates are best at 0.01 and "b" is better than "a", by two names and in two ranges."""

    def family(name, rate, low):
        space = Space({rate: Float(low, 1.0, log=True), "kind": Categorical(["a", "b"]), "noise": Float(0.0, 1.0)})
        tasks = {}
        for task in ("t0", "t1", "t2"):
            points = np.random.default_rng([len(name), ord(task[1])]).random((200, 3))
            params = [space.params(point) for point in points]
            y = [-abs(np.log10(one[rate]) + 2.0) + 0.5 * (one["kind"] == "b") for one in params]
            tasks[task] = (np.array([space.encode(one) for one in params]), np.array(y))
        return script.Family(name, space, tasks)

    both = {one.name: one for one in (family("first", "eta", 1e-4), family("second", "learning_rate", 1e-3))}
    names = script.Names(both)
    beliefs = names.beliefs("first")
    rate = beliefs.numbers["learning_rate"]
    knots = np.linspace(rate.low, rate.high, len(rate.log_densities))
    assert knots[0] == pytest.approx(np.log(1e-3))  # of the second alone
    assert np.exp(knots[np.argmax(rate.log_densities)]) == pytest.approx(0.01, rel=0.4)
    assert beliefs.choices["kind"]["b"] > 0.0 > beliefs.choices["kind"]["a"]
    assert np.ptp(beliefs.numbers["noise"].log_densities) < 0.5 * np.ptp(rate.log_densities)
    assert names.beliefs().numbers["learning_rate"].low == pytest.approx(np.log(1e-4))
    table = script.log_densities_by_name(beliefs, both["first"].space)
    responses = script.run("random", both["first"], "t0", table, 5.0, 0)
    y = both["first"].tasks["t0"][1]
    assert responses[0] > np.quantile(y, 0.9)  # the most likely row comes first
    assert script.regret(y, responses)[-1] <= script.regret(y, responses)[0]

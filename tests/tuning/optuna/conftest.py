import pytest

from dre_jax.tuning.engine import Engine


@pytest.fixture
def sobol_points(monkeypatch, quiet_optuna):
    """Suggestions without a method, which every new space would compile: evenly spread points."""
    monkeypatch.setattr(Engine, "_can_value", lambda self, observed: False)


@pytest.fixture
def asked(monkeypatch, sobol_points):
    """What the engine is asked with, call by call."""
    calls = []
    propose = Engine.propose

    def record(self, observed, **given):
        calls.append({"observed": list(observed), **given})
        return propose(self, observed, **given)

    monkeypatch.setattr(Engine, "propose", record)
    return calls

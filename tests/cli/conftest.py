"""What the tests of the command line share: running it in this process, and what they run it on."""

import pytest

from dre_jax import write_space
from dre_jax.cli import main
from dre_jax.data import bundled


@pytest.fixture(scope="session")
def data():
    """The folder of the bundled data."""
    return bundled.path()


@pytest.fixture
def space(request, tmp_path):
    """The file of a test module's `SPACE`."""
    write_space(tmp_path / "space.json", request.module.SPACE)
    return tmp_path / "space.json"


@pytest.fixture
def refused(cli):
    """Runs a command that must fail: its one line."""

    def run(*arguments):
        status, out, error = cli(*arguments)
        lines = [line for line in error.splitlines() if not line.startswith("dre-jax: warning: ")]
        assert status == 2
        assert len(lines) == 1, error
        assert lines[0].startswith("dre-jax: ")
        assert out == ""
        return lines[0]

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory, data):
    """A root of checkpoints; treat as read-only."""
    root = tmp_path_factory.mktemp("checkpoints")
    arguments = ["meta-train", "--data", str(data), "--space", "svm", "--out", str(root), "--method", "dre"]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--steps", "20", "--evaluate-every", "10", "--quiet"])
    assert ended.value.code == 0
    return root


@pytest.fixture
def evaluate(data):
    """Arguments of `dre-jax evaluate`, random search on the bundled data where nothing else is said."""

    def arguments(method="random", data=data, space="svm", trials=2, **options):
        more = [text for name, value in options.items() for text in (f"--{name}", value)]
        return ["evaluate", "--data", data, "--space", space, "--method", method, "--trials", trials, *more]

    return arguments

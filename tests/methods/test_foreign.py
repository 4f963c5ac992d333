"""Host methods by name."""

import sys
from pathlib import Path

import pytest

from dre_jax.errors import ConfigError, MissingExtraError
from dre_jax.methods import find
from tests.error_messages import raises_line

SOURCE = """
from dataclasses import dataclass
from beside import WHICH

@dataclass
class Peer:
    which: int = WHICH

    def observe_and_suggest(self, X_obs, y_obs, X_pen=None):
        return self.which

class Other:
    pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    # Other tests load files of this name too, and the folder of a loaded file stays where modules are looked for.
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not Path(path, "peer.py").exists()])
    for name in ("beside", "peer"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "beside.py").write_text("WHICH = 3\n")
    (tmp_path / "peer.py").write_text(SOURCE)
    yield tmp_path
    for name in ("beside", "peer"):
        sys.modules.pop(name, None)


def test_from_a_file_with_its_imports_and_from_a_module(folder, monkeypatch):
    assert find(f"{folder}/peer.py:Peer").host().observe_and_suggest(None, None) == 3
    monkeypatch.chdir(folder)
    assert find("peer:Peer").host().which == 3
    assert find("peer.py:Peer").host().which == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("peer.py:", "package.module:Name or path/to/file.py:Name"),
        ("nowhere.py:Peer", "the file must exist, but nowhere.py does not"),
        ("peer.py:Missing", "must hold a method 'Missing', but has dataclass, Peer, Other"),
        ("peer.py:Other", "must have observe_and_suggest, or fit and acquire"),
        ("no.such.module:Peer", "cannot be imported: ModuleNotFoundError: No module named 'no'"),
        ("broken.py:Peer", "cannot be imported: ZeroDivisionError: division by zero"),
        ("peer.py:WHICH", "must have observe_and_suggest, or fit and acquire"),
    ],
)
def test_names_of_no_host_method(folder, monkeypatch, name, message):
    monkeypatch.chdir(folder)
    (folder / "broken.py").write_text("1 / 0\n")
    with raises_line(ConfigError, message):
        find(name)


def test_the_error_of_a_missing_package(folder):
    source = "from dre_jax.errors import MissingExtraError\nraise MissingExtraError('smac', 'baselines')"
    (folder / "needs.py").write_text(source)
    with pytest.raises(MissingExtraError, match="baselines"):
        find(f"{folder}/needs.py:Peer")

"""`dre-jax download` on what is on this machine; the network's part is tested in tests/data."""

import zipfile
from pathlib import Path

from dre_jax.data import write_dataset


def test_download(cli, make_space, tmp_path, monkeypatch):
    """As many spaces and test tasks as HPO-B has, but tiny."""
    monkeypatch.chdir(tmp_path)
    small, tests = {"n_rows": 6, "train": "t", "designs": (5, 5)}, ["abcdef"] * 14 + ["a"] * 2
    write_dataset(Path("whole"), [make_space(f"{4000 + i}", test=test, **small) for i, test in enumerate(tests)])
    with zipfile.ZipFile("a.zip", "w") as archive:
        for path in Path("whole").iterdir():
            archive.write(path, f"hpob-data/{path.name}")
    status, out, error = cli("download", "hpo-b", "--url", "a.zip")
    assert status == 0
    tasks = "16 / 16 / 86 tasks for training / validation / test"
    assert out == f"hpob-data: 16 search spaces, {tasks}, 5 initial designs, from a.zip\n"
    lines = error.splitlines()
    assert lines[0] == "unpack (MB): 1/1"
    there, expected = ({path.name for path in folder.iterdir()} for folder in map(Path, ("hpob-data", "whole")))
    assert there == expected
    status, out, error = cli("download", "hpo-b", "--url", "a.zip")
    assert (status, error) == (0, "")
    assert out.startswith("hpob-data is there already: 16 search spaces")

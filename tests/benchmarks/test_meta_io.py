"""What meta-training reads and writes beside computing."""

import json

import pytest

from benchmarks import meta_io


@pytest.mark.thorough
def test_rows_have_bytes_seconds_and_shares(tmp_path, monkeypatch, capsys):
    sizes = {"MEMBERS": (2,), "LISTS": (2,), "STEPS": 2000, "ROWS": 1000, "COLUMNS": 3, "REPEATS": 2}
    for name, value in sizes.items():
        monkeypatch.setattr(meta_io, name, value)
    assert meta_io.main(["--step-us", "500", "--out", str(tmp_path / "io.json")]) == 0
    saved, own, shared = json.loads((tmp_path / "io.json").read_text())["rows"]
    assert saved["share"] == pytest.approx(saved["seconds"] / 0.5)  # of a thousand steps
    assert 0 < saved["blocking_s"] < saved["seconds"]
    for row, lists in ((own, 20), (shared, 2)):
        # Three columns, response and level of four bytes, and whether the slot is filled.
        assert row["bytes"] == lists * 120 * (5 * 4 + 1)
        assert row["share"] == pytest.approx(row["seconds"] / 5e-4)
    assert len(capsys.readouterr().out.splitlines()) == 3

"""The pictures of the pages: the numbers that they are drawn from, and whether they are of these numbers still."""

import json
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from dre_jax.report import write_report

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"


def test_stored_regret_is_the_mean_over_search_spaces(part, result_file, tmp_path, numbers_only):
    stored = part("draw_figures")
    lacks = [("s", "x", "test0"), ("s", "x", "test1")]  # search spaces of two and three tasks
    files = {name: result_file(f"results/{name}", seed=seed, lacks=lacks) for seed, name in enumerate(stored.NAMES)}
    write_report(files, tmp_path / "report")
    result = stored.regret_of(tmp_path)
    assert (result["runs"], result["tasks"], result["spaces"]) == (10, 5, 2)
    content = json.loads((tmp_path / "results" / "dre.json").read_text())
    spaces = [[np.mean(list(seeds.values()), axis=0) for seeds in tasks.values()] for tasks in content.values()]
    regret = 1 - np.mean([np.mean(tasks, axis=0) for tasks in spaces], axis=0)
    error = np.sqrt(sum(np.var(tasks, axis=0, ddof=1) / len(tasks) for tasks in spaces)) / 2
    np.testing.assert_allclose(list(result["methods"]["dre"].values()), [regret, error], atol=6e-6)
    del files["gp"]
    write_report(files, tmp_path / "report")
    with pytest.raises(Exception, match="lacks results of gp"):
        stored.regret_of(tmp_path)


@pytest.mark.parametrize("look", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_the_pictures_are_of_the_pages_numbers(part, tmp_path, monkeypatch, look):
    """Drawn again they are the same to the byte, with the version of Matplotlib that is pinned."""
    monkeypatch.setattr(part("draw_figures"), "THEMES", [getattr(part("draw_figures"), look.upper())])
    if f"\nmatplotlib=={matplotlib.__version__}\n" not in (REPOSITORY / "constraints.txt").read_text():
        pytest.skip("another version of Matplotlib than the pinned one draws otherwise")
    drawn = [path for picture in part("draw_figures").PICTURES.values() for path in picture(DOCS, tmp_path)]
    old = [path.name for path in drawn if path.read_bytes() != (DOCS / "figures" / path.name).read_bytes()]
    assert not old, f"older than their numbers: {old}; run scripts/draw_figures.py"


def test_every_picture_is_shown_in_light_and_dark(part):
    pages = [REPOSITORY / "README.md", *DOCS.rglob("*.md")]
    names = re.findall(r'(?:src|srcset)="([^"]+\.svg)"', "".join(page.read_text() for page in pages))
    shown = {Path(name).name for name in names}
    assert shown == {path.name for path in (DOCS / "figures").glob("*.svg")}
    assert shown >= {f"{name}-{look}.svg" for name in part("draw_figures").PICTURES for look in ("light", "dark")}

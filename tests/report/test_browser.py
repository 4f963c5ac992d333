"""The page in headless Chromium, with the network cut off: figures decode, tables sort, nothing complains."""

import html
import json
import os
import re
import shutil
import subprocess

import pytest

from dre_jax.report.figures import draw_all
from dre_jax.report.page import write_page
from dre_jax.report.statistics import significances

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

FLAGS = """--headless=new --disable-gpu --disable-dev-shm-usage --disable-background-networking --no-first-run
--proxy-server=127.0.0.1:9 --enable-logging=stderr --virtual-time-budget=4000"""

pytestmark = [
    pytest.mark.multiprocess,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, chromium-browser or google-chrome on the path"),
]

# Runs in a copy of the page and writes down what it sees.
HARNESS = """
const table = document.querySelector("table.sortable");
const heads = [...table.tHead.rows[0].cells];
const rows = () => [...table.tBodies[0].rows].map((row) => row.cells[1].dataset.value);
const sorts = () => heads.map((head) => head.getAttribute("aria-sort"));
const button = heads[1].querySelector("button");
const seen = { before: [rows(), sorts()] };
button.click();
seen.up = [rows(), sorts()];
button.click();
seen.down = [rows(), sorts()];
heads[0].querySelector("button").click();
seen.byName = [[...table.tBodies[0].rows].map((row) => row.cells[0].dataset.value), sorts()];
seen.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
Promise.all([...document.images].map((image) => image.decode())).finally(() => {
  seen.images = [...document.images].map((image) => image.naturalWidth);
  const output = document.createElement("pre");
  output.id = "seen";
  output.textContent = JSON.stringify(seen);
  document.body.append(output);
});
"""


def browse(page, profile, *options):
    """Chromium's output and log on a page."""
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    own = ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", *root, *options, page.as_uri()]
    command = [CHROMIUM, *FLAGS.split(), *own]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)


def test_in_a_browser(make_comparison, tmp_path):
    comparison, page = make_comparison(4, names=["d", "b", "a", "c"]), tmp_path / "report.html"
    tests = significances(comparison, (20,))
    figures = draw_all(comparison, tests["tasks"], tmp_path, "Title")
    summary = {"win_tie_loss": {"reference": "d"}, "files": {}, "versions": {}}
    write_page(page, "The title", comparison, tests, figures, summary)
    assert "CONSOLE" not in browse(page, tmp_path / "p1", "--dump-dom").stderr
    # The page allows no script but its own, so the harness goes into a copy that allows all.
    content = re.sub("<meta http-equiv=.Content-Security-Policy[^>]*>", "", page.read_text())
    copy = page.with_name("copy.html")
    copy.write_text(content.replace("</body>", f"<script>{HARNESS}</script></body>"))
    shown = browse(copy, tmp_path / "p2", "--window-size=500,900", "--dump-dom")
    assert "CONSOLE" not in shown.stderr
    rendered = json.loads(html.unescape(re.search('<pre id="seen">(.*?)</pre>', shown.stdout, re.DOTALL)[1]))
    assert len(rendered["images"]) == 5
    assert all(width > 0 for width in rendered["images"])
    assert rendered["wide"] <= 0  # tables and figures scroll by themselves, the page does not
    values = comparison.average_regret()[:, 20].tolist()
    for state, expected, facts in (
        ("before", values, "none"),
        ("up", sorted(values), "ascending"),
        ("down", sorted(values, reverse=True), "descending"),
    ):
        assert [float(value) for value in rendered[state][0]] == expected
        assert rendered[state][1] == ["none", facts, "none"]
    assert rendered["byName"] == [["a", "b", "c", "d"], ["ascending", "none", "none"]]

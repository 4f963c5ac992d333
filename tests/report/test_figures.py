"""The files of a comparison's figures: which there are, and the same on every machine."""

import xml.etree.ElementTree as ET

import matplotlib

from dre_jax.report.style import new_figure

NAMES = ("rank", "regret", "rank-spaces", "regret-spaces", "cd-3", "cd-10")


def test_files(drawn):
    figures = drawn[1]
    assert tuple(figures) == NAMES
    (out,) = {path.parent for path in figures.values()}
    assert sorted(path.name for path in out.iterdir()) == sorted(f"{n}.{k}" for n in NAMES for k in ("png", "svg"))
    for name, path in figures.items():
        assert path.name == f"{name}.png"
        assert path.read_bytes().startswith(b"\x89PNG")
        root = ET.parse(path.with_suffix(".svg")).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def plot(*paths):
    with new_figure((3, 2), *paths) as figure:
        figure.add_subplot().plot([0, 1], [1, 0])
        figure.axes[0].set_title("50$ \\frac & _x <b> 試行")  # no mathematics, no markup, letters that the font lacks


def test_files_do_not_change(tmp_path):
    plot(tmp_path / "a.svg", tmp_path / "a.png")
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30, "svg.hashsalt": "other"}):
        plot(tmp_path / "b.svg", tmp_path / "b.png")
        assert matplotlib.rcParams["font.size"] == 30
    for kind in ("svg", "png"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    assert "dc:date" not in (tmp_path / "a.svg").read_text()

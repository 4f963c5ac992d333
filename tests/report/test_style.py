"""Looks: distinct, steady, and files that are the same on every machine."""

import xml.etree.ElementTree as ET

import matplotlib
import pytest

from dre_jax.report.style import display_name, save


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dre", "dre"),
        ("a\nb\x00c", "a b c"),
        ("  ", "(no name)"),
        ("a" * 20 + "b" * 20, "a" * 15 + "…" + "b" * 14),
        ("<b>$x_1$</b>", "<b>$x_1$</b>"),
    ],
)
def test_shown(name, expected):
    assert display_name(name) == expected


def plot(figure):
    figure.add_subplot().plot([0, 1], [1, 0])
    figure.axes[0].set_title("50$ \\frac & _x <b> 試行")  # no mathematics, no markup, letters that the font lacks


def test_files_do_not_change(tmp_path):
    save((3, 2), plot, tmp_path / "a.svg", tmp_path / "a.png")
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30, "svg.hashsalt": "other"}):
        save((3, 2), plot, tmp_path / "b.svg", tmp_path / "b.png")
        assert matplotlib.rcParams["font.size"] == 30
    for kind in ("svg", "png"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    assert ET.parse(tmp_path / "a.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert "dc:date" not in (tmp_path / "a.svg").read_text()

"""Looks: distinct, steady, and files that are the same on every machine."""

import itertools
import xml.etree.ElementTree as ET

import matplotlib
import pytest

from dre_jax.report.style import COLOURS, save, shown, style


def luminance(colour):
    """Relative luminance after the web's contrast rules."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_looks_differ():
    looks = [style(i) for i in range(35)]
    assert len({(look.colour, look.dash) for look in looks}) == 35
    assert len({(look.dash, look.marker) for look in looks}) == 35  # without colour, in grey print
    for one, other in itertools.pairwise(looks):
        assert not set(one) & set(other)


def test_every_colour_shows_on_white():
    assert len(set(COLOURS)) == 7
    for colour in COLOURS:
        assert 1.05 / (luminance(colour) + 0.05) > 2.0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dre", "dre"),
        ("a\nb\x00c", "a b c"),
        ("  ", "(no name)"),
        ("", "(no name)"),
        ("x" * 30, "x" * 30),
        ("a" * 20 + "b" * 20, "a" * 15 + "…" + "b" * 14),
        ("<b>$x_1$</b>", "<b>$x_1$</b>"),
    ],
)
def test_shown(name, expected):
    assert shown(name) == expected


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

"""Every figure of a comparison: the files, and one look for a method in all of them."""

import xml.etree.ElementTree as ET

import pytest

from dre_jax.errors import DataError
from dre_jax.report.drawings import draw_all
from dre_jax.report.statistics import significance
from dre_jax.report.style import style

NAMES = ("rank", "regret", "rank-spaces", "regret-spaces", "cd-3", "cd-10")


def test_files(drawn):
    from PIL import Image

    found = drawn[1]
    assert tuple(found) == NAMES
    (out,) = {path.parent for path in found.values()}
    assert sorted(path.name for path in out.iterdir()) == sorted(f"{n}.{k}" for n in NAMES for k in ("png", "svg"))
    for name, path in found.items():
        assert path.name == f"{name}.png"
        with Image.open(path) as image:
            image.load()
            assert image.width >= 900
        root = ET.parse(path.with_suffix(".svg")).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_one_look_everywhere(make_comparison, tmp_path, painted):
    given = make_comparison(12, n_runs=12)
    draw_all(given, {10: significance(given, 10)}, tmp_path, "Title")
    assert len(painted) == 5
    expected = {f"method {i}": (style(i).colour, style(i).marker) for i in range(12)}
    for figure in painted[:4]:
        for axes in figure.axes:
            assert [(ln.get_color(), ln.get_marker()) for ln in axes.lines] == list(expected.values())
        legend = figure.legends[0]
        handles = [(ln.get_color(), ln.get_marker()) for ln in legend.get_lines()]
        assert dict(zip((text.get_text() for text in legend.get_texts()), handles, strict=True)) == expected
    axes = painted[4].axes[0]
    # A diagram's label stands beside the outer end of its leader.
    marked = [ln for ln in axes.lines if ln.get_marker() != "None"]
    for text in (t for t in axes.texts if t.get_text().startswith("method")):
        near = min(
            marked,
            key=lambda ln: (
                abs(ln.get_xdata()[1] - text.get_position()[0]) + abs(ln.get_ydata()[1] - text.get_position()[1])
            ),
        )
        assert (near.get_color(), near.get_marker()) == expected[text.get_text().split("  ")[0]]


def test_a_file_in_the_way(make_comparison, tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(DataError, match="folder"):
        draw_all(make_comparison(), {}, tmp_path / "a", "Title")

"""Every figure of a comparison: the files, and one look for a method in all of them."""

import xml.etree.ElementTree as ET

import pytest

from dre_jax.errors import DataError
from dre_jax.report.figures import draw_all

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


def test_a_file_in_the_way(make_comparison, tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(DataError, match="folder"):
        draw_all(make_comparison(), {}, tmp_path / "a", "Title")

"""Figures: files that a viewer can open, for every number of methods, runs and trials."""

import struct
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

from dre_jax.benchmark.figures import draw_rank, draw_regret
from dre_jax.errors import DataError


def pixels(path):
    """Rows of a PNG with 8 bits a channel, read after the standard; every block's checksum is checked."""
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, blocks = 8, {}
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at : at + 8])
        data = content[at + 8 : at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + data)
        blocks[kind] = blocks.get(kind, b"") + data
        at += 12 + length
    assert kind == b"IEND"
    width, height, depth, colours = struct.unpack(">IIBB", blocks[b"IHDR"][:10])
    assert (depth, colours) == (8, 6)
    raw = np.frombuffer(zlib.decompress(blocks[b"IDAT"]), np.uint8)
    assert raw.size == height * (1 + 4 * width)
    return width, height, raw


@pytest.mark.parametrize("draw", [draw_regret, draw_rank])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"n_methods": 1},
        {"n_methods": 9},
        {"n_trials": 1},
        {"n_trials": 0},
        {"n_runs": 1, "spaces": ("s",)},
        {"n_methods": 1, "n_runs": 1, "n_trials": 1, "spaces": ("s",)},
        {"regret": np.zeros((3, 8, 21))},
    ],
    ids=["several", "one method", "nine methods", "one trial", "no trial", "one run", "one of all", "no regret"],
)
def test_png(tmp_path, draw, given, make_comparison):
    path = tmp_path / "a.png"
    draw(make_comparison(**given), path, "A title")
    width, height, raw = pixels(path)
    assert width > 800
    assert height > 500
    assert len(np.unique(raw)) > 50
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("draw", [draw_regret, draw_rank])
def test_svg_names_every_method(tmp_path, draw, make_comparison):
    path = tmp_path / "a.svg"
    draw(make_comparison(n_methods=4), path, "A title of a figure")
    assert path.stat().st_size > 5000
    root = ET.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    # Text is drawn as outlines; what it says stands in comments.
    content = path.read_text()
    for text in ("method 0", "method 3", "A title of a figure", "Trials after the initial design"):
        assert text in content


def test_another_comparison_looks_otherwise(tmp_path, make_comparison):
    for seed in (0, 1):
        draw_regret(make_comparison(seed=seed), tmp_path / f"{seed}.png", "A title")
    assert (tmp_path / "0.png").read_bytes() != (tmp_path / "1.png").read_bytes()


def test_no_figure_stays_open(tmp_path, make_comparison):
    from matplotlib import pyplot as plt

    before = plt.get_fignums()
    draw_rank(make_comparison(), tmp_path / "a.png", "A title")
    assert plt.get_fignums() == before


def test_a_folder_that_is_not_there(tmp_path, make_comparison):
    with pytest.raises(DataError, match="cannot be written"):
        draw_rank(make_comparison(), tmp_path / "nowhere" / "a.png", "A title")

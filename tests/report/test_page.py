"""The report page: whole, self-contained, and nothing in it runs that came out of a file."""

import base64
import html.parser

import pytest

from dre_jax.report.page import write_page
from dre_jax.report.statistics import significances

EVIL = '<script>document.title="run"</script><img src=x onerror="document.title=1">'
META = {"protocol": {"mode": "v3-test"}, "configuration": {"note": EVIL}, "seed": 7}


class Reader(html.parser.HTMLParser):
    """Elements with their attributes, the text, and what was opened and not closed."""

    VOID = frozenset({"meta", "img"})

    def __init__(self, content):
        super().__init__()
        self.elements, self.text, self.open = [], "", []
        self.feed(content)
        assert self.open == []
        ids = [attributes["id"] for _, attributes in self.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        assert {link["href"].removeprefix("#") for link in self.of("a")} <= set(ids)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data

    def of(self, wanted):
        return [attributes for tag, attributes in self.elements if tag == wanted]


def page(path, comparison, *, figures=None, files=None, title="A title"):
    summary = {
        "win_tie_loss": {"reference": comparison.methods[-1]},
        "files": files or {},
        "versions": {"numpy": "9.9"},
    }
    write_page(path, title, comparison, significances(comparison, (5, 20)), figures or {}, summary)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("largest", "kind"), [(10**9, "svg+xml"), (1, "png")])
def test_self_contained(drawn, tmp_path, monkeypatch, largest, kind):
    """Nothing is fetched, and the same comparison gives the same page."""
    inputs, figures = drawn
    monkeypatch.setattr("dre_jax.report.figures.LARGEST_SVG", largest)
    content, again = (page(tmp_path / f"{name}.html", inputs, figures=figures) for name in "ab")
    assert content == again
    reader = Reader(content)
    for tag, attributes in reader.elements:
        for name in ("src", "href", "action", "data", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith(("data:", "#")), (tag, value)
    assert not reader.of("link")
    assert "default-src 'none'" in reader.of("meta")[2]["content"]
    images = reader.of("img")
    paths = {base64.b64encode(path.with_suffix(f".{kind[:3]}").read_bytes()).decode() for path in figures.values()}
    assert {image["src"] for image in images} == {f"data:image/{kind};base64,{data}" for data in paths}
    assert len(images) == 6
    assert all(len(image["alt"]) > 40 for image in images)


def test_names_are_escaped(make_comparison, tmp_path):
    comparison = make_comparison(3, names=[EVIL, "a & b", "'\""], spaces=("</table>", "<i>"))
    files = {EVIL: {"file": EVIL, "runs": 1, "trials": 2, "meta": META}}
    reader = Reader(page(tmp_path / "report.html", comparison, files=files, title=EVIL))
    assert not reader.of("script")
    assert not reader.of("img")
    assert not any(name.startswith("on") for _, attributes in reader.elements for name in attributes)
    assert not reader.of("i")
    for text in (EVIL, "a & b", "'\"", "</table>"):
        assert text in reader.text


def test_the_text_of_the_page(make_comparison, tmp_path):
    comparison = make_comparison(3, 40, dropped=3, missing={"method 0": 0, "method 1": 2, "method 2": 1})
    facts = {"runs": 40, "trials": 20}
    files = {"method 0": {"file": "a.json", **facts, "meta": META}, "method 1": {"file": "b.json", **facts, "meta": {}}}
    content = Reader(page(tmp_path / "report.html", comparison, files=files))
    words = " ".join(content.text.split())
    assert "3 of 43 runs left out, as not every method has them: method 1 lacks 2, method 2 lacks 1." in words
    best = comparison.methods[comparison.average_rank()[:, 20].argmin()]
    for output in (
        "40 runs",
        "2 search spaces",
        f"After 20 trials {best} has the best average rank",
        "Over tasks: one observation a task",
        "Pooled over runs, as HPO-B does",
        "Regret minus that of method 2, paired by run",
        "Runs that method 2 wins / ties / loses",
        '"mode": "v3-test"',
        "how it came about: b.json",
        "numpy 9.9",
    ):
        assert output in words


@pytest.mark.parametrize("shape", [(1, 8, 20), (2, 1, 20), (1, 1, 20)])
def test_no_number_is_nan(make_comparison, tmp_path, shape):
    comparison = make_comparison(*shape, spaces=("s",) if shape[1] == 1 else ("s", "t"))
    assert "nan" not in Reader(page(tmp_path / "report.html", comparison)).text.lower()

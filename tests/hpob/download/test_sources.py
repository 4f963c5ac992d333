"""Where HPO-B's data are to be had."""

import pytest

from dre_jax.errors import ConfigError
from dre_jax.hpob.download import download, sources
from dre_jax.hpob.download.sources import parse_source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://h.org/hpob-data.zip", ("https://h.org/hpob-data.zip", True)),
        ("HTTPS://h.org/A.ZIP?x=1", ("https://h.org/A.ZIP?x=1", True)),
        ("https://h.org/data/", ("https://h.org/data/", False)),
        ("https://huggingface.co/datasets/a/b", ("https://huggingface.co/datasets/a/b/resolve/main", False)),
        ("https://huggingface.co/datasets/a/b/tree/v2", ("https://huggingface.co/datasets/a/b/resolve/v2", False)),
        ("https://huggingface.co/datasets/a/b/resolve/v2", ("https://huggingface.co/datasets/a/b/resolve/v2", False)),
    ],
)
def test_addresses(text, expected):
    assert parse_source(text)[:2] == expected


@pytest.mark.parametrize(
    "text", ["", "ftp://h.org/a.zip", "file:///etc/passwd", "nowhere.zip", "https://", "https:///a.zip"]
)
def test_no_addresses(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        download.download("hpo-b", url=text)
    assert list(tmp_path.iterdir()) == []


def test_unknown_collection():
    with pytest.raises(ConfigError, match="one of hpo-b, hpo-b-surrogates, but got 'hpo-c'"):
        download.download("hpo-c")


def test_the_authors_places():
    for each in sources.COLLECTIONS.values():
        assert each.sources[0].is_archive
        assert len(each.sources[0].sha256) == 64
        assert all(parse_source(source.place)[:2] == source[:2] for source in each.sources)

"""What tests of damaged files share: strategies call it, which take no fixtures."""

import os

from hypothesis import settings


def examples(many):
    """The same examples at every run: so many, or a third of them where the thorough tests are left out."""
    short = os.environ.get("DRE_JAX_TESTS") == "short"
    return settings(derandomize=True, deadline=None, database=None, max_examples=many // 3 if short else many)


def places(node, path=()):
    """All paths into a JSON value."""
    yield path
    if isinstance(node, (dict, list)):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from places(node[key], (*path, key))

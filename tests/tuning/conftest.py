"""What tests of damaged files share: strategies call it, which take no fixtures."""


def places(node, path=()):
    """All paths into a JSON value."""
    yield path
    if isinstance(node, (dict, list)):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from places(node[key], (*path, key))

"""What tests of checkpoints share."""

import json

import pytest


@pytest.fixture
def rewrite():
    """Changes the metadata of the last step in a folder, as another version would have written it."""

    def rewrite(steps, change):
        step = max(steps.iterdir(), key=lambda path: int(path.name))
        path = step / "metadata" / "metadata"
        metadata = json.loads(path.read_text())
        change(metadata)
        path.write_text(json.dumps(metadata))
        (step / "digests.json").unlink(missing_ok=True)

    return rewrite

"""Sizes of HPO-B v3's search spaces, for synthetic tables of the real shapes.

Columns are the lengths of ``variables_order`` in HPO-B's ``meta-dataset-descriptors.json``, test tasks those of its
``meta-test-tasks-per-space.json``; both are held to these files by a test. Rows are totals over a space's tasks from
the table of search spaces in Pineda Arango et al. 2021, NeurIPS Datasets and Benchmarks, as remembered by who wrote
this down: neither the paper nor the tables were at hand. What they come to (tables of 200 to 70,000 rows, half of the
spaces below 4,000) is what speed depends on. Each task is given an equal share.
"""

from typing import NamedTuple

DESIGNS, DESIGN_ROWS = 5, 5


class SpaceShape(NamedTuple):
    """One search space."""

    name: str
    columns: int
    test_tasks: int
    test_rows: int
    """Of all test tasks together."""

    @property
    def rows_per_task(self) -> int:
        """Of a test task."""
        return self.test_rows // self.test_tasks


SPACES = (
    SpaceShape("4796", 3, 4, 1_200),
    SpaceShape("5527", 8, 6, 354_316),
    SpaceShape("5636", 6, 6, 339_301),
    SpaceShape("5859", 6, 6, 21_060),
    SpaceShape("5860", 2, 3, 857),
    SpaceShape("5889", 6, 2, 422),
    SpaceShape("5891", 8, 6, 17_293),
    SpaceShape("5906", 16, 2, 513),
    SpaceShape("5965", 10, 7, 83_597),
    SpaceShape("5970", 2, 6, 32_000),
    SpaceShape("5971", 16, 6, 19_000),
    SpaceShape("6766", 2, 6, 188_198),
    SpaceShape("6767", 18, 6, 299_709),
    SpaceShape("6794", 10, 6, 406_145),
    SpaceShape("7607", 9, 7, 5_028),
    SpaceShape("7609", 9, 7, 9_689),
)
"""All sixteen."""

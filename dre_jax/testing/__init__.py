"""Tests for methods that are written outside of the library, each of which raises `AssertionError` with one line."""

from dre_jax.testing.conformance import (
    check_candidates_in_any_order,
    check_capabilities,
    check_compiled_once,
    check_degenerate_histories,
    check_empty_slots,
    check_keys,
    check_method,
    check_padded_columns,
    check_runs,
    check_vmap,
)

__all__ = [
    "check_candidates_in_any_order",
    "check_capabilities",
    "check_compiled_once",
    "check_degenerate_histories",
    "check_empty_slots",
    "check_keys",
    "check_method",
    "check_padded_columns",
    "check_runs",
    "check_vmap",
]

"""Decides which leaves share a file, for those who take rows in. Pure."""

from __future__ import annotations

from collections.abc import Sequence

SHARED_FILE_MULTIPLE = 4
"""A shared file is closed when it holds this many times `shared_file_rows_max`."""


def plan_files(rows: Sequence[int], *, shared_file_rows_max: int) -> list[tuple[int, ...]]:
    """Return groups of leaves, by index, each of which gets one file. Leaves without rows get none.

    rows: how many each leaf gets, in key order. A leaf with fewer than `shared_file_rows_max` rows
    shares a file with its neighbours, which has a reference per leaf: else a job over thousands of
    leaves would write thousands of tiny files.
    """
    leaf_groups: list[tuple[int, ...]] = []
    shared: list[int] = []
    held = 0
    for leaf, count in enumerate(rows):
        if count >= shared_file_rows_max or held >= SHARED_FILE_MULTIPLE * shared_file_rows_max:
            if shared:
                leaf_groups.append(tuple(shared))
            shared, held = [], 0
        if count >= shared_file_rows_max and count:
            leaf_groups.append((leaf,))
        elif count:
            shared.append(leaf)
            held += count
    if shared:
        leaf_groups.append(tuple(shared))
    return leaf_groups

"""Which leaves share a file: a pure decision of those who take rows in."""

from __future__ import annotations

from collections.abc import Sequence

SHARED_FILE_SCRAPS = 4
"""A shared file is closed when it holds this many times `scrap_rows_max`."""


def plan_files(rows: Sequence[int], *, scrap_rows_max: int) -> list[tuple[int, ...]]:
    """Return groups of leaves, by place, each of which gets one file. Leaves without rows get none.

    rows: of each leaf, in key order. A leaf with fewer than `scrap_rows_max` rows shares a file
    with its neighbours, which has a reference per leaf: else a job over thousands of leaves would
    write scraps.
    """
    groups: list[tuple[int, ...]] = []
    shared: list[int] = []
    held = 0
    for leaf, count in enumerate(rows):
        if count >= scrap_rows_max or held >= SHARED_FILE_SCRAPS * scrap_rows_max:
            if shared:
                groups.append(tuple(shared))
            shared, held = [], 0
        if count >= scrap_rows_max and count:
            groups.append((leaf,))
        elif count:
            shared.append(leaf)
            held += count
    if shared:
        groups.append(tuple(shared))
    return groups

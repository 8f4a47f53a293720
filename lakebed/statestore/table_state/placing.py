"""Decides on which leaves a file's rows lie: references enter leaves, and move down when a leaf is
split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.files import FileReference
from lakebed.model.names import FileName, PartitionId
from lakebed.model.ranges import EVERYTHING, KeyRange, overlaps_any
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.table_state.sums import damaged

KEY_RANGES_MAX = 20_000
"""Key ranges kept in memory: about 5 MB."""


def own_key_range(state: TableState, partition: PartitionId) -> KeyRange:
    """Return the range of encoded keys inside a partition, from the splits above it."""
    key_range = state.key_ranges.get(partition)
    if key_range is None and partition == state.head().root:
        return EVERYTHING
    if key_range is None:
        key_range = _key_range_from_above(state, partition)
        if key_range != EVERYTHING:  # which is also that of a partition that does not exist yet
            if len(state.key_ranges) >= KEY_RANGES_MAX:
                state.key_ranges.clear()
            state.key_ranges[partition] = key_range
    return key_range


def reached_leaves(
    state: TableState, partition: PartitionId, keys: Sequence[KeyRange]
) -> list[tuple[PartitionId, KeyRange]]:
    """Return the leaves at or under a partition that may hold keys in the ranges, in order.

    Each comes with its range of encoded keys. keys: as `union` gives them.
    """
    found = []
    stack = [(partition, own_key_range(state, partition))]
    while stack:
        id_, key_range = stack.pop()
        if not overlaps_any(key_range, keys):
            continue
        node = state.partition(id_)
        if node is None:
            raise damaged("partitions", partition=id_)
        if node.left is None or node.right is None:
            found.append((id_, key_range))
        else:
            stack.append((node.right, KeyRange(node.point, key_range.max)))
            stack.append((node.left, KeyRange(key_range.min, node.point)))
    return found


def _key_range_from_above(state: TableState, partition: PartitionId) -> KeyRange:
    """Return the range of encoded keys that the splits above a partition leave to it."""
    least, end = b"", None
    node = state.partition(partition)
    while node is not None and node.parent is not None:
        above = state.partition(node.parent)
        if above is None:
            raise damaged("partitions", partition=node.parent)
        if above.right == node.id:
            least = max(least, above.point)
        elif end is None or above.point < end:
            end = above.point
        node = above
    return KeyRange(least, end)


def check_references(state: TableState, references: Sequence[FileReference]) -> None:
    """Refuse references that `add_references` could not write.

    Raises:
        InvalidError: an unknown partition, keys outside of it, or a file twice on one leaf.
    """
    key_ranges: dict[PartitionId, KeyRange] = {}
    for reference in references:
        id_ = reference.partition
        if id_ not in key_ranges:
            if state.partition(id_) is None:
                raise InvalidError(
                    "the table has no such partition",
                    partition=id_,
                    hint="read the state again, and name a partition that it has",
                )
            key_ranges[id_] = own_key_range(state, id_)
        if not key_ranges[id_].overlaps(reference.bounds.as_range()):
            name = reference.file.name.hex()
            raise InvalidError(
                "a file's keys lie outside its partition",
                file=name,
                partition=id_,
                hint="refer to the file from the partition that holds its keys",
            )
    if len(references) > 1:
        written = placed(state, references)
        if len({(r.partition, r.file.name) for r in written}) < len(written):
            raise InvalidError(
                "a file has more than one reference in a leaf",
                hint="give a leaf one reference to each file",
            )


def add_references(state: TableState, references: Iterable[FileReference]) -> None:
    """Write references to the leaves that their keys reach: the partition named may have been
    split."""
    state.put_references(placed(state, references))


def placed(state: TableState, references: Iterable[FileReference]) -> list[FileReference]:
    """Return references to the leaves that the keys of those given reach."""
    leaves: dict[PartitionId, bool] = {}
    found: list[FileReference] = []
    for reference in references:
        id_ = reference.partition
        if id_ not in leaves:
            node = state.partition(id_)
            if node is None:
                raise AssertionError(f"partition {id_} was checked")
            leaves[id_] = node.is_leaf
        if leaves[id_]:
            found.append(reference)
        else:
            reached = reached_leaves(state, id_, (reference.bounds.as_range(),))
            found += _shared(reference, reached, None)
    return found


def split_references(
    state: TableState, partition: PartitionId, shares: Mapping[FileName, Sequence[int]]
) -> None:
    """Move the references of a partition that has just been split down to its leaves, claims
    too (H18)."""
    rows = state.connection.execute(
        "SELECT file, job FROM file_references WHERE partition = ? AND job IS NOT NULL",
        (partition,),
    )
    claims = dict(rows.fetchall())
    moved = [reference for reference, _ in state.references(partition)]
    state.write("DELETE FROM file_references WHERE partition = ?", (partition,))
    leaves = reached_leaves(state, partition, (EVERYTHING,))
    indices = {leaf: index for index, (leaf, _) in enumerate(leaves)}
    for reference in moved:
        keys = reference.bounds.as_range()
        reached = [(leaf, key_range) for leaf, key_range in leaves if key_range.overlaps(keys)]
        weights = shares.get(reference.file.name)
        if weights is not None:
            weights = [weights[indices[leaf]] for leaf, _ in reached]
        state.put_references(_shared(reference, reached, weights), claims.get(reference.file.name))


def _shared(
    reference: FileReference,
    reached: Sequence[tuple[PartitionId, KeyRange]],
    weights: Sequence[int] | None,
) -> list[FileReference]:
    """Return a reference per leaf, the rows shared out by weight, or evenly; none is lost by
    rounding."""
    if not reached:
        raise AssertionError(f"the keys of file {reference.file.name.hex()} reach a leaf")
    if weights is None or not sum(weights):
        weights = [1] * len(reached)
    total, given, passed = sum(weights), 0, 0
    parts = []
    for (leaf, key_range), weight in zip(reached, weights, strict=True):
        passed += weight
        upto = reference.rows * passed // total
        parts.append(
            msgspec.structs.replace(
                reference,
                partition=leaf,
                rows=upto - given,
                bounds=reference.bounds.inside(key_range),
                exact=reference.exact and len(reached) == 1,
            )
        )
        given = upto
    return parts

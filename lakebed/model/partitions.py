"""The tree of partitions: who holds which keys. Leaves tile the key space by construction.

A node is a leaf, or is split on one key field (`dimension`) at a point: keys whose field is below
the point lie left, the others right. Regions are never stored, they follow from the way down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.keys import KEY_BYTES_MAX, encode_field, key_value
from lakebed.model.names import PartitionId
from lakebed.model.ranges import EVERYTHING, Box, KeyRange
from lakebed.model.schema import Schema

ROOT = PartitionId(1)
SPLIT_POINTS_MAX = 65_536


class Partition(msgspec.Struct, frozen=True, array_like=True):
    """A node. point: encoded value of the key field `dimension`; empty in a leaf."""

    id: PartitionId
    parent: PartitionId | None = None
    dimension: int = 0
    point: bytes = b""
    left: PartitionId | None = None
    right: PartitionId | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        return self.left is None


class PartitionTree:
    """All partitions of a table. dimensions: number of row key fields."""

    def __init__(self, nodes: Iterable[Partition], dimensions: int) -> None:
        self.nodes: Mapping[PartitionId, Partition] = {node.id: node for node in nodes}
        self.dimensions = dimensions
        roots = [node.id for node in self.nodes.values() if node.parent is None]
        assert len(roots) == 1, f"a tree has one root, got {len(roots)}"
        self.root = roots[0]
        self._regions: dict[PartitionId, Box] = {}
        self._check()

    def region(self, id_: PartitionId) -> Box:
        """Return the range of each key field inside a partition."""
        if id_ not in self._regions:
            node = self.nodes[id_]
            if node.parent is None:
                self._regions[id_] = (EVERYTHING,) * self.dimensions
            else:
                self._regions[id_] = child_region(
                    self.region(node.parent), self.nodes[node.parent], id_
                )
        return self._regions[id_]

    def leaves(self, id_: PartitionId | None = None) -> Iterator[PartitionId]:
        """Yield the leaves under a partition, by default the root, in key order of the first
        field."""
        stack = [self.root if id_ is None else id_]
        while stack:
            node = self.nodes[stack.pop()]
            if node.left is None or node.right is None:
                yield node.id
            else:
                stack += [node.right, node.left]

    def leaf_of(self, fields: Sequence[bytes]) -> PartitionId:
        """Return the leaf that holds a key, given the encoding of each row key field."""
        node = self.nodes[self.root]
        while node.left is not None and node.right is not None:
            node = self.nodes[node.left if fields[node.dimension] < node.point else node.right]
        return node.id

    def leaves_reached(self, box: Box) -> Iterator[PartitionId]:
        """Yield the leaves that may hold keys of a box, in order."""
        for leaf in self.leaves():
            if all(a.overlaps(b) for a, b in zip(self.region(leaf), box, strict=True)):
                yield leaf

    def depth(self, id_: PartitionId) -> int:
        """Return how many splits lie above a partition."""
        depth = 0
        parent = self.nodes[id_].parent
        while parent is not None:
            depth, parent = depth + 1, self.nodes[parent].parent
        return depth

    def _check(self) -> None:
        """Assert the geometry: one root, children know their parent, points lie inside."""
        reached = 0
        stack: list[tuple[PartitionId, Box]] = [(self.root, (EVERYTHING,) * self.dimensions)]
        while stack:
            id_, region = stack.pop()
            reached += 1
            self._regions[id_] = region
            node = self.nodes[id_]
            if node.left is None or node.right is None:
                assert node.left is node.right, f"partition {id_} has one child"
                continue
            assert splits(region[node.dimension], node.point), f"{id_} is split outside its region"
            for child in (node.left, node.right):
                assert self.nodes[child].parent == id_, f"{child} is not a child of {id_}"
                stack.append((child, child_region(region, node, child)))
        assert reached == len(self.nodes), "every partition hangs on the root"


def splits(region: KeyRange, point: bytes) -> bool:
    """Whether a point cuts a range into two parts that are not empty."""
    return region.min < point and (region.max is None or point < region.max)


def child_region(region: Box, parent: Partition, child: PartitionId) -> Box:
    """Return the region of a child of a partition with this region."""
    own = region[parent.dimension]
    part = (
        KeyRange(own.min, parent.point) if child == parent.left else KeyRange(parent.point, own.max)
    )
    return (*region[: parent.dimension], part, *region[parent.dimension + 1 :])


def grown(
    leaf: Partition, points: Sequence[bytes], *, dimension: int, next_id: int
) -> list[Partition]:
    """Return the nodes that replace a leaf when it is split at sorted points, several levels at
    once.

    A balanced tree: the middle point first. New ids count up from `next_id`, in the order they are
    made; for a released format this order never changes.
    """
    nodes: list[Partition] = []

    def grow(id_: PartitionId, parent: PartitionId | None, inside: Sequence[bytes]) -> None:
        nonlocal next_id
        if not inside:
            nodes.append(Partition(id_, parent))
            return
        middle = len(inside) // 2
        left, right = PartitionId(next_id), PartitionId(next_id + 1)
        next_id += 2
        nodes.append(Partition(id_, parent, dimension, inside[middle], left, right))
        grow(left, id_, inside[:middle])
        grow(right, id_, inside[middle + 1 :])

    grow(leaf.id, leaf.parent, points)
    return nodes


def split_points_of(schema: Schema, values: Iterable[object]) -> tuple[bytes, ...]:
    """Return values of the first row key as split points.

    Raises:
        InvalidError: too many, unsorted, doubled, of the wrong type, or below every key.
    """
    field = schema.row_keys[0]
    if isinstance(values, (str, bytes)):
        hint = "give a list of values"
        raise InvalidError("split points are several", field=field.name, hint=hint)
    points = tuple(encode_field(field.type, key_value(field, value)) for value in values)
    if len(points) > SPLIT_POINTS_MAX:
        hint = "leaves that grow are split later"
        raise InvalidError(
            "too many split points", got=len(points), max=SPLIT_POINTS_MAX, hint=hint
        )
    longest = max(map(len, points), default=0)
    if longest > KEY_BYTES_MAX:
        hint = f"a key has at most {KEY_BYTES_MAX} bytes when encoded"
        raise InvalidError("a split point is too long", field=field.name, bytes=longest, hint=hint)
    for place, (before, after) in enumerate(pairwise(points), start=1):
        if before >= after:
            what = "doubled" if before == after else "unsorted"
            hint = "give each split point once, in ascending order"
            raise InvalidError(f"split points are {what}", field=field.name, place=place, hint=hint)
    return points

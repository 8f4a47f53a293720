"""The tree of partitions: who holds which keys. Leaves tile the line of encoded keys by
construction.

A node is a leaf, or is split at a point, the encoding of one or more leading key fields: keys below
the point lie left, the others right. Key ranges are never stored, they follow from the way down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.keys import (
    KEY_BYTES_MAX,
    KeyValue,
    encode_key,
    key_value,
    least_key,
    prefix_values,
)
from lakebed.model.names import PartitionId
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Field, Schema

ROOT = PartitionId(1)
SPLIT_POINTS_MAX = 65_536


class Partition(msgspec.Struct, frozen=True, array_like=True):
    """A node.

    point: encoded values of leading key fields; empty in a leaf.
    dimension: always 0.
    """

    id: PartitionId
    parent: PartitionId | None = None
    dimension: int = 0
    point: bytes = b""
    left: PartitionId | None = None
    right: PartitionId | None = None

    @property
    def is_leaf(self) -> bool:
        """Return whether the partition has no children."""
        return self.left is None


class PartitionTree:
    """All partitions of a table."""

    def __init__(self, nodes: Iterable[Partition]) -> None:
        self.nodes: Mapping[PartitionId, Partition] = {node.id: node for node in nodes}
        roots = [node.id for node in self.nodes.values() if node.parent is None]
        if len(roots) != 1:
            raise AssertionError(f"a tree has one root, got {len(roots)}")
        self.root = roots[0]
        self._key_ranges: dict[PartitionId, KeyRange] = {}
        self._check()

    def key_range(self, id_: PartitionId) -> KeyRange:
        """Return the range of encoded keys inside a partition."""
        return self._key_ranges[id_]

    def leaves(self, id_: PartitionId | None = None) -> Iterator[PartitionId]:
        """Yield the leaves under a partition, by default the root, in key order."""
        stack = [self.root if id_ is None else id_]
        while stack:
            node = self.nodes[stack.pop()]
            if node.left is None or node.right is None:
                yield node.id
            else:
                stack += [node.right, node.left]

    def _check(self) -> None:
        """Assert the geometry, and keep the key ranges: one root, children know their parent,
        points lie inside."""
        reached = 0
        stack = [(self.root, EVERYTHING)]
        while stack:
            id_, key_range = stack.pop()
            reached += 1
            self._key_ranges[id_] = key_range
            node = self.nodes[id_]
            if node.left is None or node.right is None:
                if node.left is not node.right:
                    raise AssertionError(f"partition {id_} has one child")
                continue
            if node.dimension != 0:
                raise AssertionError(f"{id_} is split on another line than that of keys")
            if not splits(key_range, node.point):
                raise AssertionError(f"{id_} is split outside its key range")
            for child in (node.left, node.right):
                if self.nodes[child].parent != id_:
                    raise AssertionError(f"{child} is not a child of {id_}")
            stack.append((node.left, KeyRange(key_range.min, node.point)))
            stack.append((node.right, KeyRange(node.point, key_range.max)))
        if reached != len(self.nodes):
            raise AssertionError("every partition hangs on the root")


def splits(key_range: KeyRange, point: bytes) -> bool:
    """Return whether a point cuts a range into two parts that are not empty."""
    return key_range.min < point and (key_range.max is None or point < key_range.max)


def check_reached(points: Sequence[bytes], key_range: KeyRange, fields: Sequence[Field]) -> None:
    """Refuse sorted split points that make a leaf without keys. fields: the row keys.

    The least value of a type has no key below it, nor has ("a", the least) one that is not below
    "a" itself.

    Raises:
        InvalidError: no key lies between a point and the one before, or the key range's begin.
    """
    for index, (before, point) in enumerate(pairwise((key_range.min, *points))):
        if least_key(fields, before) >= point:
            values = ", ".join(map(str, prefix_values(fields, point)))
            where = "between a split point and the one before" if index else "below a split point"
            hint = "leave it out: the leaf before it would stay empty for ever"
            raise InvalidError(f"no key lies {where}", point=values, index=index, hint=hint)


def grown(leaf: Partition, points: Sequence[bytes], *, next_id: int) -> list[Partition]:
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
        nodes.append(Partition(id_, parent, 0, inside[middle], left, right))
        grow(left, id_, inside[:middle])
        grow(right, id_, inside[middle + 1 :])

    grow(leaf.id, leaf.parent, points)
    return nodes


def split_points_of(schema: Schema, values: Iterable[object]) -> tuple[bytes, ...]:
    """Return values as split points: of the first row key, or tuples of the first row keys.

    Raises:
        InvalidError: too many, unsorted, doubled, of the wrong type, or below every key.
    """
    field = schema.row_keys[0]
    if isinstance(values, (str, bytes)):
        hint = "give a list of values"
        raise InvalidError("split points are not a list", field=field.name, hint=hint)
    points = tuple(_point_of(schema.row_keys, value) for value in values)
    if len(points) > SPLIT_POINTS_MAX:
        hint = "leaves that grow are split later"
        raise InvalidError(
            "too many split points", got=len(points), max=SPLIT_POINTS_MAX, hint=hint
        )
    longest = max(map(len, points), default=0)
    if longest > KEY_BYTES_MAX:
        hint = f"a key has at most {KEY_BYTES_MAX} bytes when encoded"
        raise InvalidError("a split point is too long", field=field.name, bytes=longest, hint=hint)
    for index, (before, after) in enumerate(pairwise(points), start=1):
        if before >= after:
            what = "doubled" if before == after else "unsorted"
            hint = "give each split point once, in ascending order"
            raise InvalidError(f"split points are {what}", field=field.name, index=index, hint=hint)
    check_reached(points, EVERYTHING, schema.row_keys)
    return points


def split_points_in(tree: PartitionTree, schema: Schema) -> list[KeyValue | tuple[KeyValue, ...]]:
    """Return where leaves begin, in order, as `split_points_of` takes it."""
    points = [tree.key_range(leaf).min for leaf in tree.leaves()]
    values = [prefix_values(schema.row_keys, point) for point in points if point]
    return [several[0] if len(several) == 1 else several for several in values]


def _point_of(fields: Sequence[Field], value: object) -> bytes:
    several = value if isinstance(value, (tuple, list)) else (value,)
    if not 0 < len(several) <= len(fields):
        names = ", ".join(field.name for field in fields)
        hint = "give a value of the first row key, or a tuple of the first ones"
        raise InvalidError("not a split point", row_keys=names, got=len(several), hint=hint)
    values = [key_value(field, one) for field, one in zip(fields, several, strict=False)]
    return encode_key(fields, values)

"""Ranges of keys: as people give them, and in the one canonical form, half open over encoded
keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.keys import (
    KeyValue,
    above_prefix,
    decode_field,
    encode_field,
    encode_key,
    field_end,
    key_value,
    key_value_text,
    prefix_values,
    successor,
)
from lakebed.model.schema import Field, Schema


class Range(msgspec.Struct, frozen=True):
    """Values of one key field between `min` and `max`; None: unbounded. Half open unless it says
    otherwise."""

    min: object = None
    max: object = None
    min_inclusive: bool = True
    max_inclusive: bool = False


class KeyRange(msgspec.Struct, frozen=True, order=True):
    """Encoded keys in `[min, max)`.

    min: b"" is below every key.
    max: None is above every key.
    """

    min: bytes = b""
    max: bytes | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether no key lies in the range."""
        return self.max is not None and self.max <= self.min

    def contains(self, key: bytes) -> bool:
        """Return whether an encoded key lies in the range."""
        return self.min <= key and (self.max is None or key < self.max)

    def meets(self, other: KeyRange) -> KeyRange:
        """Return what both hold; perhaps empty."""
        ends = [end for end in (self.max, other.max) if end is not None]
        return KeyRange(max(self.min, other.min), min(ends) if ends else None)

    def overlaps(self, other: KeyRange) -> bool:
        """Return whether some key may lie in both ranges."""
        least = max(self.min, other.min)
        return (self.max is None or least < self.max) and (other.max is None or least < other.max)


EVERYTHING = KeyRange()
Box = tuple[KeyRange, ...]
"""One range of encoded field values for each row key field."""


def canonical(field: Field, given: Range) -> KeyRange:
    """Return the half-open range of encoded values of the field.

    Raises:
        InvalidError: an end of the wrong type, or ends that are reversed.
    """
    least, most = (None if e is None else key_value(field, e) for e in (given.min, given.max))
    if least is not None and most is not None and _encoded(field, least) > _encoded(field, most):
        raise InvalidError(
            "the ends of the range are reversed",
            field=field.name,
            min=key_value_text(field, least),
            max=key_value_text(field, most),
            hint="give the smaller one as min",
        )
    if least is not None and not given.min_inclusive:
        after = successor(field.type, least)
        if after is None:  # above the largest integer there is nothing
            end = encode_field(field.type, least)
            return KeyRange(end, end)
        least = after
    if most is not None and given.max_inclusive:
        most = successor(field.type, most)
    return KeyRange(
        b"" if least is None else _encoded(field, least),
        None if most is None else _encoded(field, most),
    )


def box_of(schema: Schema, ranges: Mapping[str, object]) -> Box:
    """Return the box that holds the given range of each named row key field.

    A value of `ranges` is a Range, or a pair (min, max), half open.

    Raises:
        InvalidError: an unknown field, one that is not a row key, or a bad range.
    """
    box = [EVERYTHING] * len(schema.row_keys)
    for name, given in ranges.items():
        index = schema.dimension_of(name)
        box[index] = canonical(schema.row_keys[index], _as_range(name, given))
    return tuple(box)


def box_of_key(schema: Schema, key: object) -> Box:
    """Return the box that holds one exact key, or all keys that begin with these values.

    key: a value where there is one row key, a sequence of values, or values by name.

    Raises:
        InvalidError: too many values, or values of the wrong type.
    """
    if isinstance(key, Mapping):
        named = dict(key)
    else:
        values: Sequence[object] = key if isinstance(key, (tuple, list)) else (key,)
        if not 0 < len(values) <= len(schema.row_keys):
            names = ", ".join(f.name for f in schema.row_keys)
            raise InvalidError("a key has one value per row key", got=len(values), hint=names)
        named = {f.name: v for f, v in zip(schema.row_keys, values, strict=False)}
    for name, value in named.items():
        if value is None:
            hint = "leave it out: fewer values match all keys that begin with them"
            raise InvalidError("null is never a key", field=name, hint=hint)
    exact = {name: Range(v, v, max_inclusive=True) for name, v in named.items()}
    return box_of(schema, exact)


def span_of(fields: Sequence[Field], box: Box) -> tuple[KeyRange, bool]:
    """Return the range of whole keys that holds a box, and whether it holds nothing else."""
    prefix = b""
    for index, (field, r) in enumerate(zip(fields, box, strict=True)):
        if is_one_value(field, r):
            prefix += r.min
            continue
        least = prefix + r.min
        most = above_prefix(prefix) if r.max is None else prefix + r.max
        return KeyRange(least, most), all(rest == EVERYTHING for rest in box[index + 1 :])
    return KeyRange(prefix, above_prefix(prefix)), True


def whole_key_range(fields: Sequence[Field], box: Box) -> KeyRange | None:
    """Return the range of whole keys that a box is, its ends encodings of leading key values. None:
    the box holds fewer keys than lie between the least and the greatest of its own."""
    prefix = b""
    for index, (field, r) in enumerate(zip(fields, box, strict=True)):
        if is_one_value(field, r):
            prefix += r.min
            continue
        if any(rest != EVERYTHING for rest in box[index + 1 :]):
            return None
        end = _above_values(fields, prefix) if r.max is None else prefix + r.max
        return KeyRange(prefix + r.min, end)
    return KeyRange(prefix, _above_values(fields, prefix))


def _above_values(fields: Sequence[Field], prefix: bytes) -> bytes | None:
    """Return the encoding of leading key values above every key that begins with those of `prefix`
    and below every other one above it; None: no key lies above."""
    values = list(prefix_values(fields, prefix))
    while values:
        field = fields[len(values) - 1]
        after = successor(field.type, values.pop())
        if after is not None:
            return encode_key(fields, (*values, after))
    return None


def box_around(fields: Sequence[Field], key_range: KeyRange) -> Box:
    """Return a box that holds all keys of a region: the ends may be cut anywhere, so it is as small
    as the fields that both begin with allow."""
    box = [EVERYTHING] * len(fields)
    least, most = key_range.min, key_range.max
    for index, field in enumerate(fields):
        low, high = _leading(field, least), _leading(field, most or b"")
        if most is None:
            box[index] = KeyRange(least if low is None else low)
            break
        # A key whose field is what `most` begins with lies below it when more of `most` follows.
        box[index] = KeyRange(least if low is None else low, most if high == most else most + b"\0")
        if low is None or low != high:
            break
        least, most = least[len(low) :], most[len(low) :]
    return tuple(box)


def ranges_by_field(fields: Sequence[Field], whole: KeyRange) -> list[dict[str, Range]]:
    """Return a range of whole keys as ranges of fields, as users give them: their union holds just
    the same keys. The reverse of `whole_key_range`.

    whole: its ends are encodings of leading key values.
    """
    low = prefix_values(fields, whole.min)
    high = None if whole.max is None else prefix_values(fields, whole.max)
    same = 0
    while high is not None and same < min(len(low), len(high)) and low[same] == high[same]:
        same += 1
    below = range(0) if high is None else range(same, len(high))
    above = range(len(low) - 1, same if below and same < len(low) else same - 1, -1)
    found = [
        _by_field(fields, low[:at], Range(low[at], min_inclusive=at == len(low) - 1))
        for at in above
    ]
    if high is not None and below:
        least = low[same] if same < len(low) else None
        inclusive = least is None or same == len(low) - 1
        between = Range(least, high[same], min_inclusive=inclusive)
        found.append(_by_field(fields, high[:same], between))
        found += [_by_field(fields, high[:at], Range(None, high[at])) for at in below[1:]]
    return found or [{}]


def _by_field(fields: Sequence[Field], equal: Sequence[KeyValue], last: Range) -> dict[str, Range]:
    """Return the range of keys that begin with some values, the next one in a range."""
    named = {f.name: Range(v, v, max_inclusive=True) for f, v in zip(fields, equal, strict=False)}
    return named | {fields[len(equal)].name: last}


def _leading(field: Field, key: bytes) -> bytes | None:
    """Return the encoding of a field with which `key` begins; None: with none that is whole."""
    try:
        end = field_end(field.type, key, 0)
    except ValueError:
        return None
    return key[:end] if 0 < end <= len(key) else None


def is_one_value(field: Field, r: KeyRange) -> bool:
    """Return whether a range of a field's encodings holds just one."""
    if not r.min or r.is_empty:
        return False
    after = successor(field.type, decode_field(field.type, r.min))
    return r.max == (None if after is None else encode_field(field.type, after))


def union(ranges: Sequence[KeyRange]) -> tuple[KeyRange, ...]:
    """Return sorted ranges that do not meet and hold what the given ones hold."""
    merged: list[KeyRange] = []
    for r in sorted((r for r in ranges if not r.is_empty), key=lambda r: r.min):
        if merged and (merged[-1].max is None or r.min <= merged[-1].max):
            before = merged[-1]
            end = None if before.max is None or r.max is None else max(before.max, r.max)
            merged[-1] = KeyRange(before.min, end)
        else:
            merged.append(r)
    return tuple(merged)


def overlaps_any(key_range: KeyRange, ranges: Sequence[KeyRange]) -> bool:
    """Return whether a region overlaps some of the ranges, which are as `union` gives them."""
    end = len(ranges)
    if key_range.max is not None:
        end = bisect_left(ranges, key_range.max, key=lambda r: r.min)
    return end > 0 and key_range.overlaps(ranges[end - 1])  # those before it end before it


def _encoded(field: Field, value: KeyValue) -> bytes:
    return encode_field(field.type, value)


def _as_range(name: str, given: object) -> Range:
    if isinstance(given, Range):
        return given
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        hint = "give Range(min, max) or a pair (min, max)"
        raise InvalidError("what is given is not a range", field=name, hint=hint)
    return Range(*given)

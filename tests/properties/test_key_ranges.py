"""Key ranges of whole keys and boxes of their fields: neither says less than the other allows."""

from hypothesis import assume, given
from hypothesis import strategies as st

from lakebed.model.keys import encode_field, encode_key, prefix_values
from lakebed.model.ranges import (
    KeyRange,
    box_around,
    box_of,
    ranges_by_field,
    span_of,
    union,
    whole_key_range,
)
from lakebed.model.samples import Sample, split_points
from lakebed.model.schema import schema_of

SCHEMA = schema_of(row_keys={"a": "string", "b": "int32", "c": "binary"})
FIELDS = SCHEMA.row_keys
KEYS = st.tuples(
    st.sampled_from(["", "\x00", "a", "a\x00", "ab"]),
    st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1]),
    st.sampled_from([b"", b"\x00", b"\xff", b"\x00\xff"]),
)


@st.composite
def _ends(draw: st.DrawFn) -> bytes:
    """Return a prefix of a key, cut anywhere, perhaps with its last byte raised."""
    whole = encode_key(FIELDS, draw(KEYS))
    cut = whole[: draw(st.integers(0, len(whole)))]
    raised = cut and cut[-1] < 0xFF and draw(st.booleans())
    return cut[:-1] + bytes([cut[-1] + 1]) if raised else cut


@given(least=_ends(), most=st.none() | _ends(), keys=st.lists(KEYS, max_size=20))
def test_a_box_around_a_key_range_holds_all_its_keys(
    least: bytes, most: bytes | None, keys: list[tuple[str, int, bytes]]
) -> None:
    key_range = KeyRange(least, most)
    box = box_around(FIELDS, key_range)
    for key in keys:
        if key_range.contains(encode_key(FIELDS, key)):
            for field, value, r in zip(FIELDS, key, box, strict=True):
                assert r.contains(encode_field(field.type, value))


def _prefixes() -> st.SearchStrategy[bytes]:
    """Return encodings of leading values of a key."""
    return st.builds(lambda key, size: encode_key(FIELDS, key[:size]), KEYS, st.integers(0, 3))


@given(least=_prefixes(), most=st.none() | _prefixes())
def test_ranges_by_field_are_just_the_range_of_whole_keys(least: bytes, most: bytes | None) -> None:
    whole = KeyRange(least, most)
    assume(not whole.is_empty)
    boxes = [box_of(SCHEMA, one) for one in ranges_by_field(FIELDS, whole)]
    found = [r for r in (whole_key_range(FIELDS, box) for box in boxes) if r is not None]
    assert len(found) == len(boxes)
    assert union(found) == (whole,)


def test_a_box_around_ends_that_share_fields_tells_the_next_one() -> None:
    key_range = KeyRange(encode_key(FIELDS, ("a", 5)), encode_key(FIELDS, ("a", 9)))
    first, second, third = box_around(FIELDS, key_range)
    texts = [x for x in ("", "a", "a\x00", "b") if first.contains(encode_field("string", x))]
    numbers = [x for x in range(12) if second.contains(encode_field("int32", x))]
    assert (texts, numbers, third) == (["a"], [5, 6, 7, 8], KeyRange())


@given(st.lists(KEYS, max_size=20), st.dictionaries(st.sampled_from("abc"), KEYS, max_size=3))
def test_a_span_holds_its_box_and_says_so_when_it_holds_nothing_else(
    keys: list[tuple[str, int, bytes]], named: dict[str, tuple[str, int, bytes]]
) -> None:
    exact = {name: (key["abc".index(name)], None) for name, key in named.items()}
    box = box_of(SCHEMA, exact)
    span, is_exact = span_of(FIELDS, box)
    for key in keys:
        parts = [encode_field(f.type, v) for f, v in zip(FIELDS, key, strict=True)]
        inside = all(r.contains(part) for r, part in zip(box, parts, strict=True))
        in_span = span.contains(b"".join(parts))
        assert in_span or not inside
        assert inside or not (in_span and is_exact)


@given(st.lists(KEYS, max_size=40), st.integers(1, 9), st.integers(1, 3))
def test_split_points_lie_between_keys_and_are_keys_themselves(
    keys: list[tuple[str, int, bytes]], parts: int, stride: int
) -> None:
    encoded = sorted(encode_key(FIELDS, key) for key in keys)
    found = split_points([Sample(tuple(encoded), stride, len(encoded) * stride)], parts, FIELDS)
    assert len(found) < parts
    ends = [encoded[0] if encoded else b"", *found]
    for before, point in zip(ends, found, strict=False):
        assert prefix_values(FIELDS, point)
        assert before < point
        assert any(before <= key < point for key in encoded)
    assert not found or encoded[-1] >= found[-1]
    if parts > 1:
        assert bool(found) == (len(set(encoded)) > 1)

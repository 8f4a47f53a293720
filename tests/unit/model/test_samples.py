"""Where samples put split points."""

from collections.abc import Iterable

from lakebed.model.keys import encode_key, prefix_values
from lakebed.model.samples import Sample, split_points
from lakebed.model.schema import schema_of

FIELDS = schema_of(row_keys={"a": "string", "b": "int32", "c": "string"}).row_keys
Key = tuple[str, int, str]


def sample(keys: Iterable[Key], stride: int = 1) -> Sample:
    encoded = sorted(encode_key(FIELDS, key) for key in keys)
    return Sample(tuple(encoded), stride, len(encoded) * stride)


def points(parts: int, *samples: Sample) -> list[tuple[object, ...]]:
    found = split_points(samples, parts, FIELDS)
    assert list(found) == sorted(set(found))
    return [prefix_values(FIELDS, point) for point in found]


def test_the_first_field_is_cut_where_its_values_end() -> None:
    keys = [(letter, n, "") for letter in "abcd" for n in range(25)]
    assert points(4, sample(keys)) == [("b",), ("c",), ("d",)]
    assert points(2, sample(keys)) == [("c",)]
    assert points(1, sample(keys)) == []


def test_a_cut_that_is_nearly_even_but_of_fewer_fields_is_taken() -> None:
    keys = [("a", n, "") for n in range(40)] + [("b", n, "") for n in range(60)]
    assert points(2, sample(keys)) == [("b",)]


def test_one_value_of_the_first_field_is_cut_by_the_second() -> None:
    keys = [("a", n // 10, f"{n}") for n in range(100)]
    assert points(2, sample(keys)) == [("a", 5)]
    assert points(5, sample(keys)) == [("a", 2), ("a", 4), ("a", 6), ("a", 8)]


def test_one_value_of_two_fields_is_cut_by_the_third() -> None:
    keys = [("a", 7, f"{n:02}") for n in range(100)]
    assert points(4, sample(keys)) == [("a", 7, "25"), ("a", 7, "50"), ("a", 7, "75")]


def test_a_value_with_most_rows_is_cut_by_the_next_field_and_its_neighbours_are_not() -> None:
    keys = [("a", 0, ""), ("c", 0, "")] * 10 + [("b", n, "") for n in range(80)]
    assert points(5, sample(keys)) == [("b",), ("b", 30), ("b", 50), ("c",)]
    assert points(9, sample(keys))[:3] == [("b",), ("b", 12), ("b", 23)]


def test_a_key_with_most_rows_is_cut_off_from_the_others() -> None:
    keys = [("a", 1, "")] * 99 + [("z", 1, "")]
    assert points(4, sample(keys)) == [("z",)]
    keys = [("a", 1, "")] + [("z", 1, "")] * 99
    assert points(4, sample(keys)) == [("z",)]
    keys = [("m", 1, "")] + [("m", 2, "")] * 98 + [("m", 3, "")]
    assert len(points(2, sample(keys))) == 1


def test_one_whole_key_cannot_be_cut() -> None:
    assert points(8, sample([("a", 1, "x")] * 100), sample([("a", 1, "x")], stride=50)) == []
    assert points(8) == []
    assert points(8, sample([])) == []


def test_files_weigh_as_their_rows() -> None:
    many = sample([("a", n, "") for n in range(10)], stride=100)
    few = sample([("b", n, "") for n in range(10)])
    assert points(2, many, few) == [("a", 5)]


def test_every_part_has_a_key() -> None:
    keys = [("a", n, "") for n in range(5)]
    found = split_points([sample(keys)], 64, FIELDS)
    encoded = sorted(encode_key(FIELDS, key) for key in keys)
    assert [p for p in found if not encoded[0] < p <= encoded[-1]] == []
    assert len(found) == 4

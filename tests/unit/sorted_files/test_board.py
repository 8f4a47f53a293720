"""Which process takes which range of a merge."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.model.ranges import KeyRange
from lakebed.sorted_files.merging_together import Board


@settings(max_examples=200, deadline=None)
@given(
    count=st.integers(0, 20),
    processes=st.integers(2, 5),
    turns=st.lists(st.booleans(), max_size=80),
)
def test_each_range_is_taken_once(count: int, processes: int, turns: list[bool]) -> None:
    ranges = [KeyRange(bytes([n]), bytes([n + 1])) for n in range(count)]
    board = Board(ranges, processes)
    here: list[KeyRange] = []
    theirs: list[KeyRange] = []
    for place in range(count):
        taken = [board.take() for is_theirs in turns[place * 4 : place * 4 + 4] if is_theirs]
        theirs += [one[0] for one in taken if one is not None]
        if board.taken_by_helper(place) is None:
            here.append(ranges[place])
    assert board.take() is None
    assert sorted(here + theirs) == ranges
    assert not set(here) & set(theirs)


def test_helpers_take_what_lies_between_then_the_last() -> None:
    ranges = [KeyRange(bytes([n]), None) for n in range(7)]
    board = Board(ranges, 3)
    assert board.taken_by_helper(0) is None
    order = []
    while (taken := board.take()) is not None:
        order.append(ranges.index(taken[0]))
    assert order == [1, 2, 4, 5, 6, 3]
    board.end()
    assert board.take() is None

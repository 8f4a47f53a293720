"""Which process takes which range of a merge."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.model.ranges import KeyRange
from lakebed.sorted_files.merging_together import RANGES_EACH, Board


def board_of(count: int, processes: int) -> Board:
    return Board([KeyRange(n.to_bytes(2), None) for n in range(count)], processes)


def taken_one_after_the_other(board: Board) -> list[int]:
    """What one helper takes when nobody else does."""
    places: list[int] = []
    while (taken := board.take(places[-1] if places else None)) is not None:
        places.append(taken[0])
    return places


@settings(max_examples=200, deadline=None)
@given(
    count=st.integers(0, 80),
    processes=st.integers(2, 10),
    turns=st.lists(st.lists(st.integers(0, 8), max_size=6), max_size=80),
)
def test_each_range_is_taken_once(count: int, processes: int, turns: list[list[int]]) -> None:
    board = board_of(count, processes)
    before: dict[int, int] = {}
    here: list[int] = []
    theirs: list[int] = []
    for place in range(count):
        for helper in turns[place] if place < len(turns) else []:
            taken = board.take(before.get(helper))
            if taken is not None:
                before[helper] = taken[0]
                theirs.append(taken[0])
        if board.taken_by_helper(place) is None:
            here.append(place)
    assert board.take() is None
    assert sorted(here + theirs) == list(range(count))


def test_a_helper_goes_on_where_it_was_and_then_takes_what_is_last() -> None:
    board = board_of(11, 2)
    assert board.taken_by_helper(0) is None
    assert taken_one_after_the_other(board) == [5, 6, 7, 8, 9, 10, 4, 3, 2, 1]


def test_two_helpers_have_neighbours_of_their_own() -> None:
    board = board_of(12, 3)
    first, second = (board.take() for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first[0], second[0]) == (4, 8)
    firsts_next = board.take(first[0])
    assert firsts_next is not None
    assert firsts_next[0] == 5


def test_whoever_joins_what_helpers_made_merges_less_itself() -> None:
    for processes in range(2, 12):
        board = board_of(RANGES_EACH * processes, processes)
        begins = []
        for _ in range(processes - 1):
            taken = board.take()
            assert taken is not None
            begins.append(taken[0])
        lengths = [
            b - a for a, b in zip(begins, [*begins[1:], RANGES_EACH * processes], strict=True)
        ]
        assert max(lengths) - min(lengths) <= processes
        assert begins[0] < max(lengths)


def test_of_large_merges_little_lies_on_the_disk() -> None:
    board = board_of(100 * RANGES_EACH, 2)
    places = [board.taken_by_helper(place) is None for place in range(3)]
    assert all(places)
    taken = taken_one_after_the_other(board)
    at_once = 2 * RANGES_EACH
    assert [place // at_once for place in taken[:RANGES_EACH]] == [0] * RANGES_EACH
    assert taken[2 * RANGES_EACH] // at_once == 1


def test_nothing_is_taken_once_it_is_over() -> None:
    board = board_of(7, 3)
    board.end()
    assert board.take() is None

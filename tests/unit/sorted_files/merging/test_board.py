"""Which process takes which range of a merge."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.model.ranges import KeyRange
from lakebed.sorted_files.merging.parallel_merge import JOINING, NEIGHBOURS, RANGES_EACH, Board


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
    board = board_of(40, 3)
    first, second = (board.take() for _ in range(2))
    assert first is not None
    assert second is not None
    assert second[0] - first[0] == NEIGHBOURS
    firsts_next = board.take(first[0])
    assert firsts_next is not None
    assert firsts_next[0] == first[0] + 1


def test_the_next_range_is_left_to_who_waits_for_the_one_before() -> None:
    board = board_of(12, 2)
    for place in range(5):
        assert board.taken_by_helper(place) is None
        if place == 3:
            taken = board.take()  # a helper that comes late
            assert taken is not None
            assert taken[0] == 5
    assert board.taken_by_helper(5) is taken[1]
    following = board.take(5)
    assert following is not None
    assert following[0] == 7
    assert board.taken_by_helper(6) is None


def test_whoever_joins_what_helpers_made_merges_less_itself() -> None:
    for processes in range(2, 12):
        board = board_of(RANGES_EACH * processes, processes)
        taken = board.take()
        assert taken is not None
        assert taken[0] < NEIGHBOURS
        assert taken[0] == 0 or processes <= JOINING


def test_nothing_is_taken_once_it_is_over() -> None:
    board = board_of(7, 3)
    board.end()
    assert board.take() is None

"""States that are open while they are used, and closed when others need the room."""

import sqlite3
import threading

import pytest

from lakebed.statestore.table_state.closable_state import ClosableState, StateLimits
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.state import TableState


class States:
    """Closable states of one process. opened: how often any was opened."""

    def __init__(self, open_max: int) -> None:
        self.limits = StateLimits(open_max, warm_max=1)
        self.opened = 0

    def given(self) -> ClosableState:
        return ClosableState(self._open, self.limits)

    def _open(self) -> TableState:
        self.opened += 1
        return TableState(open_memory())


def number_in(state: TableState) -> int:
    return state.head().number


def is_closed(state: TableState) -> bool:
    try:
        state.connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return True
    return False


def test_a_closed_state_is_opened_again_when_it_is_used() -> None:
    states = States(open_max=1)
    first, second = states.given(), states.given()
    with first.held() as before:
        assert number_in(before) == 0
    with second.held() as other:
        assert is_closed(before)
        assert not is_closed(other)
    with first.held() as again:
        assert number_in(again) == 0
    assert states.opened == 3


def test_a_state_that_this_thread_holds_is_not_closed_when_it_opens_others() -> None:
    states = States(open_max=1)
    first = states.given()
    with first.held() as held:
        for _ in range(3):
            with states.given().held():
                assert not is_closed(held)
        with first.held() as same:
            assert same is held
        with states.given().held():
            assert not is_closed(held), "it is still held, once"


def test_a_state_that_another_thread_holds_is_not_closed() -> None:
    states = States(open_max=1)
    shared = states.given()
    is_held, may_end = threading.Event(), threading.Event()
    numbers: list[int] = []

    def hold() -> None:
        with shared.held() as state:
            is_held.set()
            assert may_end.wait(60)
            numbers.append(number_in(state))

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(60)
    with states.given().held():
        pass
    may_end.set()
    thread.join()
    assert numbers == [0]


def test_a_state_in_a_transaction_is_not_closed() -> None:
    states = States(open_max=1)
    state = states.given().state
    with state.reading(), states.given().held():
        assert number_in(state) == 0


def test_states_that_nobody_uses_give_their_pages_back(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[ClosableState] = []
    drop = ClosableState.drop_pages_if_unused

    def noted(state: ClosableState) -> bool:
        dropped.append(state)
        return drop(state)

    monkeypatch.setattr(ClosableState, "drop_pages_if_unused", noted)
    states = States(open_max=8)
    first, second = states.given(), states.given()
    for state in (first, second, second, first):
        with state.held() as opened:
            assert number_in(opened) == 0
    assert dropped == [first, second]
    assert states.opened == 2


def test_who_closes_a_state_waits_for_who_holds_it() -> None:
    states = States(open_max=1)
    shared = states.given()
    with shared.held() as state:
        closer = threading.Thread(target=shared.close)
        closer.start()
        assert number_in(state) == 0
    closer.join()
    assert is_closed(state)

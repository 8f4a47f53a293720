"""A state's sums are kept with each statement, whatever was undone before it."""

from __future__ import annotations

import pytest

from lakebed.statestore.table_state import sums
from lakebed.statestore.table_state.state import TableState
from tests.simulation.new_state import new_state

PUT = "INSERT OR REPLACE INTO positions VALUES ('a', ?, 0)"


def put_then_fail(state: TableState, *before: str) -> None:
    state.write(PUT, (1,))
    for statement in before:
        state.connection.execute(statement)
    raise RuntimeError


def triggers(state: TableState) -> set[str]:
    found = state.connection.execute("SELECT name FROM sqlite_temp_master WHERE type = 'trigger'")
    return {name for (name,) in found}


def test_a_connection_has_only_the_triggers_that_its_statements_need() -> None:
    state = new_state()
    with state.writing():
        state.write("UPDATE head SET floor = 3")
    assert triggers(state) == {"head_update"}
    with state.writing():
        state.write(PUT, (1,))
    assert triggers(state) == {"head_update", "positions_insert", "positions_delete"}


def test_what_is_put_over_a_row_that_is_there_needs_the_trigger_of_updates_too() -> None:
    state = new_state()
    put = "INSERT INTO pins VALUES ('p', 1, ?) ON CONFLICT(id) DO UPDATE SET until = excluded.until"
    for until in (5, 6):
        with state.writing():
            state.write(put, (until,))
    sums.verify_all(state.connection)
    assert triggers(state) == {"pins_insert", "pins_update"}


def test_sums_are_kept_after_the_transaction_that_made_the_triggers_was_undone() -> None:
    state = new_state()
    with pytest.raises(RuntimeError), state.writing():
        put_then_fail(state)
    assert triggers(state) == set()
    for value in (2, 3):
        with state.writing():
            state.write(PUT, (value,))
    sums.verify_all(state.connection)


def test_sums_are_kept_after_a_part_of_a_transaction_was_undone() -> None:
    state = new_state()
    with state.writing():
        with pytest.raises(RuntimeError), state.tentative("some"):
            put_then_fail(state)
        for value in (2, 3):
            state.write(PUT, (value,))
    sums.verify_all(state.connection)


def test_sums_are_kept_after_the_database_itself_undid_a_transaction() -> None:
    # as it does when its disk is full
    state = new_state()
    with pytest.raises(RuntimeError), state.writing():
        put_then_fail(state, "ROLLBACK")
    with state.writing():
        state.write(PUT, (2,))
    sums.verify_all(state.connection)


def test_a_statement_that_is_not_understood_is_not_run() -> None:
    state = new_state()
    with pytest.raises(AssertionError, match="no sums can be kept"), state.writing():
        state.write("REPLACE INTO positions VALUES ('a', 1, 0)")
    sums.verify_all(state.connection)

"""What the memory backends promise beyond the contracts."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.backends.memory.row_layout import RowLayout, RowLayouts
from lakebed.backends.system import SystemClock, system_random
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.keys import encode_key
from lakebed.model.schema import schema_of

SCHEMA = schema_of(
    row_keys={"a": "int32", "b": "string", "c": "timestamp[us, UTC]"},
    sort_keys={"d": "binary", "e": "date32"},
    values={"f": "int64?"},
)


def test_a_virtual_clock_moves_only_when_somebody_sleeps_or_advances_it() -> None:
    slept: list[float] = []
    clock = VirtualClock(on_sleep=slept.append)
    begin, started = clock.now(), clock.monotonic()
    assert clock.now() == begin
    clock.sleep(1.5)
    clock.advance(0.5)
    assert clock.now() == begin + 2_000_000
    assert clock.monotonic() == started + 2
    assert slept == [1.5]


def test_time_passes_even_when_nobody_sleeps_for_long() -> None:
    clock = VirtualClock()
    begin = clock.now()
    clock.sleep(0)
    assert clock.now() > begin


def test_a_machine_with_a_wrong_clock_lives_in_the_same_time() -> None:
    clock = VirtualClock()
    ahead, behind = clock.machine(3_600_000_000), clock.machine(-5)
    assert ahead.now() == clock.now() + 3_600_000_000
    ahead.sleep(2)
    assert behind.now() == clock.now() - 5
    assert ahead.monotonic() == behind.monotonic() == clock.monotonic() == 2
    ahead.offset_micros = 0
    assert ahead.now() == clock.now()


def test_unfinished_objects_are_removed_by_age() -> None:
    clock = VirtualClock()
    store = MemoryObjectStore(clock)
    old = store.create("old")
    clock.advance(100)
    young = store.create("young")
    assert store.abort_unfinished(older_than_seconds=50) == 1
    with pytest.raises(UnavailableError):
        old.finish()
    young.finish()
    assert list(store.list("")) == ["young"]


def test_the_system_clock_runs_and_its_chance_cannot_be_foretold() -> None:
    clock = SystemClock()
    before, started = clock.now(), clock.monotonic()
    clock.sleep(0.002)
    clock.sleep(-1)
    assert clock.now() > before > 1_700_000_000_000_000
    assert clock.monotonic() >= started + 0.002
    assert isinstance(system_random(), random.SystemRandom)


keys = st.tuples(
    st.integers(-(2**31), 2**31 - 1),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=5),
    st.integers(-(2**63), 2**63 - 1),
    st.binary(max_size=5),
    st.integers(-(2**31), 2**31 - 1),
)


@given(keys)
def test_fast_keys_are_the_keys(key: tuple[int, str, int, bytes, int]) -> None:
    layout = RowLayouts().of(SCHEMA)
    row = (*key, None)
    assert layout.key(row) == encode_key(SCHEMA.key_fields, key)
    assert layout.row_key(row) == encode_key(SCHEMA.row_keys, key[:3])
    assert layout.checked(row) == (layout.key(row), row)


@pytest.mark.parametrize("wrong", [None, 1.5, "x", 2**31, True])
def test_what_is_no_key_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidError):
        RowLayout(SCHEMA).checked((wrong, "", 0, b"", 0, None))


def test_dates_and_times_become_key_values() -> None:
    import datetime

    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    _, row = RowLayout(SCHEMA).checked((1, "", moment, b"", moment.date(), None))
    assert row == (1, "", 1_767_225_600_000_000, b"", 20_454, None)

import pyarrow as pa

from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.sorting.held_rows import HeldRows
from tests.unit.sorted_files.lakes import SLEEPER, batch_of

ROWS = [
    {"key": f"{n}", "timestamp": n, "value": "x" * n, "note": None if n % 3 else "n"}
    for n in range(50)
]


def test_copies_are_equal_and_stay_while_others_come() -> None:
    room = HeldRows(arrow_schema(SLEEPER), 1 << 20)
    given = [batch_of(SLEEPER, ROWS).slice(at, 7) for at in range(0, 40, 7)]
    found = [room.held(batch) for batch in given]
    assert found == given
    for batch in found:
        batch.validate(full=True)


def test_what_was_held_is_written_over_once_it_is_cleared() -> None:
    room = HeldRows(arrow_schema(SLEEPER), 1 << 20)
    first = room.held(batch_of(SLEEPER, ROWS[:9]))
    room.clear()
    second = room.held(batch_of(SLEEPER, ROWS[9:18]))
    assert second == batch_of(SLEEPER, ROWS[9:18])
    assert first != batch_of(SLEEPER, ROWS[:9])


def test_a_batch_without_room_is_not_copied() -> None:
    room = HeldRows(arrow_schema(SLEEPER), 100)
    batch = batch_of(SLEEPER, ROWS)
    assert room.held(batch) is batch
    assert room.held(batch_of(SLEEPER, ROWS[:0])) == batch_of(SLEEPER, ROWS[:0])


def test_columns_of_every_type_are_held() -> None:
    columns = pa.schema([("a", pa.list_(pa.int8())), ("b", pa.bool_()), ("c", pa.decimal128(9, 2))])
    batch = pa.RecordBatch.from_pylist([{"a": [1, None], "b": True, "c": None}] * 9, columns)
    assert HeldRows(columns, 9999).held(batch.slice(3)) == batch.slice(3)

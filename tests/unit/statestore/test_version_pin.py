"""A pin ends when its seconds of log time are over, unless its reader renews it in time; it stays
on its version."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.errors import InvalidError, VersionExpiredError
from lakebed.model.formats import Formats
from lakebed.model.names import TransactionNumber
from lakebed.statestore.version_pin import PIN_RENEWED_SECONDS, PIN_SECONDS, VersionPin
from tests.unit.exports.exported_lake import ExportedLake, exported_lake, rows


@pytest.fixture
def made(tmp_path: Path) -> Iterator[ExportedLake]:
    with exported_lake(tmp_path) as one:
        yield one


def pin_of(made: ExportedLake, seconds: int, number: int | None = None) -> VersionPin:
    pin = VersionPin(
        made.table._opened,
        "pin-1",
        made.clock,
        number=None if number is None else TransactionNumber(number),
        seconds=seconds,
    )
    pin.put()
    return pin


def newest(made: ExportedLake) -> int:
    with made.table._opened.head.reading() as state:
        return state.head().number


def collected(made: ExportedLake) -> int:
    """Merge, so that files become garbage, and collect it two days later."""
    made.table.compact()
    made.clock.advance(2 * PIN_SECONDS)
    return made.lake.run().files_collected


def until(made: ExportedLake) -> int:
    (pin,) = made.pins()
    return pin.until


@pytest.mark.parametrize("seconds", [1, 60, PIN_SECONDS])
def test_a_pin_ends_after_its_seconds(made: ExportedLake, seconds: int) -> None:
    before = made.table._opened.head.log_time()
    pin_of(made, seconds)
    assert until(made) == before + seconds * 10**6


@pytest.mark.parametrize(
    ("seconds", "after"), [(60, 30.0), (PIN_SECONDS, PIN_RENEWED_SECONDS)], ids=["short", "long"]
)
def test_a_pin_is_renewed_while_it_holds(made: ExportedLake, seconds: int, after: float) -> None:
    pin = pin_of(made, seconds)
    first = until(made)
    made.clock.advance(after - 1)
    pin.renew()
    assert until(made) == first
    made.clock.advance(1)
    pin.renew()
    assert until(made) > first
    pin.drop()
    assert made.pins() == []


@pytest.mark.parametrize("is_older", [False, True])
def test_a_pin_stays_on_its_version_when_it_is_renewed(made: ExportedLake, is_older: bool) -> None:
    number = newest(made) if is_older else None
    pin = pin_of(made, PIN_SECONDS, number)
    (first,) = made.pins()
    assert first.number == (number or newest(made))
    made.table.ingest(rows(0, 5))
    made.clock.advance(PIN_RENEWED_SECONDS)
    pin.renew()
    (second,) = made.pins()
    assert (second.id, second.number) == (first.id, first.number)
    assert second.until > first.until
    pin.drop()
    assert made.pins() == []


def test_a_pin_of_an_older_version_keeps_its_rows(made: ExportedLake) -> None:
    number, wanted = newest(made), made.table.to_arrow()
    made.table.ingest(rows(0, 5))
    pin = pin_of(made, 9 * PIN_SECONDS, number)
    collected(made)
    made.table.ingest(rows(0, 5))
    assert collected(made) > 0  # of what came behind the pin
    assert made.table.to_arrow(as_of=number).equals(wanted)
    pin.drop()
    assert made.lake.run().files_collected > 0


def test_a_version_that_was_collected_or_lies_ahead_gets_no_pin(made: ExportedLake) -> None:
    number = newest(made)
    assert collected(made) > 0
    before = newest(made)
    with pytest.raises(VersionExpiredError):
        pin_of(made, PIN_SECONDS, number)
    with pytest.raises(InvalidError):
        pin_of(made, PIN_SECONDS, before + 1)
    assert newest(made) == before
    assert made.pins() == []


@pytest.mark.parametrize("is_named", [False, True])
def test_a_pin_that_has_ended_is_not_renewed_for_another_version(
    made: ExportedLake, is_named: bool
) -> None:
    pin = pin_of(made, PIN_SECONDS, newest(made) if is_named else None)
    made.table.ingest(rows(0, 5))
    assert collected(made) > 0
    before = newest(made)
    with pytest.raises(VersionExpiredError):
        pin.renew()
    assert made.pins() == []
    assert newest(made) == before


def test_a_pin_that_has_ended_gets_its_version_again_while_that_is_kept(
    made: ExportedLake,
) -> None:
    made.table.compact()
    pin, wanted = pin_of(made, PIN_SECONDS), made.table.to_arrow()
    number = newest(made)
    assert pin.number == number
    made.clock.advance(2 * PIN_SECONDS)
    assert made.lake.run().files_collected > 0  # what became garbage before the pin
    assert made.pins() == []
    made.table.ingest(rows(0, 5))
    pin.renew()
    assert [one.number for one in made.pins()] == [number]
    made.table.compact()
    made.clock.advance(PIN_SECONDS / 2)
    made.lake.run()
    assert made.table.to_arrow(as_of=number).equals(wanted)


def test_where_older_releases_may_work_a_pin_is_renewed_as_they_do(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = made.table._opened.head
    monkeypatch.setattr(head, "formats", lambda: Formats(entry=5, state=3))
    pin = pin_of(made, PIN_SECONDS)
    (first,) = made.pins()
    made.table.ingest(rows(0, 5))
    made.clock.advance(PIN_RENEWED_SECONDS)
    pin.renew()
    (second,) = made.pins()
    assert (second.id, second.number) == (first.id, first.number)
    assert second.until > first.until

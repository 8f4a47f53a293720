"""A pin ends when its seconds of log time are over, unless its reader renews it in time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.statestore.version_pin import PIN_RENEWED_SECONDS, PIN_SECONDS, VersionPin
from tests.unit.exports.exported_lake import ExportedLake, exported_lake


@pytest.fixture
def made(tmp_path: Path) -> Iterator[ExportedLake]:
    with exported_lake(tmp_path) as one:
        yield one


def pin_of(made: ExportedLake, seconds: int) -> VersionPin:
    pin = VersionPin(made.table._opened, "pin-1", made.clock, seconds=seconds)
    pin.put()
    return pin


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

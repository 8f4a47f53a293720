"""What work used is summed by table, hour and kind, for anyone who reads it."""

from lakebed.observe.usage import NO_TABLE
from lakebed.ports.paying.usage_ledger import KEPT_SECONDS, LedgerEntry, hour_of, time_of
from tests.contracts.conftest import Ledgers

NOW = 480_000
ONE = "1" * 32


def entry(hour: int = NOW, table: str = ONE, kind: str = "ingest", **counts: float) -> LedgerEntry:
    return LedgerEntry(table=table, hour=hour, kind=kind, counts=counts or {"s3_put": 1.0})


def test_counts_of_one_hour_and_kind_are_summed_for_anyone(ledgers: Ledgers) -> None:
    ledgers().add(entry(s3_put=2, s3_put_bytes=1_000_000_000_000))
    ledgers().add(entry(s3_put=3, rows_in=7.5))
    assert ledgers().read(ONE, since=NOW, until=NOW + 1) == [
        entry(s3_put=5, s3_put_bytes=1_000_000_000_000, rows_in=7.5)
    ]


def test_hours_kinds_and_tables_are_apart_and_in_order(ledgers: Ledgers) -> None:
    ledger = ledgers()
    wanted = [entry(NOW, kind="compaction"), entry(NOW), entry(NOW + 1), entry(NOW + 30)]
    for one in reversed(wanted):
        ledger.add(one)
    ledger.add(entry(table=NO_TABLE, kind="process"))
    ledger.add(entry(table=ONE[:-1] + "2"))
    assert ledger.read(ONE, since=NOW, until=NOW + 31) == wanted
    assert ledger.read(NO_TABLE, since=0, until=NOW + 31) == [entry(table=NO_TABLE, kind="process")]


def test_a_span_begins_with_its_first_hour_and_ends_before_its_last(ledgers: Ledgers) -> None:
    ledger = ledgers()
    for hour in range(NOW, NOW + 4):
        ledger.add(entry(hour))
    found = ledger.read(ONE, since=NOW + 1, until=NOW + 3)
    assert [one.hour for one in found] == [NOW + 1, NOW + 2]
    assert ledger.read(ONE, since=NOW + 3, until=NOW + 3) == []


def test_nothing_is_read_of_a_ledger_that_has_nothing(ledgers: Ledgers) -> None:
    assert ledgers().read(ONE, since=0, until=NOW) == []
    assert ledgers().tables() == [NO_TABLE]


def test_what_is_added_once_is_not_added_to(ledgers: Ledgers) -> None:
    ledger = ledgers()
    assert ledger.add_once(entry(kind="stored", stored_byte_days=5))
    assert not ledgers().add_once(entry(kind="stored", stored_byte_days=6))
    assert ledger.add_once(entry(NOW + 24, kind="stored", stored_byte_days=7))
    found = ledger.read(ONE, since=NOW, until=NOW + 25)
    assert [one.counts["stored_byte_days"] for one in found] == [5, 7]


def test_more_entries_than_a_page_holds_are_read(ledgers: Ledgers) -> None:
    ledger = ledgers()
    counts = {f"counter_{n}": 1.0 for n in range(200)}
    for hour in range(60):
        for kind in ("a", "b"):
            ledger.add(LedgerEntry(table=ONE, hour=NOW + hour, kind=kind, counts=counts))
    assert len(ledger.read(ONE, since=NOW, until=NOW + 60)) == 120


def test_entries_of_more_than_400_days_ago_are_forgotten_or_about_to_be(ledgers: Ledgers) -> None:
    ledger, kept_hours = ledgers(), KEPT_SECONDS // 3_600
    ledger.add(entry(NOW - kept_hours - 1))
    ledger.add(entry(NOW - kept_hours))
    ledger.add(entry(NOW))
    hours = {one.hour for one in ledger.read(ONE, since=NOW - kept_hours, until=NOW + 1)}
    assert hours == {NOW - kept_hours, NOW}


def test_an_hour_is_of_the_times_in_it() -> None:
    assert hour_of(time_of(NOW)) == NOW
    assert hour_of(time_of(NOW + 1)) == NOW + 1

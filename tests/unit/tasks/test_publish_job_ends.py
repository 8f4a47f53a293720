"""Ends of jobs that users asked for are published, at least once, each under one id."""

from collections.abc import Sequence
from typing import Any

import pytest

from lakebed.errors import UnavailableError
from lakebed.model.names import JobId, Micros, TableId, TableName, TransactionNumber
from lakebed.ports.job_end_bus import JobEnd
from lakebed.ports.job_tracker import NO_TABLE, JobReport
from lakebed.tasks.publish_job_ends import REASON_CHARACTERS_MAX, PublishJobEnds, id_of_end

TABLE = TableId("a" * 32)


class Bus:
    """Keeps what is put. fails: how often it refuses, having taken what it was given."""

    def __init__(self, fails: int = 0) -> None:
        self.ends: list[JobEnd] = []
        self._fails = fails

    def put(self, ends: Sequence[JobEnd]) -> None:
        self.ends += ends
        if self._fails:
            self._fails -= 1
            raise UnavailableError("no answer")


def report(**facts: object) -> JobReport:
    told: dict[str, Any] = {"table": TABLE, "job": JobId("j"), "kind": "ingest"}
    return JobReport(**{**told, "event": "committed", "at": Micros(7), **facts})


def published(bus: Bus, *reports: JobReport) -> int:
    service = PublishJobEnds(bus, instance="dev", names=lambda: {TABLE: TableName("trips")})
    return service.run(reports)


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        ("ingest", {"committed", "rejected"}),
        ("bulk import", {"committed", "rejected", "failed"}),
        ("query", {"finished", "rejected"}),
        ("compaction", set()),
    ],
)
def test_what_is_an_end_depends_on_the_kind_of_job(kind: str, ends: set[str]) -> None:
    bus = Bus()
    told = ("accepted", "started", "finished", "committed", "rejected", "failed", "given up")
    count = published(bus, *(report(kind=kind, event=event) for event in told))
    assert {end.event for end in bus.ends} == ends
    assert count == len(ends)


def test_an_end_says_table_job_event_rows_and_reason() -> None:
    bus = Bus()
    published(
        bus,
        report(rows=10, filtered=2, number=TransactionNumber(5)),
        report(event="rejected", table=NO_TABLE, reason="table-missing: " + "x" * 5_000),
    )
    committed, rejected = bus.ends
    assert (committed.instance, committed.table, committed.table_id) == ("dev", "trips", TABLE)
    assert (committed.rows, committed.filtered, committed.number) == (10, 2, 5)
    assert rejected.table is None
    assert len(rejected.reason) == REASON_CHARACTERS_MAX
    assert rejected.reason.startswith("table-missing: ")


def test_an_end_that_is_published_again_has_the_same_id() -> None:
    bus = Bus(fails=1)
    one = report(number=TransactionNumber(5))
    with pytest.raises(UnavailableError):
        published(bus, one)
    published(bus, one)
    assert len(bus.ends) == 2
    assert len({end.id for end in bus.ends}) == 1


def test_ends_that_differ_have_ids_that_differ() -> None:
    number = TransactionNumber(5)
    assert id_of_end(report(number=number)) == id_of_end(report(number=number, at=Micros(8)))
    others = [
        report(number=TransactionNumber(6)),
        report(number=number, job=JobId("k")),
        report(number=number, table=TableId("b" * 32)),
        report(event="rejected"),
        report(event="rejected", at=Micros(8)),
    ]
    assert len({id_of_end(one) for one in [report(number=number), *others]}) == len(others) + 1


def test_a_lake_without_ends_asks_for_no_names() -> None:
    def names() -> dict[TableId, TableName]:
        raise AssertionError("asked")

    assert PublishJobEnds(Bus(), instance="dev", names=names).run([report(event="started")]) == 0

"""What a unit of work used is kept with one request, and never harms the work."""

import logging
from collections.abc import Iterator

import pytest

from lakebed.backends.memory import MemoryUsageLedger, VirtualClock
from lakebed.errors import DeniedError, LakebedError, UnavailableError
from lakebed.observe import usage
from lakebed.observe.usage import NO_TABLE, OWN, Counts
from lakebed.ports.paying.usage_ledger import LedgerEntry, hour_of
from lakebed.tasks.usage_keeper import HELD_SECONDS, RunsOn, UsageKeeper


class Ledger(MemoryUsageLedger):
    """One that counts calls, and refuses them when told."""

    def __init__(self) -> None:
        super().__init__()
        self.added: list[LedgerEntry] = []
        self.error: LakebedError | None = None

    @property
    def taken_by_add(self) -> Counts:
        return {"dynamodb_requests": 1, "dynamodb_write_units": 1}

    def add(self, entry: LedgerEntry) -> None:
        usage.count("dynamodb_requests")  # as its client does
        if self.error is not None:
            raise self.error
        self.added.append(entry)
        super().add(entry)

    def kept(self) -> dict[tuple[str, str], Counts]:
        """Return what was added, by kind and table, without what adding takes."""
        return {(one.kind, one.table): _without_itself(one.counts) for one in self.added}


def _without_itself(counts: Counts) -> Counts:
    less = {"dynamodb_requests": 1, "dynamodb_write_units": 1}
    found = {name: amount - less.get(name, 0) for name, amount in counts.items()}
    return {name: amount for name, amount in found.items() if amount}


@pytest.fixture(autouse=True)
def _nothing_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(usage, "_seconds", [lambda: (0.0, 0.0)])
    token = usage._collector.set(usage.PROCESS)
    usage.PROCESS.take()
    yield
    usage._collector.reset(token)


def keeper(
    ledger: Ledger, clock: VirtualClock | None = None, on: RunsOn | None = None
) -> UsageKeeper:
    made = UsageKeeper(ledger, clock=clock or VirtualClock(), runs_on=on)
    usage.collect_in(made.collector)
    return made


def worked(kind: str, table: str = NO_TABLE, **counts: float) -> None:
    with usage.work(kind, table):
        usage.count_all(counts)


def test_a_unit_on_one_table_is_one_request_and_counts_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "lakebed")
    ledger, clock = Ledger(), VirtualClock()
    kept = keeper(ledger, clock)
    worked("compaction", "t", s3_get=3)
    kept.keep()
    counts: Counts = {"s3_get": 3, "dynamodb_requests": 1, "dynamodb_write_units": 1}
    hour = hour_of(clock.now())
    assert ledger.added == [LedgerEntry(table="t", hour=hour, kind="compaction", counts=counts)]
    (record,) = caplog.records
    assert record.getMessage().startswith("usage_counted table=t kind=compaction s3_get=3")
    kept.keep()
    kept.close()
    assert len(ledger.added) == 1, "and the request itself is counted nowhere else"


def test_what_no_table_caused_waits_until_it_is_worth_a_request() -> None:
    ledger, clock = Ledger(), VirtualClock()
    kept = keeper(ledger, clock)
    for _ in range(3):
        worked("compaction", "t", s3_get=1)
        worked(OWN, sqs_requests=1)
        kept.keep()
    assert [one.table for one in ledger.added] == ["t", "t", "t"]
    clock.advance(HELD_SECONDS)
    kept.keep()
    assert ledger.kept()[OWN, NO_TABLE] == {"sqs_requests": 3}
    worked(OWN, sqs_requests=1)
    kept.close()
    assert ledger.kept()[OWN, NO_TABLE] == {"sqs_requests": 1}


def test_a_run_of_a_function_is_one_request_whatever_it_did_beside() -> None:
    ledger = Ledger()
    kept = keeper(ledger, on=RunsOn(in_runs=True))
    with usage.work("splitting-handle"):
        usage.count("lambda_runs")
        worked("splitting", "t", s3_get=2)
    usage.count("s3_list")
    kept.keep()
    assert ledger.kept() == {("splitting", "t"): {"s3_get": 2, "lambda_runs": 1, "s3_list": 1}}
    ledger.added.clear()
    worked("splitting-trigger", lambda_runs=1)
    usage.count("s3_list")
    kept.keep()
    ((kind, counts),) = ledger.kept().items()
    assert kind[1] == NO_TABLE
    assert counts == {"lambda_runs": 1, "s3_list": 1}


def test_a_run_on_several_tables_is_a_request_for_each() -> None:
    ledger = Ledger()
    kept = keeper(ledger, on=RunsOn(in_runs=True))
    with usage.work("committer-commit"):
        usage.count("lambda_runs")
        worked("commits", "t1", s3_get=1)
        worked("commits", "t2", s3_get=2)
    kept.keep()
    assert ledger.kept() == {
        ("commits", "t1"): {"s3_get": 1, "lambda_runs": 1},
        ("commits", "t2"): {"s3_get": 2},
    }


def test_seconds_are_paid_for_as_what_the_process_runs_on() -> None:
    ledger = Ledger()
    kept = keeper(ledger, on=RunsOn(lambda_gb=0.5))
    worked("splitting", "t", life_seconds=4)
    kept.keep()
    assert ledger.kept()["splitting", "t"]["lambda_gb_seconds"] == 2
    kept = keeper(ledger, on=RunsOn(vcpus=2, gb=8))
    worked("compaction", "t", life_seconds=10)
    kept.keep()
    found = ledger.kept()["compaction", "t"]
    paid = [found[f"{n}_seconds"] for n in ("fargate_vcpu", "fargate_gb", "address")]
    assert paid == [20, 80, 10]


def test_a_ledger_that_is_busy_harms_nothing_and_is_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "lakebed")
    ledger = Ledger()
    ledger.error = UnavailableError("busy")
    kept = keeper(ledger)
    worked("ingest", "t", s3_put=1)
    kept.keep()
    assert "usage_lost" in caplog.text
    ledger.error = None
    worked("ingest", "t", s3_put=5)
    kept.keep()
    assert ledger.kept() == {("ingest", "t"): {"s3_put": 5}}


def test_who_may_not_add_to_the_ledger_asks_once() -> None:
    ledger = Ledger()
    ledger.error = DeniedError("no")
    kept = keeper(ledger)
    for table in ("t1", "t2"):
        worked("query", table, s3_get=1)
    kept.keep()
    ledger.error = None
    worked("query", "t1", s3_get=1)
    kept.close()
    assert ledger.added == []
    UsageKeeper(None, clock=VirtualClock()).keep()


def test_a_lake_that_is_used_for_long_is_kept_now_and_then() -> None:
    ledger, clock = Ledger(), VirtualClock()
    kept = keeper(ledger, clock)
    worked("query", "t", s3_get=1)
    kept.keep_if_due()
    assert ledger.added == []
    clock.advance(HELD_SECONDS)
    kept.keep_if_due()
    assert ledger.kept() == {("query", "t"): {"s3_get": 1}}


def test_two_lakes_in_one_process_do_not_mix() -> None:
    one, other = Ledger(), Ledger()
    of_one, of_other = keeper(one), keeper(other)
    usage.collect_in(of_one.collector)
    worked("query", "t1", s3_get=1)
    usage.collect_in(of_other.collector)
    worked("query", "t2", s3_get=1)
    of_other.close()
    of_one.close()
    assert (list(one.kept()), list(other.kept())) == ([("query", "t1")], [("query", "t2")])

"""What was spent follows from counts and prices, however it is summed."""

import datetime

import msgspec
import pytest

from lakebed.costs.idle_costs import idle_parts, standing_parts
from lakebed.costs.prices import packaged_prices
from lakebed.costs.spent import STANDING, WAYS, AskedCosts, CostReport, spent
from lakebed.observe.usage import NO_TABLE
from lakebed.ports.paying.usage_ledger import LedgerEntry

PRICES = packaged_prices()
PER = PRICES.prices
DAY = datetime.date(2026, 11, 27)
HOUR = 24 * 20_000


def entry(table: str, kind: str, hour: int = HOUR, **counts: float) -> LedgerEntry:
    return LedgerEntry(table=table, hour=hour, kind=kind, counts=counts)


def report(entries: list[LedgerEntry], **asked: object) -> CostReport:
    usual = AskedCosts(by="table", names={"t1": "trips", NO_TABLE: NO_TABLE}, now=DAY)
    return spent(entries, PRICES, msgspec.structs.replace(usual, **asked))


ENTRIES = [
    entry("t1", "ingest", s3_put=1_000, s3_put_bytes=5e8, rows_in=1e6),
    entry("t1", "compaction", HOUR + 30, fargate_vcpu_seconds=7_200, s3_put_bytes=1e9),
    entry("t1", "compaction", HOUR + 31, rows_merged=2e6),
    entry("gone", "query", HOUR + 24, s3_get=1e6, lambda_runs=10, rows_read=1e3, queries=4),
    entry(NO_TABLE, "splitting-trigger", dynamodb_read_units=1e6, sqs_requests=1, sqs_polls=1),
]
INGEST, MERGE = 1_000 * PER["s3_put"], 2 * PER["fargate_vcpu_hour"]
QUERY = 1e6 * PER["s3_get"] + 10 * PER["lambda_request"]
TICKS = 1e6 * PER["dynamodb_read_unit"] + 2 * PER["sqs_request"]


@pytest.mark.parametrize(
    ("by", "wanted"),
    [
        (
            "table",
            {"trips": INGEST + MERGE, "gone": QUERY, NO_TABLE: TICKS},
        ),
        (
            "kind",
            {"ingest": INGEST, "compaction": MERGE, "query": QUERY, "splitting-trigger": TICKS},
        ),
        ("day", {"2024-10-04": INGEST + TICKS, "2024-10-05": MERGE + QUERY}),
        (
            "service",
            {
                "S3": INGEST + 1e6 * PER["s3_get"],
                "Fargate": MERGE,
                "DynamoDB": 1e6 * PER["dynamodb_read_unit"],
                "SQS": 2 * PER["sqs_request"],
                "Lambda": 10 * PER["lambda_request"],
            },
        ),
    ],
)
def test_dollars_are_summed_as_asked(by: str, wanted: dict[str, float]) -> None:
    found = report(ENTRIES, by=by)
    assert {line.name: line.dollars for line in found.lines} == pytest.approx(wanted)
    assert found.dollars == pytest.approx(INGEST + MERGE + QUERY + TICKS)
    in_order = [line.name for line in found.lines]
    by_cost = sorted(wanted, key=lambda name: -wanted[name])
    assert in_order == (sorted(wanted) if by == "day" else by_cost)


def test_a_billion_rows_cost_what_their_kinds_of_work_did() -> None:
    each = report(ENTRIES).per_billion_rows
    assert each.taken_in == pytest.approx(INGEST * 1_000)
    assert each.merged == pytest.approx(MERGE * 500)
    assert each.read == pytest.approx(QUERY * 1e6)
    assert each.merging_of_taken_in == pytest.approx(MERGE * 1_000)
    assert report(ENTRIES).per_million_queries == pytest.approx(QUERY / 4 * 1e6)
    none = report([entry("t1", "sweep", s3_list=1)]).per_billion_rows
    assert (none.taken_in, none.merged, none.read) == (None, None, None)


def test_write_amplification_is_bytes_merged_over_bytes_taken_in() -> None:
    assert report(ENTRIES).write_amplification == 2
    assert report(ENTRIES[1:]).write_amplification is None
    local = [
        entry("t1", "ingest", local_put_bytes=100),
        entry("t1", "compaction", local_put_bytes=50),
    ]
    assert report(local).write_amplification == 0.5


def test_a_directory_costs_nothing() -> None:
    names = ("local_get", "local_put", "local_writes", "life_seconds", "deleted_bytes")
    counts = dict.fromkeys((*names, "local_byte_days", "s3_delete"), 9e12)
    found = report([LedgerEntry(table="t1", hour=HOUR, kind="ingest", counts=counts)])
    assert found.dollars == 0
    assert found.lines[0].counts == counts


def test_what_an_instance_costs_while_it_is_idle_is_added_for_the_days_it_was_there() -> None:
    found = report(ENTRIES, standing=True, by="kind")
    (line,) = [line for line in found.lines if line.name == STANDING]
    month = sum(amounts.dollars(PRICES) for amounts in standing_parts().values())
    assert line.dollars == pytest.approx(month / (365 / 12) * 2)
    assert found.days == 2
    assert set(standing_parts()) < set(idle_parts()), "what runs count is not added again"


def test_bytes_are_paid_for_by_the_day_and_deleted_ones_until_the_midnight_after_their_days() -> (
    None
):
    month, kept = 365 / 12, entry("t1", "stored", stored_byte_days=3e9)
    found = report([kept, entry("t1", "garbage", deleted_bytes=5e9)], deleted_days=7)
    assert found.dollars == pytest.approx((3 + 5 * 7.5) / month * PER["s3_gb_month"])


def test_nothing_is_reported_of_nothing() -> None:
    for way in WAYS:
        found = report([], by=way, standing=True)
        assert (found.lines, found.dollars, found.days) == ([], 0, 0)


def test_old_prices_and_those_of_another_region_are_told() -> None:
    assert report([], region=PRICES.region).notes == []
    late = PRICES.date + datetime.timedelta(days=366)
    found = report([], region="eu-central-1", now=late)
    assert [note.split(":")[0] for note in found.notes] == [
        "the prices are of 2026-11-01, more than a year ago",
        "the prices are of us-east-1, and the instance is in eu-central-1",
    ]

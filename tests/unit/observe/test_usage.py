"""Each count reaches the work that caused it, from whatever thread, and is taken once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Barrier, Thread

import pytest

from lakebed.observe import usage
from lakebed.observe.usage import NO_TABLE, OWN, Counts, UsageCollector


@pytest.fixture
def collector() -> UsageCollector:
    return UsageCollector()


@pytest.fixture(autouse=True)
def _counted_here(collector: UsageCollector, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(usage, "_seconds", [lambda: (0.0, 0.0)])
    token = usage._collector.set(collector)
    yield
    usage._collector.reset(token)


def taken(collector: UsageCollector) -> dict[tuple[str, str], Counts]:
    return {(one.kind, one.table): one.counts for one in collector.take()}


def test_what_is_done_counts_as_the_work_in_hand_and_else_as_the_processs_own(
    collector: UsageCollector,
) -> None:
    usage.count("s3_get")
    with usage.work("ingest", "t1"):
        usage.count("s3_put", 2)
        with usage.work("commits", "t2"):
            usage.count("s3_put", 3)
        usage.count("s3_get_bytes", 0.5)
    usage.count("s3_get")
    assert taken(collector) == {
        (OWN, NO_TABLE): {"s3_get": 2},
        ("ingest", "t1"): {"s3_put": 2, "s3_get_bytes": 0.5},
        ("commits", "t2"): {"s3_put": 3},
    }


def test_work_on_a_table_inside_of_work_on_it_counts_as_the_outer_one(
    collector: UsageCollector,
) -> None:
    with usage.work("delete", "t"), usage.work("compaction", "t"):
        usage.count("s3_put")
    with usage.work("query-answer"), usage.work("query", "t"):
        usage.count("s3_get")
    assert taken(collector) == {("delete", "t"): {"s3_put": 1}, ("query", "t"): {"s3_get": 1}}


def test_what_was_taken_is_not_taken_again_and_nothing_is_lost(collector: UsageCollector) -> None:
    with usage.work("ingest", "t") as counted:
        usage.count("s3_put")
        assert taken(collector) == {("ingest", "t"): {"s3_put": 1}}
        usage.count("s3_put")
        counted.count("s3_get")
    assert taken(collector) == {("ingest", "t"): {"s3_put": 1, "s3_get": 1}}
    assert taken(collector) == {}


def test_threads_of_a_pool_count_for_who_gave_them_something_to_do(
    collector: UsageCollector,
) -> None:
    def read(requests: int) -> None:
        for _ in range(requests):
            usage.count("s3_get")

    with ThreadPoolExecutor(8) as pool:
        for table in ("t1", "t2", "t3"):
            with usage.work("query", table):
                reads = usage.carried(read)
                for _ in range(50):
                    pool.submit(reads, 100)
    assert taken(collector) == {("query", f"t{n}"): {"s3_get": 5_000} for n in (1, 2, 3)}


def test_a_thread_that_was_handed_nothing_does_not_count_for_another_lake(
    collector: UsageCollector,
) -> None:
    before = {one.kind: one.counts.get("kms_requests", 0) for one in usage.PROCESS.take()}
    with usage.work("query", "t"):
        thread = Thread(target=lambda: copy_context().run(usage.count, "kms_requests"))
        thread.start()
        thread.join()
    if not taken(collector):  # later Pythons hand threads the context of who begins them
        (own,) = [one for one in usage.PROCESS.take() if "kms_requests" in one.counts]
        assert (own.kind, own.counts["kms_requests"]) == (OWN, 1), before


def test_many_threads_at_once_lose_no_count_while_they_are_taken(
    collector: UsageCollector,
) -> None:
    together, total = Barrier(9), 0.0

    def work() -> None:
        together.wait()
        for _ in range(20_000):
            usage.count("s3_get")

    with usage.work("query", "t"):
        threads = [Thread(target=usage.carried(work)) for _ in range(8)]
    for thread in threads:
        thread.start()
    together.wait()
    while any(thread.is_alive() for thread in threads):
        total += sum(one.counts.get("s3_get", 0) for one in collector.take())
    total += sum(one.counts.get("s3_get", 0) for one in collector.take())
    assert total == 160_000


def test_a_stream_counts_what_makes_its_items_and_not_what_is_done_with_them(
    collector: UsageCollector,
) -> None:
    def made() -> Iterator[int]:
        try:
            for n in range(3):
                usage.count("s3_get")
                yield n
        finally:
            usage.count("s3_delete")

    items = usage.each("query", "t", made())
    with usage.work("ingest", "other"):
        for _ in items:
            usage.count("s3_put")
            break
        items.close()  # type: ignore[attr-defined]  # it is a generator
    assert taken(collector) == {
        ("query", "t"): {"s3_get": 1, "s3_delete": 1},
        ("ingest", "other"): {"s3_put": 1},
    }


def test_time_counts_once_where_work_is_inside_of_work(collector: UsageCollector) -> None:
    clock = [0.0, 0.0]
    usage.take_time_from(lambda: (clock[0], clock[1]))
    with usage.work("compaction-tasks"):
        clock[0] += 10
        with usage.work("compaction", "t"):
            clock[0] += 5
            clock[1] += 2
        clock[1] += 1
    assert taken(collector) == {
        ("compaction-tasks", NO_TABLE): {"life_seconds": 10, "processor_seconds": 1},
        ("compaction", "t"): {"life_seconds": 5, "processor_seconds": 2},
    }


def test_work_that_began_without_a_clock_takes_no_time(collector: UsageCollector) -> None:
    with usage.work("splitting-handle"):
        usage.take_time_from(lambda: (6_000.0, 50.0))
    assert taken(collector) == {}


def test_what_is_not_to_be_counted_is_not(collector: UsageCollector) -> None:
    with usage.work("ingest", "t"), usage.uncounted():
        usage.count("dynamodb_requests")
        usage.count_all({"s3_get": 3})
    assert taken(collector) == {}


def test_what_another_process_counted_is_added(collector: UsageCollector) -> None:
    with usage.work("compaction", "t"):
        usage.count_all({"s3_get": 3, "of a newer release": 1})
    assert taken(collector) == {("compaction", "t"): {"s3_get": 3, "of a newer release": 1}}

"""Beats and owners: who is seen, and numbers that rise for ever (R3)."""

import threading

import pytest

from lakebed.errors import InvalidError
from lakebed.ports.leases import (
    AT_LEAST_MAX,
    NAME_BYTES_MAX,
    REPORT_BYTES_MAX,
    WORKER_BYTES_MAX,
    Leases,
    Owner,
    OwnerNumber,
    WorkerBeat,
    WorkerId,
)
from tests.contracts.conftest import LeasesOf

ANN, BEN, NONE = WorkerId("ann"), WorkerId("ben"), WorkerId("")


@pytest.fixture
def view(leases: LeasesOf) -> Leases:
    return leases()


def all_owners(view: Leases, prefix: str = "", owners_max: int = 7) -> list[str]:
    found: list[str] = []
    while page := view.owners(
        prefix=prefix, after=found[-1] if found else "", owners_max=owners_max
    ):
        assert len(page) <= owners_max
        found += [owner.name for owner in page]
    return found


def test_beats_are_counted_and_the_last_report_is_seen_by_anyone(leases: LeasesOf) -> None:
    assert leases().workers() == []
    leases().beat(BEN, b"")
    leases().beat(ANN, b"first")
    leases().beat(ANN, b"\x00\xff")
    first, second = leases().workers()
    assert (first.worker, first.report) == (ANN, b"\x00\xff")
    assert second == WorkerBeat(BEN, second.counter, b"")
    leases().beat(ANN, b"third")
    again, same = leases().workers()
    assert again.counter > first.counter
    assert same == second


def test_a_worker_that_has_left_is_listed_again_with_its_next_beat(leases: LeasesOf) -> None:
    leases().beat(ANN, b"")
    leases().beat(BEN, b"")
    for _ in ("once", "again"):
        leases().leave(ANN)
        assert [beat.worker for beat in leases().workers()] == [BEN]
    leases().beat(ANN, b"x")
    assert [beat.worker for beat in leases().workers()] == [ANN, BEN]


def test_each_claim_has_a_greater_number_whoever_claims(leases: LeasesOf) -> None:
    numbers = [leases().claim("a/1", worker, 0) for worker in (ANN, ANN, BEN, ANN)]
    assert numbers == sorted(set(numbers))
    assert numbers[0] >= 1
    assert leases().owner("a/1") == Owner("a/1", numbers[-1], ANN)


def test_a_claim_is_at_least_what_is_asked_and_goes_on_from_there(leases: LeasesOf) -> None:
    assert leases().claim("a/1", ANN, 41) == 41
    assert leases().claim("a/1", BEN, 7) == 42
    assert leases().claim("a/1", ANN, 43) == 43
    assert leases().claim("a/1", ANN, AT_LEAST_MAX) == AT_LEAST_MAX
    assert leases().claim("a/1", BEN, 0) == AT_LEAST_MAX + 1
    assert leases().claim("a/2", BEN, 0) == 1


def test_what_was_given_up_has_no_owner_and_keeps_its_number(leases: LeasesOf) -> None:
    number = leases().claim("a/1", ANN, 5)
    for _ in ("once", "again"):
        leases().release("a/1", ANN, number)
        assert leases().owner("a/1") == Owner("a/1", number, NONE)
    assert leases().claim("a/1", BEN, 0) == 6


def test_only_the_newest_claim_is_given_up(view: Leases) -> None:
    first = view.claim("a/1", ANN, 0)
    second = view.claim("a/1", ANN, 0)
    view.release("a/1", ANN, first)
    assert view.owner("a/1") == Owner("a/1", second, ANN)
    third = view.claim("a/1", BEN, 0)
    view.release("a/1", ANN, second)
    view.release("a/1", ANN, third)
    view.release("b", ANN, OwnerNumber(1))
    assert view.owner("a/1") == Owner("a/1", third, BEN)
    assert view.owner("b") is None


def test_owners_are_listed_in_pages_by_name_and_prefix(view: Leases) -> None:
    names = [f"one/{n:02}" for n in range(20)] + ["one", "one/", "one0", "two/ä", "two/\U0001f40d"]
    for name in reversed(names):
        view.claim(name, ANN, 0)
    view.release("one/03", ANN, OwnerNumber(1))
    assert all_owners(view) == sorted(names)
    assert all_owners(view, "one/") == sorted(n for n in names if n.startswith("one/"))
    assert all_owners(view, "two/ä") == ["two/ä"]
    assert all_owners(view, "three") == []
    assert len(view.owners()) == len(names)
    assert [o.name for o in view.owners(prefix="one/", after="one/17")] == ["one/18", "one/19"]
    assert [o.name for o in view.owners(prefix="two", after="one", owners_max=1)] == ["two/ä"]


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * (NAME_BYTES_MAX + 1)])
def test_what_is_no_name_is_refused(view: Leases, name: str) -> None:
    with pytest.raises(InvalidError, match="bytes of text"):
        view.claim(name, ANN, 0)
    for at_least in (-1, AT_LEAST_MAX + 1):
        with pytest.raises(InvalidError, match="owner number"):
            view.claim("a", ANN, at_least)
    for worker in (WorkerId(name), WorkerId("x" * (WORKER_BYTES_MAX + 1))):
        with pytest.raises(InvalidError):
            view.beat(worker, b"")
        with pytest.raises(InvalidError):
            view.leave(worker)
        with pytest.raises(InvalidError):
            view.claim("a", worker, 0)
    assert (view.workers(), view.owners()) == ([], [])


def test_the_longest_names_and_reports_are_kept_and_longer_ones_refused(view: Leases) -> None:
    name, worker = "ä" * (NAME_BYTES_MAX // 2), WorkerId("w" * WORKER_BYTES_MAX)
    assert view.claim(name, worker, 0) == 1
    view.beat(worker, b"x" * REPORT_BYTES_MAX)
    with pytest.raises(InvalidError, match="report is too large"):
        view.beat(worker, b"x" * (REPORT_BYTES_MAX + 1))
    assert view.owners() == [Owner(name, OwnerNumber(1), worker)]
    assert len(view.workers()[0].report) == REPORT_BYTES_MAX


def test_of_those_who_race_for_one_source_split_none_gets_the_number_of_another(
    leases: LeasesOf,
) -> None:
    start, given = threading.Barrier(4), list[tuple[OwnerNumber, WorkerId]]()

    def work(view: Leases, worker: WorkerId) -> None:
        start.wait()
        for _ in range(5):
            given.append((view.claim("a/1", worker, 3), worker))

    threads = [threading.Thread(target=work, args=(leases(), WorkerId(f"w{n}"))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [number for number, _ in given]
    assert len(set(numbers)) == 20
    assert min(numbers) >= 3
    last = max(given)
    assert leases().owner("a/1") == Owner("a/1", *last)

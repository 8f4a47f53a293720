import threading

import pytest

from lakebed.errors import TableExistsError
from lakebed.model.names import TableId, TableName, TransactionNumber
from lakebed.ports.table_registry import TableEntry, TableRegistry
from tests.contracts.conftest import Registry

TRIPS, ONE, TWO = TableName("trips"), TableId("1"), TableId("2")


@pytest.fixture
def view(registry: Registry) -> TableRegistry:
    return registry()


def test_a_claimed_name_is_found_by_anyone(registry: Registry) -> None:
    registry().claim(TRIPS, ONE)
    assert registry().find(TRIPS) == TableEntry(id=ONE, name=TRIPS)
    assert registry().list() == [TableEntry(id=ONE, name=TRIPS)]


def test_a_name_nobody_claimed_is_not_found(view: TableRegistry) -> None:
    assert view.find(TRIPS) is None
    assert view.list() == []


def test_a_name_belongs_to_the_first_and_claiming_again_does_nothing(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    view.claim(TRIPS, ONE)
    with pytest.raises(TableExistsError):
        view.claim(TRIPS, TWO)
    assert [entry.id for entry in view.list()] == [ONE]


def test_tables_are_listed_by_name(view: TableRegistry) -> None:
    for name in ("b", "a-1", "a", "a_1", "c"):
        view.claim(TableName(name), TableId(f"id-{name}"))
    assert [entry.name for entry in view.list()] == sorted(["b", "a-1", "a", "a_1", "c"])


def test_a_released_name_is_free(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    view.release(TRIPS, ONE)
    view.release(TRIPS, ONE)
    assert view.find(TRIPS) is None
    view.claim(TRIPS, TWO)
    assert [entry.id for entry in view.list()] == [TWO]


def test_only_the_table_that_has_a_name_can_free_it(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    view.release(TRIPS, TWO)
    view.release(TableName("other"), ONE)
    assert [entry.id for entry in view.list()] == [ONE]


def test_a_mark_only_rises(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    for number in (3, 7, 5):
        view.mark(ONE, TransactionNumber(number))
    assert view.find(TRIPS) == TableEntry(id=ONE, name=TRIPS, number=TransactionNumber(7))


def test_a_mark_for_a_table_without_a_name_is_lost(view: TableRegistry) -> None:
    view.mark(ONE, TransactionNumber(3))
    assert view.list() == []
    view.claim(TRIPS, ONE)
    assert view.find(TRIPS) == TableEntry(id=ONE, name=TRIPS)


def test_a_renamed_table_keeps_its_mark(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    view.mark(ONE, TransactionNumber(3))
    new = TableName("rides")
    view.claim(new, ONE)
    view.release(TRIPS, ONE)
    assert view.list() == [TableEntry(id=ONE, name=new, number=TransactionNumber(3))]


def test_of_those_who_race_for_a_name_one_gets_it(registry: Registry) -> None:
    won: list[tuple[str, str]] = []
    start = threading.Barrier(4)

    def work(view: TableRegistry, table: TableId) -> None:
        for n in range(10):
            name = TableName(f"name{n}")
            start.wait()
            try:
                view.claim(name, table)
            except TableExistsError:
                continue
            won.append((name, table))

    threads = [
        threading.Thread(target=work, args=(registry(), TableId(f"id{n}"))) for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [(entry.name, entry.id) for entry in registry().list()]
    assert len(won) == 10

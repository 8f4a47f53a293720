import threading

import pytest

from lakebed.errors import TableExistsError, TableMissingError
from lakebed.model.formats import Formats
from lakebed.model.names import TableId, TableName
from lakebed.ports.table_registry import TableEntry, TableRegistry
from tests.contracts.conftest import Registry

TRIPS, RIDES, ONE, TWO = TableName("trips"), TableName("rides"), TableId("1"), TableId("2")


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


def test_a_table_has_one_name(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    with pytest.raises(TableExistsError):
        view.claim(RIDES, ONE)
    assert view.list() == [TableEntry(id=ONE, name=TRIPS)]


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


def test_a_table_is_online_until_it_is_taken_offline(registry: Registry) -> None:
    registry().claim(TRIPS, ONE)
    for online in (False, False, True, True):
        registry().set_online(TRIPS, ONE, online=online)
        assert registry().find(TRIPS) == TableEntry(id=ONE, name=TRIPS, online=online)
        assert registry().list() == [TableEntry(id=ONE, name=TRIPS, online=online)]


def test_claiming_again_puts_no_table_online(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    view.set_online(TRIPS, ONE, online=False)
    view.claim(TRIPS, ONE)
    assert view.find(TRIPS) == TableEntry(id=ONE, name=TRIPS, online=False)


def test_a_name_of_another_table_is_not_taken_offline(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    for name, table in ((TRIPS, TWO), (TableName("other"), ONE)):
        with pytest.raises(TableMissingError):
            view.set_online(name, table, online=False)
    assert view.list() == [TableEntry(id=ONE, name=TRIPS)]


def test_a_table_that_is_set_aside_is_offline_until_it_is_put_online(registry: Registry) -> None:
    registry().claim(TRIPS, ONE)
    aside = TableEntry(id=ONE, name=TRIPS, online=False, quarantined=True)
    for _ in ("once", "again"):
        registry().quarantine(TRIPS, ONE)
        assert registry().find(TRIPS) == aside
        assert registry().list() == [aside]
    registry().set_online(TRIPS, ONE, online=False)
    registry().claim(TRIPS, ONE)
    assert registry().find(TRIPS) == aside
    registry().set_online(TRIPS, ONE, online=True)
    assert registry().list() == [TableEntry(id=ONE, name=TRIPS)]


def test_a_table_stays_set_aside_under_another_name(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    view.quarantine(TRIPS, ONE)
    view.rename(TRIPS, RIDES, ONE)
    assert view.list() == [TableEntry(id=ONE, name=RIDES, online=False, quarantined=True)]
    view.release(RIDES, ONE)
    view.claim(RIDES, TWO)
    assert view.list() == [TableEntry(id=TWO, name=RIDES)]


def test_a_name_of_another_table_is_not_set_aside(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    for name, table in ((TRIPS, TWO), (TableName("other"), ONE)):
        with pytest.raises(TableMissingError):
            view.quarantine(name, table)
    assert view.list() == [TableEntry(id=ONE, name=TRIPS)]


def test_the_next_table_of_a_name_is_online(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    view.set_online(TRIPS, ONE, online=False)
    view.release(TRIPS, ONE)
    view.claim(TRIPS, TWO)
    assert view.find(TRIPS) == TableEntry(id=TWO, name=TRIPS)


def test_a_renamed_table_has_its_new_name_only(registry: Registry) -> None:
    registry().claim(TRIPS, ONE)
    registry().set_online(TRIPS, ONE, online=False)
    for _ in ("once", "again"):
        registry().rename(TRIPS, RIDES, ONE)
        assert registry().find(TRIPS) is None
        assert registry().list() == [TableEntry(id=ONE, name=RIDES, online=False)]
    registry().claim(TRIPS, TWO)
    registry().rename(RIDES, RIDES, ONE)
    assert [(e.name, e.id) for e in registry().list()] == [(RIDES, ONE), (TRIPS, TWO)]


def test_no_table_is_renamed_to_a_name_that_is_taken(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    view.claim(RIDES, TWO)
    with pytest.raises(TableExistsError):
        view.rename(TRIPS, RIDES, ONE)
    assert [(e.name, e.id) for e in view.list()] == [(RIDES, TWO), (TRIPS, ONE)]


def test_a_table_is_not_renamed_by_a_name_that_it_does_not_have(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    for old, table in ((TRIPS, TWO), (TableName("other"), ONE), (RIDES, ONE)):
        with pytest.raises(TableMissingError):
            view.rename(old, RIDES, table)
    assert view.list() == [TableEntry(id=ONE, name=TRIPS)]


def test_of_those_who_race_to_rename_one_wins_and_every_table_has_a_name(
    registry: Registry,
) -> None:
    tables = [TableId(f"id{n}") for n in range(4)]
    for table in tables:
        registry().claim(TableName(f"from-{table}"), table)
    start, won = threading.Barrier(4), list[str]()

    def work(view: TableRegistry, table: TableId) -> None:
        start.wait()
        try:
            view.rename(TableName(f"from-{table}"), RIDES, table)
        except TableExistsError:
            return
        won.append(table)

    threads = [threading.Thread(target=work, args=(registry(), table)) for table in tables]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = registry().find(RIDES)
    assert found is not None
    assert won == [found.id]
    assert sorted(entry.id for entry in registry().list()) == tables


def test_of_those_who_race_for_a_name_one_gets_it(registry: Registry) -> None:
    won: list[tuple[str, str]] = []
    start = threading.Barrier(4)

    def work(view: TableRegistry, worker: int) -> None:
        for n in range(10):
            name, table = TableName(f"name{n}"), TableId(f"id{worker}-{n}")
            start.wait()
            try:
                view.claim(name, table)
            except TableExistsError:
                continue
            won.append((name, table))

    threads = [threading.Thread(target=work, args=(registry(), worker)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [(entry.name, entry.id) for entry in registry().list()]
    assert len(won) == 10


def test_acknowledged_changes_beside_refused_ones_are_kept(registry: Registry) -> None:
    names, view = [TableName(f"name{n}") for n in range(60)], registry()
    for name in names:
        view.claim(name, TableId(f"id-{name}"))
    done = threading.Event()

    def refused(view: TableRegistry, worker: int) -> None:
        n = 0
        while not done.is_set():
            n += 1
            with pytest.raises(TableExistsError):
                view.claim(names[n % len(names)], TableId(f"other-{worker}-{n}"))

    def change(view: TableRegistry, mine: list[TableName]) -> None:
        for name in mine:
            view.set_online(name, TableId(f"id-{name}"), online=False)

    losers = [threading.Thread(target=refused, args=(registry(), n)) for n in range(2)]
    winners = [threading.Thread(target=change, args=(registry(), names[n::3])) for n in range(3)]
    for thread in [*losers, *winners]:
        thread.start()
    for thread in winners:
        thread.join()
    done.set()
    for thread in losers:
        thread.join()
    assert [entry.name for entry in view.list() if entry.online] == []


def test_nobody_has_recorded_the_forms_of_a_new_lake(view: TableRegistry) -> None:
    assert view.formats() is None
    view.claim(TRIPS, ONE)
    assert view.formats() is None
    assert [entry.name for entry in view.list()] == [TRIPS]


def test_forms_that_are_allowed_are_seen_by_anyone_and_never_forbidden(registry: Registry) -> None:
    registry().raise_formats(Formats(entry=4, state=1))
    assert registry().formats() == Formats(entry=4, state=1)
    for other in (Formats(entry=3, state=2), Formats(entry=3, state=1), Formats(entry=4, state=2)):
        registry().raise_formats(other)
        assert registry().formats() == Formats(entry=4, state=2)
    registry().claim(TRIPS, ONE)
    assert [entry.name for entry in registry().list()] == [TRIPS]


def test_of_those_who_race_to_allow_forms_the_highest_stands(registry: Registry) -> None:
    start = threading.Barrier(4)

    def work(view: TableRegistry, number: int) -> None:
        start.wait()
        view.raise_formats(Formats(entry=3 + number, state=9 - number))

    threads = [threading.Thread(target=work, args=(registry(), n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert registry().formats() == Formats(entry=6, state=9)


def test_a_table_is_declared_in_the_step_that_names_it(registry: Registry) -> None:
    registry().claim(TRIPS, ONE, declared=True)
    registry().claim(TRIPS, ONE)
    assert registry().find(TRIPS) == TableEntry(id=ONE, name=TRIPS, declared=True)
    with pytest.raises(TableExistsError):
        registry().claim(TRIPS, TWO, declared=True)
    registry().claim(RIDES, TWO)
    assert [entry.declared for entry in registry().list()] == [False, True]


def test_claiming_again_declares_nothing(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    view.claim(TRIPS, ONE, declared=True)
    assert view.find(TRIPS) == TableEntry(id=ONE, name=TRIPS)


def test_a_declared_table_stays_so_whatever_else_becomes_of_it(registry: Registry) -> None:
    registry().claim(TRIPS, ONE)
    for _ in ("once", "again"):
        registry().declare(TRIPS, ONE)
        assert registry().find(TRIPS) == TableEntry(id=ONE, name=TRIPS, declared=True)
    registry().set_online(TRIPS, ONE, online=False)
    registry().rename(TRIPS, RIDES, ONE)
    assert registry().list() == [TableEntry(id=ONE, name=RIDES, online=False, declared=True)]
    registry().quarantine(RIDES, ONE)
    registry().set_online(RIDES, ONE, online=True)
    assert registry().list() == [TableEntry(id=ONE, name=RIDES, declared=True)]


def test_a_name_of_another_table_is_not_declared(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    for name, table in ((TRIPS, TWO), (TableName("other"), ONE)):
        with pytest.raises(TableMissingError):
            view.declare(name, table)
    assert view.list() == [TableEntry(id=ONE, name=TRIPS)]


def test_a_name_that_is_free_again_is_not_declared(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE, declared=True)
    view.release(TRIPS, ONE)
    view.claim(TRIPS, TWO)
    assert view.list() == [TableEntry(id=TWO, name=TRIPS)]


def test_what_a_table_watches_stays_whatever_else_becomes_of_it(registry: Registry) -> None:
    registry().claim(TRIPS, ONE)
    registry().claim(TableName("other"), TWO)
    for folder in ("s3://landing/old/", "s3://landing/trips/", "s3://landing/trips/"):
        registry().watch(TRIPS, ONE, folder)
    kept = TableEntry(id=ONE, name=TRIPS, watched="s3://landing/trips/")
    assert registry().find(TRIPS) == kept
    registry().claim(TRIPS, ONE)
    registry().set_online(TRIPS, ONE, online=False)
    registry().rename(TRIPS, RIDES, ONE)
    registry().declare(RIDES, ONE)
    registry().quarantine(RIDES, ONE)
    registry().set_online(RIDES, ONE, online=True)
    assert [entry.watched for entry in registry().list()] == ["", "s3://landing/trips/"]
    registry().watch(RIDES, ONE, "")
    registry().watch(RIDES, ONE, "")
    assert registry().find(RIDES) == TableEntry(id=ONE, name=RIDES, declared=True)


def test_a_name_of_another_table_watches_nothing(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    for name, table in ((TRIPS, TWO), (TableName("other"), ONE)):
        with pytest.raises(TableMissingError):
            view.watch(name, table, "s3://landing/trips/")
    assert view.list() == [TableEntry(id=ONE, name=TRIPS)]


def test_the_next_table_of_a_name_watches_nothing(view: TableRegistry) -> None:
    view.claim(TRIPS, ONE)
    view.watch(TRIPS, ONE, "s3://landing/trips/")
    view.release(TRIPS, ONE)
    view.claim(TRIPS, TWO)
    assert view.list() == [TableEntry(id=TWO, name=TRIPS)]

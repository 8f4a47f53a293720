"""Definitions as code: what a file would change, all of it or nothing, and what may be dropped."""

import random
from contextlib import suppress

import msgspec
import pytest

from lakebed.backends.faulty import HARSH_REGISTRY, RegistryFault
from lakebed.config.definitions.connections import DefinedConnection
from lakebed.config.feeds import Feed, feed_file
from lakebed.config.policies import Policy
from lakebed.config.stored_definitions import definition_body, said_of, stored_file
from lakebed.errors import (
    CorruptError,
    InvalidError,
    LakebedError,
    NewerFormatError,
    TableMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.feed_errors import DefinitionChangedError
from lakebed.feeds.apply_definitions import TRIES_MAX, ApplyDefinitions, SettingChange
from lakebed.feeds.known_definitions import read_definitions
from lakebed.model.feeds.definitions import NamedDefinition
from tests.unit.feeds.definition_stories import ORDERS, Definitions, RacedRegistry, unlucky

DECODER = 'decoder = { format = "json" }'
FEED = '[feed.orders]\nfiles = "*.log"\ndecoder = { format = "json" }\n'


def test_a_file_is_applied_once_and_again_changes_nothing() -> None:
    definitions = Definitions()
    wanted = ["policy.Careful", "feed.orders", "connection.eu", "connection.us"]
    assert definitions.actions() == dict.fromkeys(wanted, "create")
    number = definitions.true.number()
    assert definitions.actions() == dict.fromkeys(wanted, "keep")
    assert definitions.true.number() == number
    ids = {entry.definition.id for entry in definitions.known.entries.values()}
    assert len(ids) == 4


def test_a_dry_run_says_the_same_and_changes_nothing() -> None:
    definitions = Definitions()
    dry = definitions.apply(dry_run=True)
    assert definitions.known.entries == {}
    real = definitions.apply()
    assert [msgspec.structs.replace(one, version=0) for one in real] == dry
    assert {one.version for one in real} == {1}
    assert {one.version for one in definitions.apply(dry_run=True)} == {0}


def test_a_change_says_which_fields_and_the_version_rises() -> None:
    definitions = Definitions()
    definitions.apply()
    text = ORDERS.replace('"json" }', '"json", time = { path = "ts" } }').replace("*.log", "*.txt")
    (change,) = [one for one in definitions.apply(text) if one.action != "keep"]
    assert change.fields == (
        SettingChange("feed.orders.decoder.time", None, {"path": "ts"}),
        SettingChange("feed.orders.files", "*.log", "*.txt"),
    )
    assert change.version == 2
    after = definitions.known
    assert after.entry("feed", "orders").definition.id == "id2"
    again = definitions.apply()
    assert [(one.action, one.version) for one in again if one.kind == "feed"] == [("change", 3)]


def test_the_version_of_a_connection_rises_with_all_that_its_rows_are_made_by() -> None:
    definitions = Definitions()
    definitions.apply()

    def versions() -> tuple[int, int]:
        known = definitions.known
        return known.connection("eu").version, known.connection("us").version

    assert versions() == (1, 1)
    definitions.apply('[policy.Careful]\nextends = "Strict"\nerrors_in_row_max = 7')
    assert versions() == (2, 1), "only one of them has this policy"
    assert definitions.known.connection("eu").policy.errors_in_row_max == 7
    definitions.apply('[policy.Other]\nextends = "Careful"')
    definitions.apply(
        ORDERS.replace("errors", "").replace('policy = "Careful"', 'policy = "Other"')
    )
    assert versions() == (4, 1)
    definitions.apply(ORDERS.replace('policy = "Careful"', 'policy = "Basic"'))
    assert versions() == (5, 1), "an older policy is a newer definition"
    definitions.apply(FEED.replace("json", "text"))
    assert versions() == (6, 6)
    assert definitions.known.feed("orders").version == 6


def test_a_registry_that_was_restored_gives_versions_above_what_tables_know() -> None:
    definitions = Definitions()
    definitions.apply()
    dry = definitions.apply(above=70, dry_run=True)
    assert {one.action for one in dry} == {"change"}
    assert definitions.true.number() == 1
    assert {(one.action, one.version) for one in definitions.apply(above=70)} == {("change", 71)}
    assert definitions.known.connection("us").version == 71
    assert {one.action for one in definitions.apply(above=70)} == {"keep"}


def test_what_a_file_does_not_name_stays() -> None:
    definitions = Definitions()
    definitions.apply()
    definitions.apply('[feed.clicks]\nfiles = "x"')
    assert sorted(definitions.known.file.feeds) == ["clicks", "orders"]
    assert sorted(definitions.known.file.connections) == ["eu", "us"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[connection.c]\nfeed = "order"\ntable = "t"', r"at=connection\.c\.feed.*'orders'"),
        (
            '[connection.c]\nfeed = "orders"\ntable = "t"\npolicy = "Carefull"',
            r"at=connection\.c\.policy.*'Careful'",
        ),
        ('[feed.f]\nfiles = "x"\npolicy = "Basik"', r"at=feed\.f\.policy.*'Basic'"),
        ('[policy.P]\nextends = "Q"\n[policy.Q]\nextends = "P"', "extends itself"),
        ('[policy.Careful]\nextends = "Careful"', "extends itself"),
        ("[policy.Careful]\nworkers_min = 20", "workers_min"),
        ('[connection.eu]\nfeed = "orders"\ntable = "other"', r"at=connection\.eu\.table"),
        ('[feed.orders]\nfiles = "x"', "without a decoder"),
        (
            '[feed.f]\nfiles = "x"\n[connection.eu]\nfeed = "f"\ntable = "orders"',
            "without a decoder",
        ),
    ],
)
def test_one_that_cannot_be_refuses_all_and_nothing_changes(text: str, says: str) -> None:
    definitions = Definitions()
    definitions.apply()
    before = definitions.known
    for dry_run in (True, False):
        with pytest.raises(InvalidError, match=says):
            definitions.apply(text + '\n[feed.good]\nfiles = "x"', dry_run=dry_run)
    assert definitions.known == before


def test_a_table_that_is_not_there_refuses_a_new_connection_and_an_old_one_is_not_asked() -> None:
    definitions = Definitions()
    definitions.apply()
    asked = []

    def check(connection: DefinedConnection, feed: Feed, policy: Policy) -> None:
        asked.append(connection.name)
        raise TableMissingError("no table has this name")

    service = ApplyDefinitions(
        registry=definitions.true, new_id=definitions.new_id, check_connection=check
    )
    service.run(feed_file(ORDERS))
    assert asked == []
    with pytest.raises(TableMissingError):
        service.run(feed_file('[connection.c]\nfeed = "orders"\ntable = "gone"'))
    with pytest.raises(TableMissingError):
        service.run(feed_file(ORDERS.replace("json", "text")))
    assert asked == ["c", "eu"], "a decoder that changes is to fit the tables"


def test_too_much_at_once_is_refused_by_a_dry_run_too() -> None:
    text = "".join(f'[feed.f{n}]\nfiles = "x"\n' for n in range(150))
    for dry_run in (True, False):
        with pytest.raises(InvalidError, match="too many definitions"):
            Definitions().apply(text, dry_run=dry_run)


def test_a_plan_that_another_process_overtakes_is_made_anew_on_what_is_there() -> None:
    registry = RacedRegistry()
    definitions = Definitions(registry)
    definitions.true = registry
    definitions.apply(FEED)
    registry.others = [lambda: definitions.apply('[policy.Theirs]\nextends = "Basic"')]
    definitions.apply(FEED.replace("json", "text"))
    known = definitions.known
    assert sorted(known.file.policies) == ["Theirs"]
    assert known.file.feeds["orders"].decoder == {"format": "text"}


def test_a_policy_is_not_dropped_while_another_process_begins_to_name_it() -> None:
    """Checked against what was read, it was free; the registry's number says that this changed."""
    registry = RacedRegistry()
    definitions = Definitions(registry)
    definitions.true = registry
    definitions.apply(FEED + "[policy.P]")
    registry.others = [lambda: definitions.apply(FEED + 'policy = "P"')]
    with pytest.raises(InvalidError, match="in use"):
        definitions.drop("policy", "P")
    definitions.apply("[policy.Q]")
    registry.others = [lambda: definitions.drop("policy", "Q")]
    with pytest.raises(InvalidError, match="no policy has this name"):
        definitions.apply('[feed.f]\nfiles = "x"\npolicy = "Q"')


def test_processes_that_change_definitions_all_the_time_are_not_waited_for_for_ever() -> None:
    registry = RacedRegistry()
    definitions = Definitions(registry)
    definitions.true = registry
    names = iter(range(100))
    other = Definitions(registry)

    def overtake() -> None:
        rest, registry.others = registry.others, []
        other.apply(f'[feed.theirs{next(names)}]\nfiles = "x"')
        registry.others = rest

    registry.others = [overtake] * (TRIES_MAX + 5)
    with pytest.raises(DefinitionChangedError):
        definitions.apply(FEED)


def test_an_answer_that_is_lost_is_looked_for_and_what_was_done_is_said() -> None:
    definitions = Definitions()
    luck = unlucky(definitions, write_unanswered=1.0)
    plan = definitions.apply()
    assert {(one.action, one.version) for one in plan} == {("create", 1)}
    assert luck.fired[RegistryFault.WRITE_UNANSWERED] == 1
    unlucky(definitions, write_lost=1.0)
    with pytest.raises(UnknownOutcomeError):
        definitions.apply(FEED.replace("json", "text"))
    unlucky(definitions, read_throttled=1.0)
    with pytest.raises(UnavailableError):
        definitions.apply()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_to_requests_a_registry_is_whole(seed: int) -> None:
    """Operators apply, drop and start over a bad network: what is named is always there."""
    definitions, rng = Definitions(), random.Random(seed)
    luck = unlucky(definitions)
    luck.rates = HARSH_REGISTRY
    luck._faults.rng = rng
    policies = ["Basic", "P0", "P1", "P2"]
    for _ in range(60):
        n = rng.randrange(3)
        text = rng.choice(
            [
                f'[policy.P{n}]\nextends = "{rng.choice(policies)}"',
                f'[feed.f{n}]\nfiles = "x"\npolicy = "{rng.choice(policies)}"\n{DECODER}',
                f'[connection.c{n}]\nfeed = "f{n}"\ntable = "t"\npolicy = "P{rng.randrange(3)}"',
            ]
        )
        with suppress(LakebedError):
            definitions.apply(text)
        with suppress(LakebedError):
            kind, name = rng.choice([("policy", "P"), ("feed", "f"), ("connection", "c")])
            definitions.drop(kind, f"{name}{n}", cascade=rng.random() < 0.3)
        luck._faults.deliver_late(0.5)
        known = definitions.known
        for feed in known.feeds():
            assert feed.version <= known.number
        for name in known.file.connections:
            assert known.connection(name).version <= known.number
    luck.rates = {}
    luck._faults.deliver_late(1.0)
    definitions.end.run()
    defined = {entry.definition.id for entry in definitions.known.entries.values()}
    assert {one.id for one in definitions.true.endings().waiting} <= defined


def test_a_feed_with_connections_is_dropped_with_them_or_not_at_all() -> None:
    definitions = Definitions()
    definitions.apply()
    with pytest.raises(InvalidError, match=r"has connections.*eu, us.*--cascade"):
        definitions.drop("feed", "orders")
    dropped = definitions.drop("feed", "orders", cascade=True)
    assert dropped == [("connection", "eu"), ("connection", "us"), ("feed", "orders")]
    assert list(definitions.known.entries) == [("policy", "Careful")]
    definitions.drop("policy", "Careful")
    definitions.apply()
    assert definitions.known.entry("feed", "orders").definition.id not in {"id2", "id3", "id4"}


def test_a_feed_that_is_not_stopped_is_not_dropped() -> None:
    definitions = Definitions()
    definitions.apply(FEED)
    definitions.lifecycle.run("start", "orders")
    for cascade in (False, True):
        with pytest.raises(InvalidError, match=r"not stopped.*lakebed feed stop orders"):
            definitions.drop("feed", "orders", cascade=cascade)
    definitions.lifecycle.run("stop", "orders")
    definitions.drop("feed", "orders")


def test_a_connection_is_dropped_while_its_feed_runs() -> None:
    definitions = Definitions()
    definitions.apply()
    definitions.lifecycle.run("start", "orders")
    assert definitions.drop("connection", "eu") == [("connection", "eu")]
    assert [one.connection.name for one in definitions.known.connections_of("orders")] == ["us"]


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("policy", "Careful", r"in use.*by=connection\.eu"),
        ("policy", "Basic", "every lake has"),
        ("policy", "Carefull", "did you mean 'Careful'"),
        ("feed", "order", "did you mean 'orders'"),
        ("connection", "ue", "known connections: eu, us|did you mean 'eu'"),
    ],
)
def test_what_is_used_or_not_there_is_not_dropped(kind: str, name: str, says: str) -> None:
    definitions = Definitions()
    definitions.apply()
    before = definitions.known
    with pytest.raises(InvalidError, match=says):
        definitions.drop(kind, name)
    assert definitions.known == before


def test_a_definition_is_stored_the_same_whatever_its_order_and_without_its_version() -> None:
    one = definition_body({"b": 1, "a": {"d": 2, "c": 3}, "version": 4})
    assert one == definition_body({"a": {"c": 3, "d": 2}, "b": 1})
    assert one == b'{"form":1,"said":{"a":{"c":3,"d":2},"b":1}}'


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", CorruptError),
        (b"{}", CorruptError),
        (b'{"form":1,"said":3}', CorruptError),
        (b'{"form":2,"said":{}}', NewerFormatError),
        (b'{"form":1,"said":{"files":"x","unheard":1}}', NewerFormatError),
    ],
)
def test_what_this_release_cannot_read_is_not_guessed_at(
    body: bytes, error: type[LakebedError]
) -> None:
    definition = NamedDefinition(kind="feed", name="orders", id="f1", body=body)
    with pytest.raises(error):
        stored_file([definition])
    if error is CorruptError:
        with pytest.raises(error, match="apply it again"):
            said_of(definition)


def test_a_registry_that_changes_while_it_is_read_is_read_again() -> None:
    definitions = Definitions()
    definitions.apply()
    registry, numbers = definitions.true, iter([1, 7, 7, 7])
    registry.number = lambda: next(numbers)  # type: ignore[method-assign]  # a test's
    assert read_definitions(registry).number == 7
    rising = iter(range(1_000))
    registry.number = lambda: next(rising)  # type: ignore[method-assign]  # the same
    with pytest.raises(UnavailableError, match="change too often"):
        read_definitions(registry)

"""Definitions of feeds: changed by compare and set, several at once or none; versions that rise."""

import threading

import pytest

from lakebed.errors import InvalidError, UnavailableError
from lakebed.feed_errors import DefinitionChangedError
from lakebed.model.feeds.definitions import (
    BODY_BYTES_MAX,
    CHANGES_MAX,
    KINDS,
    REASON_CHARACTERS_MAX,
    DefinitionEntry,
    DefinitionKind,
    Drop,
    FeedFailure,
    NamedDefinition,
    Put,
)
from lakebed.model.feeds.endings import Ending, Endings, KnownIn
from lakebed.model.feeds.flushes import FEEDS_MAX, Flushes
from lakebed.model.names import ConnectionId, TableId
from lakebed.ports.feed_registry import FeedRegistry
from tests.contracts.conftest import Definitions


def feed(
    name: str = "orders", body: bytes = b"{}", kind: DefinitionKind = "feed", id_: str = "f1"
) -> NamedDefinition:
    return NamedDefinition(kind=kind, name=name, id=id_, body=body)


@pytest.fixture
def view(definitions: Definitions) -> FeedRegistry:
    return definitions()


def entry(view: FeedRegistry, name: str = "orders") -> DefinitionEntry:
    found = view.get("feed", name)
    assert found is not None
    return found


def test_what_was_put_is_seen_by_anyone_with_its_version(definitions: Definitions) -> None:
    assert definitions().get("feed", "orders") is None
    assert definitions().put(feed(body=b"\x00a"), 0) == 1
    first = entry(definitions())
    assert first.definition == NamedDefinition(
        kind="feed", name="orders", id="f1", body=b"\x00a", version=1
    )
    assert (first.wanted, first.failure) == ("stopped", None)
    assert definitions().put(feed(body=b"b"), 1) == 2
    second = entry(definitions())
    assert (second.definition.body, second.definition.version) == (b"b", 2)
    assert second.revision > first.revision


def test_a_definition_is_put_only_over_the_version_that_was_read(view: FeedRegistry) -> None:
    for version in (1, 7):
        with pytest.raises(DefinitionChangedError, match=r"at=feed\.orders"):
            view.put(feed(), version)
    assert view.get("feed", "orders") is None
    view.put(feed(body=b"a"), 0)
    view.put(feed(body=b"b"), 1)
    for version in (0, 1, 3):
        with pytest.raises(DefinitionChangedError):
            view.put(feed(body=b"c"), version)
    assert entry(view).definition.body == b"b"


def test_versions_go_on_when_a_name_is_used_again(definitions: Definitions) -> None:
    definitions().put(feed(), 0)
    definitions().put(feed(), 1)
    with pytest.raises(DefinitionChangedError):
        definitions().drop("feed", "orders", 1)
    for _ in ("once", "again"):
        definitions().drop("feed", "orders", 2)
        assert definitions().get("feed", "orders") is None
        assert definitions().list("feed") == []
    with pytest.raises(DefinitionChangedError):
        definitions().drop("feed", "orders", 1)
    with pytest.raises(DefinitionChangedError):
        definitions().put(feed(), 2)
    assert definitions().put(feed(id_="f2"), 0) == 4
    again = entry(definitions())
    assert (again.definition.id, again.definition.version) == ("f2", 4)


def test_the_version_is_the_number_of_the_registry_so_the_newest_of_several_rises(
    definitions: Definitions,
) -> None:
    """A connection takes its policy from the newer of two, then from the older: still it rises."""
    assert [definitions().put(feed(kind=kind), 0) for kind in KINDS] == [1, 2, 3]
    assert definitions().put(feed(kind="connection"), 2) == 4
    assert definitions().change([Put(feed(), 1), Put(feed(kind="policy"), 3)]) == [5, 5]
    assert definitions().number() == 5


def test_what_was_never_there_is_not_dropped(view: FeedRegistry) -> None:
    with pytest.raises(DefinitionChangedError):
        view.drop("feed", "orders", 1)


def test_kinds_have_names_of_their_own_and_are_listed_in_pages(view: FeedRegistry) -> None:
    names = ["B", "a", "a-1", "a_1", "b", "c"]
    versions = {
        (kind, name): view.put(feed(name, name.encode(), kind), 0)
        for kind in KINDS
        for name in reversed(names)
    }
    view.drop("policy", "a_1", versions["policy", "a_1"])
    for kind in KINDS:
        wanted = sorted(set(names) - ({"a_1"} if kind == "policy" else set()))
        assert [one.definition.name for one in view.list(kind)] == wanted
        assert {one.definition.kind for one in view.list(kind)} == {kind}
        found: list[str] = []
        while page := view.list(kind, after=found[-1] if found else "", entries_max=2):
            assert len(page) <= 2
            found += [one.definition.name for one in page]
        assert found == wanted


def test_several_definitions_change_together_or_none(definitions: Definitions) -> None:
    old = definitions().put(feed("old"), 0)
    other = definitions().put(feed("other"), 0)
    number = definitions().number()
    wrong = [Put(feed("new"), 0), Drop("feed", "old", old), Put(feed("other", b"x"), 3)]
    with pytest.raises(DefinitionChangedError, match=r"feed\.other"):
        definitions().change(wrong)
    assert definitions().number() == number
    assert [one.definition.name for one in definitions().list("feed")] == ["old", "other"]
    right = [*wrong[:2], Put(feed("other", b"x"), other), Put(feed("new", kind="policy"), 0)]
    new = number + 1
    assert definitions().change(right) == [new, old, new, new]
    assert [one.definition.name for one in definitions().list("feed")] == ["new", "other"]
    assert definitions().number() == number + 1


def test_the_number_of_the_registry_guards_what_was_read(definitions: Definitions) -> None:
    assert definitions().number() == 0
    assert definitions().change([]) == []
    definitions().put(feed("a"), 0)
    assert definitions().change([Put(feed("b"), 0)], expected_number=1) == [2]
    for number in (0, 1, 3):
        with pytest.raises(DefinitionChangedError):
            definitions().change([Put(feed("c"), 0)], expected_number=number)
    revision = entry(definitions(), "a").revision
    definitions().want("feed", "a", "running", revision)
    definitions().note_failure("feed", "a", FeedFailure("denied", "no", 1))
    assert definitions().number() == 2, "definitions only are counted"
    definitions().drop("feed", "a", 1)
    assert definitions().number() == 3


def test_versions_begin_above_a_number_that_is_lifted(definitions: Definitions) -> None:
    """The registry was restored to an earlier day, and tables know newer versions."""
    definitions().lift(41)
    assert definitions().number() == 41
    assert definitions().put(feed(), 0) == 42
    for number in (0, 41, 42):
        definitions().lift(number)
    assert definitions().number() == 42
    definitions().lift(50)
    assert definitions().put(feed(), 42) == 51
    for wrong in (-1, (1 << 53) + 1):
        with pytest.raises(InvalidError, match="not a version"):
            definitions().lift(wrong)


def test_what_is_wanted_changes_by_compare_and_set(definitions: Definitions) -> None:
    definitions().put(feed(), 0)
    first = entry(definitions()).revision
    second = definitions().want("feed", "orders", "running", first)
    assert entry(definitions()) == DefinitionEntry(
        definition=entry(definitions()).definition, revision=second, wanted="running"
    )
    with pytest.raises(DefinitionChangedError):
        definitions().want("feed", "orders", "suspended", first)
    with pytest.raises(DefinitionChangedError):
        definitions().want("feed", "other", "running", first)
    definitions().put(feed(body=b"new"), 1)
    assert entry(definitions()).wanted == "running"
    with pytest.raises(DefinitionChangedError):
        definitions().want("feed", "orders", "stopped", second)
    assert entry(definitions()).definition.version == 2


def test_a_failure_is_of_one_version_and_starting_forgets_it(definitions: Definitions) -> None:
    definitions().put(feed(), 0)
    failure = FeedFailure("denied", "the broker refuses", 1)
    definitions().want("feed", "orders", "running", entry(definitions()).revision)
    for _ in ("once", "again"):
        definitions().note_failure("feed", "orders", failure)
    failed = entry(definitions())
    assert (failed.failed(1), failed.failed(2), failed.wanted) == (failure, None, "running")
    definitions().want("feed", "orders", "running", failed.revision)
    assert entry(definitions()).failure is None
    definitions().note_failure("feed", "orders", failure)
    definitions().put(feed(body=b"new"), 1)
    assert (entry(definitions()).failed(2), entry(definitions()).failure) == (None, failure)
    with pytest.raises(DefinitionChangedError):
        definitions().note_failure("feed", "orders", FeedFailure("denied", "late", 1))
    with pytest.raises(DefinitionChangedError):
        definitions().note_failure("feed", "other", failure)
    newer = FeedFailure("denied", "as its policy says, which came later", 7)
    definitions().note_failure("feed", "orders", newer)
    assert entry(definitions()).failed(2) == newer


def test_tables_of_a_route_fail_one_by_one(definitions: Definitions) -> None:
    definitions().put(feed(), 0)
    web = FeedFailure("denied", "the broker refuses", 1, "web")
    app = FeedFailure("invalid", "y" * 100_000, 1, "app")
    for failure in (web, app, app):
        definitions().note_failure("feed", "orders", failure)
    found = entry(definitions())
    assert (found.failed(1, "web"), found.failed(2, "web"), found.failed(1)) == (web, None, None)
    known = found.failed(1, "app")
    assert known is not None
    assert known.reason == "y" * 1_000
    assert found.revision == 3, "one that is known is no change"
    newer = FeedFailure("denied", "again", 2, "web")
    definitions().note_failure("feed", "orders", newer)
    again = entry(definitions())
    assert (again.failed(2, "web"), again.failed(1, "app")) == (newer, known)
    definitions().want("feed", "orders", "running", again.revision)
    assert entry(definitions()).failed(1, "app") is None


def test_a_dropped_feed_neither_starts_nor_fails_and_its_next_is_stopped(
    view: FeedRegistry,
) -> None:
    view.put(feed(), 0)
    revision = view.want("feed", "orders", "running", entry(view).revision)
    view.note_failure("feed", "orders", FeedFailure("denied", "no", 1))
    with pytest.raises(DefinitionChangedError):
        view.change([Drop("feed", "orders", 1, expected_revision=revision)])
    view.change([Drop("feed", "orders", 1, expected_revision=entry(view).revision)])
    with pytest.raises(DefinitionChangedError):
        view.want("feed", "orders", "running", revision + 1)
    with pytest.raises(DefinitionChangedError):
        view.note_failure("feed", "orders", FeedFailure("denied", "no", 1))
    view.put(feed(id_="f2"), 0)
    assert (entry(view).wanted, entry(view).failure) == ("stopped", None)


def test_a_long_reason_is_cut(view: FeedRegistry) -> None:
    view.put(feed(), 0)
    view.note_failure("feed", "orders", FeedFailure("denied", "x" * 100_000, 1))
    found = entry(view).failed(1)
    assert found is not None
    assert len(found.reason) == REASON_CHARACTERS_MAX


def test_what_no_registry_takes_is_refused_and_nothing_is_stored(view: FeedRegistry) -> None:
    wrong = [[Put(feed(name), 0)] for name in ("", "1a", "a b", "ä", "x" * 64, "a/b", "a.b", "a\n")]
    wrong += [
        [Put(feed(body=b"x" * (BODY_BYTES_MAX + 1)), 0)],
        [Put(feed(id_="F"), 0)],
        [Put(feed(f"a{n}"), 0) for n in range(CHANGES_MAX + 1)],
        [Put(feed(f"a{n}", b"x" * BODY_BYTES_MAX), 0) for n in range(9)],
        [Put(feed("a"), 0), Drop("feed", "a", 1)],
    ]
    for changes in wrong:
        with pytest.raises(InvalidError):
            view.change(changes)
    assert (view.list("feed"), view.number()) == ([], 0)


def test_as_much_as_is_allowed_changes_at_once(
    view: FeedRegistry, request: pytest.FixtureRequest
) -> None:
    count = 3 if "stormy" in request.node.name else 7  # what passes through its proxy is bounded
    large = [Put(feed(f"a{n}", b"x" * BODY_BYTES_MAX), 0) for n in range(count)]
    many = [Put(feed(f"b{n}"), 0) for n in range(CHANGES_MAX - count)]
    assert view.change([*large, *many]) == [1] * CHANGES_MAX
    assert len(view.list("feed")) == CHANGES_MAX
    assert len(entry(view, f"a{count - 1}").definition.body) == BODY_BYTES_MAX


def test_of_those_who_race_to_change_each_version_is_given_once(definitions: Definitions) -> None:
    definitions().put(feed(), 0)
    start, given = threading.Barrier(4), list[tuple[int, bytes]]()

    def work(view: FeedRegistry, worker: int) -> None:
        start.wait()
        for n in range(5):
            body = b"%d-%d" % (worker, n)
            before = entry(view).definition.version
            try:
                given.append((view.put(feed(body=body), before), body))
            except DefinitionChangedError:
                continue

    threads = [threading.Thread(target=work, args=(definitions(), n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = sorted(version for version, _ in given)
    assert versions == list(range(2, len(versions) + 2))
    assert entry(definitions()).definition.body == dict(given)[versions[-1]]


def test_wishes_to_flush_are_numbered_by_compare_and_set(definitions: Definitions) -> None:
    assert definitions().flushes() == Flushes()
    assert definitions().want_flush("orders", 0) == 1
    assert definitions().want_flush("other-1", 1) == 2
    for number in (0, 1, 3):
        with pytest.raises(DefinitionChangedError):
            definitions().want_flush("orders", number)
    found = definitions().flushes()
    assert (found.number, found.of("orders"), found.of("other-1"), found.of("x")) == (2, 1, 2, 0)
    assert definitions().want_flush("orders", 2) == 3
    assert definitions().flushes().by_feed == {"orders": 3, "other-1": 2}
    assert definitions().number() == 0, "definitions only are counted"
    assert definitions().list("feed") == []


def test_of_many_wishes_the_last_are_kept(view: FeedRegistry) -> None:
    for number in range(FEEDS_MAX + 3):
        view.want_flush(f"feed-{number}", number)
    found = view.flushes()
    assert (found.number, len(found.by_feed)) == (FEEDS_MAX + 3, FEEDS_MAX)
    assert (found.of("feed-2"), found.of("feed-3")) == (0, 4)


def ending(name: str, tables: int = 1) -> Ending:
    known_in = [KnownIn(ConnectionId(f"{n:032x}"), TableId(f"{n:032x}")) for n in range(tables)]
    return Ending(id=f"id-of-{name}", kind="feed", name=name, known_in=tuple(known_in))


def test_what_tables_are_to_forget_is_listed_by_compare_and_set(definitions: Definitions) -> None:
    assert definitions().endings() == Endings()
    assert definitions().change_endings([ending("a"), ending("b", 2)], [], 0) == 1
    for number in (0, 2):
        with pytest.raises(DefinitionChangedError):
            definitions().change_endings([ending("c")], [], number)
    assert definitions().endings() == Endings(1, (ending("a"), ending("b", 2)))
    assert definitions().change_endings([ending("a", 3)], ["id-of-b", "id-of-x"], 1) == 2
    assert definitions().endings() == Endings(2, (ending("a", 3),))
    assert definitions().change_endings([], ["id-of-a"], 2) == 3
    assert definitions().endings() == Endings(3)
    assert definitions().number() == 0, "definitions only are counted"
    assert definitions().list("feed") == []


def test_a_list_of_what_waits_is_bounded_and_shrinks_at_any_length(view: FeedRegistry) -> None:
    some = [ending(f"feed-{n}", 1_000) for n in range(3)]
    view.change_endings(some, [], 0)
    with pytest.raises(UnavailableError, match=r"wait to be forgotten.*waiting=3"):
        view.change_endings([ending(f"more-{n}", 1_000) for n in range(3)], [], 1)
    assert view.endings() == Endings(1, tuple(some))
    assert view.change_endings([], [some[0].id], 1) == 2

"""`feed flush`: what workers say of it, and what the command makes of that."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from lakebed.backends.memory import MemoryLeases, VirtualClock
from lakebed.errors import InvalidError, UnavailableError
from lakebed.feed_errors import DefinitionChangedError
from lakebed.feeds.operating.flush_feed import FLUSH_SECONDS, FeedFlushed, FlushFeed
from lakebed.feeds.worker import FeedReport
from lakebed.model.feeds.tallies import Tally
from lakebed.ports.leases import WorkerBeat, WorkerId
from tests.unit.feeds.definition_stories import Definitions

ANN, BEN = WorkerId("ann"), WorkerId("ben")


def report(name: str = "orders", *, flushed: int = 0, failing: str = "") -> FeedReport:
    return FeedReport(
        kind="feed" if name == "orders" else "connection", name=name, version=1, splits=1, behind=0,
        waiting=1_234, commits=0, tally=Tally(), flushed=flushed, failing=failing,
    )  # fmt: skip


class World:
    """A feed that runs, and what each worker does with each second."""

    def __init__(self) -> None:
        self.definitions = Definitions()
        self.definitions.apply()
        self.definitions.lifecycle.run("start", "orders")
        self.clock = VirtualClock()
        self.leases = Beaten(self)
        self.second: Callable[[float], None] = lambda _: None

    def beat(self, worker: WorkerId, *reports: FeedReport) -> None:
        self.leases.beat(worker, msgspec.json.encode(reports))

    def flush(self) -> FeedFlushed:
        begun = self.clock.monotonic()
        self.leases.looked = lambda: self.second(self.clock.monotonic() - begun)
        service = FlushFeed(self.definitions.registry, self.leases, self.clock)
        found = service.run("orders", wait_seconds=FLUSH_SECONDS)
        assert self.clock.monotonic() - begun < FLUSH_SECONDS + 1
        return found


class Beaten(MemoryLeases):
    """Leases in which something happens before each look."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.looked: Callable[[], None] = lambda: None
        self.away = 0

    def workers(self) -> list[WorkerBeat]:
        self.looked()
        if self.away:
            self.away -= 1
            raise UnavailableError("busy", hint="try again")
        return super().workers()


@pytest.fixture
def world() -> World:
    return World()


def test_it_waits_until_each_worker_has_committed_what_it_held(world: World) -> None:
    def second(at: float) -> None:
        world.beat(ANN, report(flushed=int(at > 5)), report("eu", flushed=int(at > 9)))
        world.beat(BEN, report(flushed=int(at > 7)), report("another"))

    world.second = second
    world.beat(ANN, report())
    world.leases.away = 0
    found = world.flush()
    assert found == FeedFlushed(feed="orders", number=1, is_whole=True, committed=("ann", "ben"))
    assert 9 < world.clock.monotonic() < 11
    assert world.definitions.true.flushes().of("orders") == 1


def test_a_beat_of_before_the_wish_says_nothing(world: World) -> None:
    world.definitions.true.want_flush("orders", 0)
    world.beat(ANN, report(flushed=7))

    def second(at: float) -> None:
        if at > 3:
            world.beat(ANN, report(flushed=2))

    world.second = second
    assert world.flush().is_whole
    assert world.clock.monotonic() > 3


def test_one_that_is_not_ready_in_time_is_named_with_what_it_met(world: World) -> None:
    def second(_: float) -> None:
        world.beat(ANN, report(flushed=1))
        world.beat(BEN, report(failing="unavailable: no broker"), report("eu", flushed=1))

    world.second = second
    found = world.flush()
    assert (found.is_whole, found.committed) == (False, ("ann",))
    assert found.late == {"ben": "unavailable: no broker"}
    assert world.clock.monotonic() >= FLUSH_SECONDS


def test_an_older_release_never_says_so_and_is_late(world: World) -> None:
    old = msgspec.to_builtins([report()])
    del old[0]["flushed"]
    world.second = lambda _: world.leases.beat(ANN, msgspec.json.encode(old))
    assert world.flush().late == {"ann": "it holds 1,234 bytes"}


def test_one_that_dies_or_ends_meanwhile_is_late_and_ends_the_wait(world: World) -> None:
    def dies(at: float) -> None:
        if at < 2:
            world.beat(ANN, report())

    world.second = dies
    assert world.flush().late == {"ann": "it is silent since"}
    assert world.clock.monotonic() < 12

    def ends(at: float) -> None:
        if at < 2:
            world.beat(BEN, report())
        else:
            world.leases.leave(BEN)

    world.second = ends
    assert world.flush().late == {"ben": "it ended meanwhile"}


def test_one_that_was_silent_before_counts_for_nothing(world: World) -> None:
    world.beat(BEN, report())
    world.second = lambda _: world.beat(ANN, report(flushed=1))
    found = world.flush()
    assert (found.is_whole, found.committed, found.silent) == (True, ("ann",), ("ben",))


def test_without_a_worker_that_runs_it_nothing_is_known(world: World) -> None:
    found = world.flush()
    assert (found.is_whole, found.committed, found.late) == (False, (), {})
    world.second = lambda _: world.beat(ANN, report("another"))
    assert not world.flush().is_whole


def test_leases_that_are_away_are_asked_again(world: World) -> None:
    def second(at: float) -> None:
        world.beat(ANN, report(flushed=1))
        if 0 < at < 1:
            world.leases.away = 1

    world.second = second
    assert world.flush().is_whole


@pytest.mark.parametrize(
    ("actions", "hint"), [(["stop"], "feed start"), (["suspend"], "feed resume")]
)
def test_a_feed_that_does_not_run_is_refused_and_nothing_is_wished(
    world: World, actions: list[str], hint: str
) -> None:
    for action in actions:
        world.definitions.lifecycle.run(action, "orders")  # type: ignore[arg-type]  # one of them
    with pytest.raises(InvalidError, match="holds nothing") as raised:
        world.flush()
    assert hint in str(raised.value.hint)
    with pytest.raises(InvalidError, match="no feed has this name"):
        FlushFeed(world.definitions.registry, world.leases, world.clock).run(
            "order", wait_seconds=1
        )
    assert world.definitions.true.flushes().number == 0


def test_of_two_operators_each_has_a_wish_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = world.definitions.true
    before = registry.want_flush
    raced = [True]

    def want_flush(feed: str, expected_number: int) -> int:
        if raced:
            raced.clear()
            before("orders", expected_number)
        return before(feed, expected_number)

    monkeypatch.setattr(registry, "want_flush", want_flush)
    world.second = lambda _: world.beat(ANN, report(flushed=2))
    assert world.flush().number == 2
    with pytest.raises(DefinitionChangedError):
        before("orders", 1)

"""The faults at the doors are harsh enough: they catch commit loops and sweepers that look right.

The right ones here are small models of the protocol (docs/design/backends.md says where the real
ones are); each twin leaves out one rule, and must be caught.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import msgspec
import pytest

from lakebed.backends.faulty import (
    HARSH,
    Fault,
    Faults,
    FaultyObjectStore,
    FaultyTransactionLog,
)
from lakebed.backends.memory import MemoryObjectStore, MemoryTransactionLogs, VirtualClock
from lakebed.errors import (
    LakebedError,
    LogConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import TableId, TransactionNumber
from lakebed.ports.transaction_log import TransactionLog

SEEDS = 60
TABLE = TableId("t1")


class Head:
    """Commits an id once, and tells the truth about it."""

    forgets_unanswered = False
    believes_taken = False

    def __init__(self, log: TransactionLog, clock: VirtualClock) -> None:
        self._log = log
        self._clock = clock
        self.number = 0
        self.ids: dict[bytes, int] = {}

    def follow(self) -> None:
        for number, body in self._log.read_after(TransactionNumber(self.number)):
            assert number == self.number + 1, "a gap"
            assert body not in self.ids, "an id twice"
            self.ids[body] = self.number = int(number)

    def commit(self, id_: bytes, seconds: float) -> int:
        end = self._clock.monotonic() + seconds
        unresolved: int | None = None
        failure: LakebedError | None = None
        while True:
            try:
                self.follow()
                if id_ in self.ids:
                    return self.ids[id_]
                if unresolved is not None and self.number >= unresolved:
                    unresolved, failure = None, LogConflictError(unresolved)
                if failure is not None and self._clock.monotonic() >= end:
                    break
                number = self.number + 1
                self._log.append(TransactionNumber(number), id_)
                return number
            except LogConflictError as error:
                if self.believes_taken:
                    raise
                unresolved, failure = number, error
            except UnknownOutcomeError as error:
                unresolved, failure = number, error
            except UnavailableError as error:
                failure = error
                if self._clock.monotonic() >= end:
                    break
            self._clock.sleep(1)
        if unresolved is not None and not self.forgets_unanswered:
            raise UnknownOutcomeError("a try may still land")
        raise failure


class ForgetfulHead(Head):
    """Lets "nothing was written" escape after a try without an answer (H2)."""

    forgets_unanswered = True


class TrustingHead(Head):
    """Takes "the number is taken" for "not by me" (H3)."""

    believes_taken = True


def commits_are_truthful(seed: int, kind: type[Head]) -> bool:
    rng = random.Random(seed)
    clock = VirtualClock()
    logs = MemoryTransactionLogs(clock)
    faults = Faults(random.Random(seed + 1), HARSH)
    log = FaultyTransactionLog(logs.open(TABLE), faults)
    heads = [kind(log, clock) for _ in range(3)]
    said: dict[bytes, str] = {}

    def one(head: Head) -> None:
        id_ = b"%d" % len(said)
        said[id_] = "unknown"
        try:
            said[id_] = f"at {head.commit(id_, rng.randrange(5))}"
        except UnknownOutcomeError:
            pass
        except LakebedError:
            said[id_] = "not there"

    faults.let_another_run = lambda: one(kind(log, clock))
    for _ in range(25):
        one(rng.choice(heads))
    faults.settle()
    fresh = Head(logs.open(TABLE), clock)
    fresh.follow()
    truth = {id_: f"at {fresh.ids[id_]}" if id_ in fresh.ids else "not there" for id_ in said}
    return all(words in {"unknown", truth[id_]} for id_, words in said.items())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_right_commit_loop_tells_the_truth_under_harsh_faults(seed: int) -> None:
    assert commits_are_truthful(seed, Head)


@pytest.mark.parametrize("twin", [ForgetfulHead, TrustingHead])
def test_harsh_faults_catch_a_commit_loop_that_is_nearly_right(twin: type[Head]) -> None:
    caught = sum(not commits_are_truthful(seed, twin) for seed in range(SEEDS))
    assert caught > SEEDS / 4, f"caught on {caught} of {SEEDS} seeds"


Entry = tuple[str, int, list[str]]
"""`add`, base, paths; or `floor`, number, none."""


class Files:
    """Workers that add files above a write floor, sweepers that delete what nobody added."""

    def __init__(self, seed: int, twin: str) -> None:
        self.twin = twin
        self.rng = random.Random(seed)
        clock = VirtualClock()
        self.true_log = MemoryTransactionLogs(clock).open(TABLE)
        self.true_objects = MemoryObjectStore(clock)
        rates = {fault: rate for fault, rate in HARSH.items() if "ANOTHER" not in fault.name}
        self.faults = Faults(random.Random(seed + 1), rates)
        self.log = FaultyTransactionLog(self.true_log, self.faults)
        self.objects = FaultyObjectStore(self.true_objects, self.faults)

    def state(self, log: TransactionLog) -> tuple[int, int, set[str]]:
        """Number, floor and files."""
        number, floor, files = 0, 0, set[str]()
        for number_, body in log.read_after(TransactionNumber(0)):
            kind, value, paths = msgspec.msgpack.decode(body, type=Entry)
            number = int(number_)
            floor = max(floor, value) if kind == "floor" else floor
            files |= set(paths)
        return number, floor, files

    def append(self, number: int, entry: Entry) -> None:
        self.log.append(TransactionNumber(number), msgspec.msgpack.encode(entry))

    def worker(self, name: int) -> Iterator[None]:
        base = self.state(self.log)[0]
        yield
        paths = []
        for n in range(self.rng.randrange(1, 4)):
            paths.append(f"{base:04}/{name}-{n}")
            writer = self.objects.create(paths[-1])
            try:
                writer.finish()
            except LakebedError:
                if self.objects.look(paths[-1]) is None:
                    return
            yield
        for _ in range(6):
            number, floor, files = self.state(self.log)
            if set(paths) <= files or (base < floor and self.twin != "no floor"):
                return
            yield
            with suppress(LakebedError):
                self.append(number + 1, ("add", base, paths))
            yield

    def sweeper(self) -> Iterator[None]:
        while True:
            number, _, before = self.state(self.log)
            floor = self.rng.randrange(number + 1)
            yield
            number = self.state(self.log)[0]
            yield
            if self.twin != "no floor":
                self.append(number + 1, ("floor", floor, []))
            yield
            files = before if self.twin == "old state" else self.state(self.log)[2]
            yield
            for path in self.objects.list("", below=f"{floor:04}"):
                if path not in files:
                    with suppress(LakebedError):
                        self.objects.delete([path])
                    yield

    def lose_nothing(self) -> bool:
        actors: list[Callable[[], Iterator[None]]] = [self.sweeper, self.sweeper]
        actors += [partial(self.worker, name) for name in range(self.rng.randrange(3, 9))]
        running = [actor() for actor in actors]
        for _ in range(400):
            place = self.rng.randrange(len(running))
            try:
                next(running[place])
            except (StopIteration, LakebedError):
                running[place] = actors[place]() if place < 2 else iter(())
        self.faults.settle()
        return self.state(self.true_log)[2] <= set(self.true_objects.list(""))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_floor_keeps_every_file_of_the_state_under_harsh_faults(seed: int) -> None:
    assert Files(seed, "").lose_nothing()


@pytest.mark.parametrize("twin", ["no floor", "old state"])
def test_harsh_faults_catch_a_sweeper_that_is_nearly_right(twin: str) -> None:
    caught = sum(not Files(seed, twin).lose_nothing() for seed in range(SEEDS))
    assert caught >= SEEDS / 20, f"caught on {caught} of {SEEDS} seeds"


def test_the_models_meet_every_fault_of_log_and_objects() -> None:
    fired = set[Fault]()
    for seed in range(SEEDS):
        files = Files(seed, "")
        files.lose_nothing()
        fired |= set(files.faults.fired)
    doors = ("APPEND", "LOG", "PUT", "DELETE", "LIST", "READ", "LATE")
    assert {f.name for f in Fault if f.name.startswith(doors)} <= {f.name for f in fired}

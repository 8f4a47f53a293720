"""The local cloud: the deployed templates, run on this machine in real or in virtual time."""

from __future__ import annotations

import heapq
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Self

import msgspec

from lakebed.backends.system.random_source import system_random
from lakebed.errors import InvalidError, did_you_mean
from lakebed.ports.clock import Clock
from localcloud.resources.deployment import LocalDeployment
from localcloud.runner.event_delivery import EventDelivery
from localcloud.runner.event_sources import Failure, InjectedFaults
from localcloud.runner.invocations import InvocationServer, forget_functions
from localcloud.runner.metrics import Watch
from localcloud.runner.schedules import Next, next_after
from localcloud.runner.spark_clusters import EmulatedSparkClusters
from localcloud.runner.spark_runs import EmulatedSparkRuns, SparkLauncher
from localcloud.runner.tasks import RunningTasks
from localcloud.runner.workers import Outcome, Workers
from localcloud.services.amazon import Amazon
from localcloud.services.cloud_clock import CloudClock
from localcloud.services.emulator import ACCOUNT, REGION, ROOT_KEY, Emulator
from localcloud.templates.assembly import read_assembly
from localcloud.templates.running import USUAL_RETRIES, RuleSpec, name_in

CALLS_AT_ONCE = (os.cpu_count() or 1) + 2
RETRY_SECONDS = 60
"""Seconds to the first retry of a call whose caller does not wait; twice as long to the second, as
with Lambda."""
LOOK_SECONDS, IDLE_SECONDS = 0.05, 0.1
"""Seconds between looks at queues: while calls run, and when there is nothing to do."""
TASKS_LOOK_SECONDS = 1.0
PUBLISHED_SECONDS = 60
"""Seconds between two publications of metrics when nothing happens, in the cloud's time."""
FAILURES_KEPT = 1_000


class DueCall(msgspec.Struct, frozen=True, order=True):
    """A call that is due at a time.

    order: among those of one time.
    """

    at: float
    order: int
    function: str
    event: Any = msgspec.field(default=None)
    tries: int = 1


class LocalCloud:
    """Deploys an assembly to an emulator of its own, and runs it.

    folder: for logs and, with `kept`, for what the emulator holds. clock: this machine's.
    Methods are for one thread at a time, but for `stop` and those that only look.

    Raises:
        InvalidError: the assembly asks for what is not known here. UnavailableError: the emulator
            does not start.
    """

    def __init__(
        self,
        assembly: Path,
        folder: Path,
        *,
        clock: Clock,
        secured: bool = True,
        kept: bool = False,
        calls_at_once: int = CALLS_AT_ONCE,
    ) -> None:
        templates = read_assembly(assembly)
        self.clock = CloudClock(clock)
        self.faults = InjectedFaults()
        self.failures: deque[Failure] = deque(maxlen=FAILURES_KEPT)
        """The latest, oldest first."""
        self._lock = threading.RLock()
        self._orders = count()
        self._due: list[DueCall] = []
        self._fires: list[tuple[float, str]] = []
        self._next: dict[str, Next] = {}
        self._scheduled: dict[str, int] = {}
        self._at_once = calls_at_once
        self._pending: set[Future[DueCall | None]] = set()
        self._published = 0.0
        with ExitStack() as undo:
            self._emulator = Emulator(folder, clock=clock, secured=secured, kept=kept)
            undo.callback(self._emulator.close)
            self._amazon = Amazon(self._emulator, clock=self.clock)
            undo.callback(self._amazon.close)
            images = self._emulator.folder / "images"
            self.deployment = LocalDeployment(templates, self._amazon, images=images)
            running = self.deployment.running
            self._watch = Watch(self._amazon, running.alarms)
            self._workers = Workers(
                self._amazon,
                self._emulator.folder,
                clock=self.clock,
                said=self._watch.note_said,
                called=self._note_call,
            )
            undo.callback(self._workers.close)
            calls = undo.enter_context(InvocationServer(self.invoke, rng=system_random()))
            calls.register(running.functions, self._amazon)
            self.tasks = self._tasks()
            undo.callback(self.tasks.close)
            launcher = self._launcher()
            self.spark = EmulatedSparkRuns(running.spark, self._emulator, launcher)
            undo.callback(self.spark.close)
            self.spark_clusters = EmulatedSparkClusters(running.machines, self._emulator, launcher)
            undo.callback(self.spark_clusters.close)
            self._delivery = self._deliverer()
            self._pool = ThreadPoolExecutor(calls_at_once, thread_name_prefix="call")
            undo.callback(self._pool.shutdown)
            for rule in running.rules.values():
                self._plan(rule)
            self._undo = undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything. What the emulator holds is gone, unless it is kept."""
        self._undo.close()

    def destroy(self) -> list[str]:
        """Take the stacks down, all but what they retain. Returns what could not be."""
        with self._lock:
            forget_functions(self.deployment.running.functions, self._amazon)
            return self.deployment.destroy()

    def environment(self) -> dict[str, str]:
        """Return the variables that lead users' programs here, as the account's root."""
        return {
            **self._emulator.environment(),
            "AWS_ACCESS_KEY_ID": ROOT_KEY,
            "AWS_SECRET_ACCESS_KEY": ROOT_KEY,
        }

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3's classes are made at run time
        """Return a client of a service, as the account's root."""
        return self._amazon.client(service)

    def invoke(self, function: str, event: object) -> Outcome:
        """Call a function and wait for its answer."""
        known = self.deployment.running.functions
        if function not in known:
            hint = did_you_mean(function, known, what="function")
            raise InvalidError("there is no such function", function=function, hint=hint)
        return self._workers.call(known[function], event)

    def fire(self, *rules: str) -> None:
        """Let schedules fire now, all that are enabled if none is named; do what follows."""
        known = self.deployment.running.rules
        for name in rules:
            if name not in known:
                hint = did_you_mean(name, known, what="schedule")
                raise InvalidError("there is no such schedule", schedule=name, hint=hint)
        with self._lock:
            for rule in [known[name] for name in rules] or list(known.values()):
                if rule.enabled or rules:
                    self._call_targets(rule)
            self.settle()

    def settle(self) -> None:
        """Return when no message can be received and no call is due: what failed may wait.

        Schedules do not fire here, however long it takes: `advance` and `run` let them. Tasks that
        were asked for have been started, and go on.
        """
        with self._lock:
            self._start_due()
            while self._receive() or self._pending:
                self._wait_for_calls()
                self._start_due()
            self._look()
            self._publish()

    def finish_tasks(self, *, seconds_max: float) -> bool:
        """Return when no task and no Spark runs, doing meanwhile what is due. False: some did."""
        end = self.clock.monotonic() + seconds_max
        while self.clock.monotonic() < end:
            self.settle()
            if not (self.tasks.running or self.spark.running or self.spark_clusters.running):
                return True
            self.clock.sleep(LOOK_SECONDS)
        return False

    def advance(self, seconds: float, *, schedules: bool = True) -> None:
        """Let time pass: schedules fire, and messages come back, each at its time.

        schedules: False: they rest meanwhile, and go on from the end.
        """
        with self._lock:
            if schedules:
                self._advance(self.clock.seconds() + seconds)
                return
            resting, self._fires = self._fires, []
            self._advance(self.clock.seconds() + seconds)
            now = self.clock.seconds()
            self._fires = sorted((self._next[name](now), name) for _, name in resting)

    def run(self, *, stopped: Callable[[float], bool]) -> None:
        """Do what is due, in real time. stopped: waits so many seconds, and says whether to end."""
        looked = self.clock.monotonic()
        while not stopped(0 if self._pending else IDLE_SECONDS):
            with self._lock:
                self._fire_due()
                self._start_due()
                if not self._receive() and self._pending:
                    self._wait_for_calls()
                if self.clock.monotonic() - looked >= TASKS_LOOK_SECONDS:
                    looked = self.clock.monotonic()
                    self._look()
                if self.clock.seconds() - self._published >= PUBLISHED_SECONDS:
                    self._publish()

    def queues(self) -> dict[str, dict[str, float]]:
        """Return of each queue by name: `visible`, `hidden`, `age_seconds`, `back_seconds`."""
        found: dict[str, dict[str, float]] = self._emulator.ask("queues")
        return found

    def note_judgements(self) -> None:
        """Begin to note which statements of each role are used, and which are needed."""
        self._emulator.ask("note_judgements")

    def judgements(self) -> list[dict[str, Any]]:
        """Return the notes: `role`, `statement` by its index among the role's, the actions `used`,
        and as `needed` the first action and resource that it alone allowed, or None."""
        found: list[dict[str, Any]] = self._emulator.ask("judgements")
        return found

    def requests(self) -> dict[str, dict[str, int]]:
        """Return how many requests each role sent so far, by what they are called in policies."""
        return dict(self._emulator.ask("requests"))

    def alarms(self) -> dict[str, str]:
        """Return the state of each alarm."""
        return self._watch.states()

    def _tasks(self) -> RunningTasks:
        running = self.deployment.running
        return RunningTasks(
            running.tasks,
            running.clusters,
            self._amazon,
            self._emulator,
            clock=self.clock,
            said=self._watch.note_said,
        )

    def _deliverer(self) -> EventDelivery:
        return EventDelivery(
            self.deployment.running,
            self._amazon,
            self._workers,
            clock=self.clock,
            faults=self.faults,
            failed=self._note_failure,
        )

    def _launcher(self) -> SparkLauncher:
        return SparkLauncher(
            self._amazon, self._emulator, clock=self.clock, said=self._watch.note_said
        )

    def _look(self) -> None:
        """Start and stop what was asked for: tasks, and runs of Spark."""
        self.tasks.look()
        self.spark.look()
        self.spark_clusters.look()

    def _plan(self, rule: RuleSpec) -> None:
        self._next[rule.name] = next_after(rule.expression)
        if rule.enabled:
            at = self._next[rule.name](self.clock.seconds())
            heapq.heappush(self._fires, (at, rule.name))

    def _advance(self, end: float) -> None:
        while True:
            moments = [call.at for call in self._due[:1]]
            moments += [at for at, _ in self._fires[:1]]
            moments += self._delivery.comebacks(self.queues(), self.clock.seconds())
            self._jump(min([end, *moments]))
            self._fire_due()
            self.settle()
            if self.clock.seconds() >= end:
                return

    def _jump(self, to: float) -> None:
        self.clock.jump_to(to)
        self._emulator.ask("shift", seconds=self.clock.ahead_seconds)

    def _fire_due(self) -> None:
        now = self.clock.seconds()
        while self._fires and self._fires[0][0] <= now:
            at, name = heapq.heappop(self._fires)
            self._call_targets(self.deployment.running.rules[name])
            heapq.heappush(self._fires, (max(self._next[name](at), now), name))

    def _start_due(self) -> None:
        now = self.clock.seconds()
        while self._due and self._due[0].at <= now:
            call = heapq.heappop(self._due)
            self._pending.add(self._pool.submit(self._call, call))

    def _call_targets(self, rule: RuleSpec) -> None:
        at = self.clock.seconds()
        # Seconds tell runs of a schedule apart: who is fired twice in one would be asked once.
        scheduled = max(int(at), self._scheduled.get(rule.name, 0) + 1)
        self._scheduled[rule.name] = scheduled
        for arn, given in rule.inputs.items():
            event = msgspec.json.decode(given) if given else _scheduled_event(rule, scheduled)
            call = DueCall(at, next(self._orders), name_in(arn), event)
            self._pending.add(self._pool.submit(self._call, call))

    def _call(self, call: DueCall) -> DueCall | None:
        """Call a function. Returns the next try, if it failed."""
        outcome = self.invoke(call.function, call.event)
        if outcome.error is None:
            return None
        self._note_failure(Failure(call.function, outcome.error))
        retries = self.deployment.running.retries.get(call.function, USUAL_RETRIES)
        if call.tries > retries:
            return None
        at = self.clock.seconds() + RETRY_SECONDS * call.tries
        return DueCall(at, next(self._orders), call.function, call.event, call.tries + 1)

    def _receive(self) -> bool:
        """Hand what is received to functions, as many as may run. Returns whether there was
        any."""
        calls = self._delivery.receive(self.queues(), self._at_once - len(self._pending))
        self._pending |= {self._pool.submit(call) for call in calls}
        return bool(calls)

    def _wait_for_calls(self) -> None:
        full = len(self._pending) >= self._at_once
        done, self._pending = wait(
            self._pending, None if full else LOOK_SECONDS, return_when=FIRST_COMPLETED
        )
        for again in (call.result() for call in done):
            if again is not None:
                heapq.heappush(self._due, again)

    def _note_call(self, function: str, outcome: Outcome) -> None:
        self._watch.note_call(function, failed=outcome.error is not None)

    def _note_failure(self, failure: Failure) -> None:
        self.failures.append(failure)

    def _publish(self) -> None:
        self._watch.publish(self.queues())
        self._published = self.clock.seconds()


def _scheduled_event(rule: RuleSpec, at: int) -> Mapping[str, object]:
    """Return what EventBridge sends when a schedule fires. at: in seconds since 1970."""
    return {
        "version": "0",
        "id": f"{rule.name}-{at}",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [rule.arn],
        "detail": {},
    }

"""Chooses which faults happen, counts them, and keeps the requests that are still under way."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum

from lakebed.errors import LakebedError
from lakebed.model.names import TransactionNumber

RECENT_MAX = 50
"""Most recent puts and deletes that a listing may not know of yet."""


class Fault(StrEnum):
    """A kind of fault that is injected at a port."""

    ANOTHER_BEFORE_APPEND = "another runs before an append"
    ANOTHER_ELSEWHERE = "another runs elsewhere"
    LATE_DELIVERED = "late request delivered"

    APPEND_THROTTLED = "append throttled, not sent"
    APPEND_LOST = "append lost"
    APPEND_LATE = "append lands later"
    APPEND_UNANSWERED = "append landed, unanswered"
    APPEND_OWN_TRY = "append landed, then told it is taken"
    LOG_READ_THROTTLED = "log read throttled"
    LOG_READ_CUT = "log read cut short"
    TRUNCATE_THROTTLED = "truncation throttled"
    TRUNCATE_PARTIAL = "truncation done in part"

    PUT_THROTTLED = "put throttled, not sent"
    PUT_LOST = "put lost"
    PUT_LATE = "put lands later"
    PUT_UNANSWERED = "put landed, unanswered"
    PUT_OWN_TRY = "put landed, then told it exists"
    PUT_TWICE = "put landed, and lands again later"
    DELETE_THROTTLED = "delete throttled, rest not done"
    DELETE_LATE = "delete lands later"
    DELETE_UNANSWERED = "delete landed, unanswered"
    LIST_THROTTLED = "listing throttled"
    LIST_HIDES = "listing hides a recent put"
    LIST_SHOWS_DELETED = "listing shows a deleted object"
    READ_THROTTLED = "object read throttled"

    SEND_THROTTLED = "send throttled, not sent"
    SEND_UNANSWERED = "send landed, unanswered"
    MESSAGE_LOST = "message lost"
    MESSAGE_DOUBLED = "message doubled"
    MESSAGE_LATE = "message arrives later"
    RECEIVE_EMPTY = "receive finds nothing"
    MESSAGE_DELETE_LOST = "message delete lost"
    EXTEND_LOST = "message extension lost"


CALM: Mapping[Fault, float] = {}
"""Nothing goes wrong: for counting effects and for crashes alone."""

HARSH: Mapping[Fault, float] = dict.fromkeys(Fault, 0.1) | {
    Fault.ANOTHER_BEFORE_APPEND: 0.3,
    Fault.ANOTHER_ELSEWHERE: 0.05,
    Fault.LATE_DELIVERED: 0.2,
    Fault.APPEND_LATE: 0.15,
    Fault.APPEND_OWN_TRY: 0.05,
    Fault.LIST_THROTTLED: 0.05,
    Fault.READ_THROTTLED: 0.05,
}
MILD: Mapping[Fault, float] = {fault: rate / 5 for fault, rate in HARSH.items()}


class Faults:
    """The ill luck of one world, shared by all its doors. A rate is a probability per request.

    let_another_run: called where another worker may do some work before a request is sent; it is
    not called again while it runs. Replaced and stopped at will: `rates`, `let_another_run`.
    """

    def __init__(
        self,
        rng: random.Random,
        rates: Mapping[Fault, float] = HARSH,
        *,
        let_another_run: Callable[[], None] | None = None,
    ) -> None:
        self.rng = rng
        self.rates = rates
        self.let_another_run = let_another_run
        self.fired: Counter[Fault] = Counter()
        self.reused_paths: set[str] = set()
        """Paths that were put again with other bytes: names are used once (H19)."""
        self._late: list[Callable[[], None]] = []
        self._another_runs = False
        self._checksums: dict[str, int] = {}
        self.recent_puts: deque[str] = deque(maxlen=RECENT_MAX)
        self.recent_deletes: deque[str] = deque(maxlen=RECENT_MAX)

    @property
    def late_count(self) -> int:
        """Return the number of requests that are still under way."""
        return len(self._late)

    def choose(self, *faults: Fault) -> Fault | None:
        """Return the fault of these that happens to a request, and count it; None: all is well."""
        drawn = self.rng.random()
        for fault in faults:
            drawn -= self.rates.get(fault, 0.0)
            if drawn < 0:
                self.fired[fault] += 1
                return fault
        return None

    def pass_door(self, another: Fault = Fault.ANOTHER_ELSEWHERE) -> None:
        """Let late requests arrive and another worker run, before a request is sent."""
        self.deliver_late(self.rates.get(Fault.LATE_DELIVERED, 0.0))
        if self.let_another_run is None or self._another_runs or not self.choose(another):
            return
        self._another_runs = True
        try:
            self.let_another_run()
        finally:
            self._another_runs = False
        self.deliver_late(self.rates.get(Fault.LATE_DELIVERED, 0.0))

    def later(self, request: Callable[[], None]) -> None:
        """Keep a request under way, whether its sender lives or not."""
        self._late.append(request)

    def deliver_late(self, probability: float) -> None:
        """Let each request that is under way arrive with this probability, in any order."""
        if not self._late or probability <= 0:
            return
        waiting, self._late = self._late, []
        self.rng.shuffle(waiting)
        for request in waiting:
            if self.rng.random() >= probability:
                self._late.append(request)
                continue
            self.fired[Fault.LATE_DELIVERED] += 1
            with suppress(LakebedError):  # no caller waits for the answer
                request()

    def settle(self) -> None:
        """Let every request arrive, and listings know of everything."""
        self.deliver_late(1.0)
        self.recent_puts.clear()
        self.recent_deletes.clear()

    @contextmanager
    def none(self) -> Iterator[None]:
        """Let nothing go wrong meanwhile: for checkers that look at the world."""
        before = self.rates, self.let_another_run
        self.rates, self.let_another_run = CALM, None
        try:
            yield
        finally:
            self.rates, self.let_another_run = before

    def note_put(self, path: str, checksum: int) -> None:
        """Remember that an object was put, or that a process tried."""
        if self._checksums.setdefault(path, checksum) != checksum:
            self.reused_paths.add(path)
        self.recent_puts.append(path)

    def before_append(self, number: TransactionNumber, body: bytes) -> None:
        """Do nothing before an entry is sent to a log; a world may choose what happens then by what
        is in it."""

    def table(self) -> str:
        """Return how often each fault happened, one a line, those that never did too."""
        width = max(map(len, Fault))
        return "\n".join(f"{fault:<{width}} {self.fired[fault]:>9}" for fault in Fault)

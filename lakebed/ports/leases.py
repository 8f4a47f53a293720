"""The door to who works on what: beats of workers, and owners of source splits.

Owner numbers bring order, not safety: what keeps records whole is the chain of positions in a
table's log (protocol R2). A number that was handed out twice costs work and loses nothing.
"""

from __future__ import annotations

from typing import NewType, Protocol

import msgspec

from lakebed.errors import InvalidError

WorkerId = NewType("WorkerId", str)
"""Id of one start of a worker: never used again."""

OwnerNumber = NewType("OwnerNumber", int)

REPORT_BYTES_MAX = 16 << 10
NAME_BYTES_MAX = 600
WORKER_BYTES_MAX = 200
AT_LEAST_MAX = 1 << 53
OWNERS_MAX = 1_000
"""Most owners on a page, unless the caller wants fewer."""


class WorkerBeat(msgspec.Struct, frozen=True):
    """The last beat of a worker.

    counter: rises with each beat. When it does not, the worker is dead, perhaps: no time is
        compared but the reader's own.
    report: what the worker says of itself.
    """

    worker: WorkerId
    counter: int
    report: bytes


class Owner(msgspec.Struct, frozen=True):
    """The owner of something, such as a source split of a connection.

    number: of the newest claim.
    worker: that made it; "": it was given up.
    """

    name: str
    number: OwnerNumber
    worker: WorkerId


class Leases(Protocol):
    """Beats and owners. Reading is strongly consistent.

    Every implementation passes `tests/contracts/feeds/test_leases.py`.

    Any of its methods raises UnavailableError when the store is busy; one that writes raises
    UnknownOutcomeError when no answer came: call it again.
    """

    def beat(self, worker: WorkerId, report: bytes) -> None:
        """Say that a worker lives, and what it does. A beat that comes late counts as one."""
        ...

    def workers(self) -> list[WorkerBeat]:
        """Return the last beat of each worker that has not left, by name."""
        ...

    def leave(self, worker: WorkerId) -> None:
        """Take a worker from the list: it ends, or was dead for long. One that lives is listed
        again with its next beat."""
        ...

    def claim(self, name: str, worker: WorkerId, at_least: int) -> OwnerNumber:
        """Make a worker the owner, in place of another one, too. Returns the number of this claim:
        greater than that of every earlier one, and `at_least` that (protocol R3)."""
        ...

    def release(self, name: str, worker: WorkerId, number: OwnerNumber) -> None:
        """Give up what a claim got, unless a later one has it. The number stays for ever."""
        ...

    def owner(self, name: str) -> Owner | None:
        """Return who owns it; None: it was never claimed."""
        ...

    def owners(
        self, *, prefix: str = "", after: str = "", owners_max: int = OWNERS_MAX
    ) -> list[Owner]:
        """Return all that was ever claimed, of names that begin with `prefix` and come after
        `after`, by name; an empty list: no more."""
        ...


def check_worker(worker: WorkerId) -> None:
    """Raise InvalidError if no worker can be called so."""
    _check("worker", worker, WORKER_BYTES_MAX)


def check_claim(name: str, worker: WorkerId, at_least: int) -> None:
    """Raise InvalidError if nothing can be called so, or the number is none."""
    _check("name to claim", name, NAME_BYTES_MAX)
    check_worker(worker)
    if not 0 <= at_least <= AT_LEAST_MAX:
        hint = f"give 0 to {AT_LEAST_MAX}"
        raise InvalidError("not an owner number", at_least=at_least, hint=hint)


def check_report(report: bytes) -> None:
    """Raise InvalidError if a report is too large."""
    if len(report) > REPORT_BYTES_MAX:
        hint = f"give at most {REPORT_BYTES_MAX} bytes"
        raise InvalidError("a worker's report is too large", bytes=len(report), hint=hint)


def _check(what: str, text: str, bytes_max: int) -> None:
    size = len(text.encode("utf-8", "replace"))
    is_text = "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
    if not is_text or not 0 < size <= bytes_max:
        hint = f"use 1 to {bytes_max} bytes of text, without zeros"
        raise InvalidError(f"not a {what}", name=ascii(text)[:80], hint=hint)

"""Transactions that wait for their answers, how long they are tried, and what is true of them when
time is up."""

from __future__ import annotations

import random

import msgspec

from lakebed.errors import (
    DeniedError,
    InvalidError,
    LakebedError,
    LogRolledBackError,
    LogTruncatedError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import TransactionNumber
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.transactions import Transaction

NOTHING_WRITTEN = (UnavailableError, DeniedError, InvalidError, LogRolledBackError)
"""Errors that `append` raises when this call wrote nothing."""


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """The retry policy of a commit: how long it tries, and how it waits. Bounded by time, not by
    tries (H8)."""

    seconds_max: float = 60.0
    jitter_seconds: float = 0.005
    throttled_seconds: float = 0.2
    rolled_back_seconds: float = 2.0

    def wait_seconds(self, failure: LakebedError, rng: random.Random) -> float:
        """Return how long to wait: hardly after a conflict, for another writer progressed; longer
        when throttled; longest where the log lacks entries, which hardly mends itself."""
        most = self.jitter_seconds
        if isinstance(failure, UnavailableError):
            most = self.throttled_seconds
        elif isinstance(failure, LogRolledBackError):
            most = self.rolled_back_seconds
        return rng.random() * most


class PendingCommit:
    """A transaction that waits for its answer. unresolved: a try sent for this number may yet
    land."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.unresolved: TransactionNumber | None = None
        self.answer: TransactionNumber | LakebedError | None = None


def last_answer(member: PendingCommit, failure: LakebedError) -> LakebedError:
    """Return the truth at the deadline: the weakest outcome of all tries (H2). A log that was
    rolled back says so itself, and that a try may be in it. It is never a refusal: the member was
    not checked against the newest state."""
    if member.unresolved is not None and not isinstance(failure, LogRolledBackError):
        number = member.unresolved
        return UnknownOutcomeError("a try may still land", number=number, reason=failure)
    if isinstance(failure, UnknownOutcomeError):  # of an entry without this member
        hint = "send the same request again"
        problem = "the log did not answer before the deadline"
        return UnavailableError(problem, reason=failure, hint=hint)
    return failure


def answer_in_log(
    log: TransactionLog, transaction: Transaction, tried: TransactionNumber
) -> TransactionNumber | LakebedError | None:
    """Return the answer from the entry itself: the floor has passed the transaction's base, so the
    state may have forgotten its id (H6)."""
    try:
        for number, body in log.read_after(TransactionNumber(tried - 1)):
            for landed in decode_entry(body, number).transactions:
                if (landed.id, landed.digest) == (transaction.id, transaction.digest):
                    return number
            break
    except LogTruncatedError:
        return UnknownOutcomeError(
            "the log has lost the entry that records the outcome", number=tried
        )
    return None

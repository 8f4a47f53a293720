"""Transactions that wait for their answers, and what is true of them when time is up."""

from __future__ import annotations

from lakebed.errors import ConflictError, LakebedError, UnknownOutcomeError
from lakebed.model.names import TransactionNumber
from lakebed.statestore.transactions import Transaction


class Member:
    """A transaction that waits for its answer. unresolved: a try sent for this number may yet
    land."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.unresolved: TransactionNumber | None = None
        self.answer: TransactionNumber | LakebedError | None = None


def last_answer(member: Member, failure: LakebedError | None) -> LakebedError:
    """Return the truth at the deadline: the weakest outcome of all tries."""
    if member.unresolved is not None:
        number = member.unresolved
        return UnknownOutcomeError("a try may still land", number=number, reason=failure)
    if failure is None or isinstance(failure, UnknownOutcomeError):  # a neighbour's
        return ConflictError("others won until the deadline")
    return failure

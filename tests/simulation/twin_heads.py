"""Twins of the head, each with exactly one rule broken."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from lakebed.errors import ConflictError, LakebedError, LogRolledBackError, UnknownOutcomeError
from lakebed.model.names import CommitId, Micros, RequestDigest, TransactionNumber, entry_checksum
from lakebed.statestore import head as head_module
from lakebed.statestore.answers import PendingCommit
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_clock import NextTime
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.table_state.state import Moment, TableState


class FoundByBytes(TableHead):
    """Asks whether its bytes are at the number it tried, not whether its id is in the state."""

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - as the head has it
        super().__init__(*given, **named)
        self._sent: dict[CommitId, tuple[TransactionNumber, bytes]] = {}
        by_bytes: Any = SimpleNamespace(number_of=self._number_by_bytes)
        self.state.landed = lambda _: by_bytes  # type: ignore[method-assign] # its rule

    def _append(
        self,
        moment: Moment,
        accepted: tuple[Transaction, ...],
        riders: Sequence[Any],
    ) -> None:
        body = head_module.encode_entry(head_module.Entry(moment.at, tuple(accepted)))
        self._sent |= {t.id: (moment.number, body) for t in accepted}
        super()._append(moment, accepted, riders)

    def _number_by_bytes(self, id_: CommitId, _: RequestDigest) -> TransactionNumber | None:
        number, body = self._sent.get(id_, (TransactionNumber(1 << 40), b""))
        if number > self.state.head().number:
            return None
        try:
            found = next(iter(self._log.read_after(TransactionNumber(number - 1))), None)
        except LakebedError:
            return None
        return number if found is not None and found[1] == body else None


class NewIdAfterNoAnswer(TableHead):
    """Takes a lost answer for a failure and sends its work again under a new id."""

    def commit(self, transaction: Transaction) -> TransactionNumber:
        try:
            return super().commit(transaction)
        except head_module.UnknownOutcomeError:
            id_ = CommitId(f"{self._rng.getrandbits(128):032x}")
            return super().commit(msgspec.structs.replace(transaction, id=id_))


class TakesWhatComes(TableHead):
    """Applies what the log yields, whatever its numbers are."""

    def _read_some(self, number: TransactionNumber, _: object) -> tuple[list[Any], bool]:
        try:
            found = list(self._log.read_after(number))
        except head_module.UnavailableError:  # what was cut short is read again later
            found = []
        self._numbers = [at for at, _ in found]
        entries = [(head_module.decode_entry(body, at), entry_checksum(body)) for at, body in found]
        return entries, True

    def _apply(self, entries: Sequence[Any], _: TransactionNumber) -> bool:
        with self.state.writing():
            for number, (entry, checksum) in zip(self._numbers, entries, strict=True):
                moment = Moment(number, entry.at)
                for transaction in entry.transactions:
                    transaction.apply(self.state, moment)
                head_module.finish_entry(self.state, moment, checksum)
        return True


class AnswersBeforeAppend(TableHead):
    """Checks, answers, and then writes, if it can."""

    def commit(self, transaction: Transaction) -> TransactionNumber:
        self.follow()
        number = TransactionNumber(self.state.head().number + 1)
        try:
            return super().commit(transaction)
        except (head_module.UnavailableError, head_module.UnknownOutcomeError):
            return number


class TimeRunsBack(TableHead):
    """Writes its own clock into an entry, whatever the entry before says."""

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - as the head has it
        super().__init__(*given, **named)
        own = lambda _: NextTime(self.times.now())  # noqa: E731 - a line that fits
        self.times.next_time = own  # type: ignore[method-assign]  # the one rule that is broken


class BelievesEveryLeap(TableHead):
    """Follows whatever clock it has, as far ahead as that is."""

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - as the head has it
        super().__init__(*given, **named)
        times = self.times

        def next_time(state: TableState) -> NextTime:
            return NextTime(Micros(max(state.head().at, times.now())))

        times.next_time = next_time  # type: ignore[method-assign] # its rule


def lets_nothing_was_written_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    def last_answer(_: object, failure: LakebedError) -> LakebedError:
        known = isinstance(failure, LogRolledBackError)
        return failure if known else head_module.UnavailableError(str(failure))

    monkeypatch.setattr(head_module, "last_answer", last_answer)


def refuses_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tells a commit that it lost, when an entry without it had no answer."""
    last_answer = head_module.last_answer

    def told(member: PendingCommit, failure: LakebedError) -> LakebedError:
        if member.unresolved is None and isinstance(failure, UnknownOutcomeError):
            return ConflictError("lost every commit race before the deadline")
        return last_answer(member, failure)

    monkeypatch.setattr(head_module, "last_answer", told)

"""What users were told, held against what the log says."""

from __future__ import annotations

import msgspec

from lakebed.model.names import JobId, RequestDigest, TableId, TransactionNumber
from tests.simulation.auditor import Auditor, Landing
from tests.simulation.rows import Request
from tests.simulation.violation import TRUTH, Violation


class Asked(msgspec.Struct):
    """A request, and what became of its tries.

    job: the id under which it may be sent again; None: not known. open: tries that may yet land.
    """

    request: Request
    table: TableId
    job: JobId | None
    open: int = 0
    acknowledged: TransactionNumber | None = None
    reused: bool = False


class Truth:
    """All requests of a world. auditors: by table."""

    def __init__(self, auditors: dict[TableId, Auditor]) -> None:
        self.asked: dict[RequestDigest, Asked] = {}
        self._auditors = auditors

    def landing(self, asked: Asked) -> Landing | None:
        """Return where a request landed first."""
        found = self._auditors[asked.table].landings_of(asked.request.digest)
        return found[0] if found else None

    def acknowledge(self, asked: Asked, number: TransactionNumber) -> None:
        """A user was told that the rows are in."""
        found = self._auditors[asked.table].landings_of(asked.request.digest)
        if number not in {landing.number for landing in found}:
            story = f"{asked.request.id} was acknowledged at {number}, and is not there"
            raise Violation(TRUTH, story)
        asked.acknowledged = number

    def refuse(self, asked: Asked) -> None:
        """A user was told that this try did nothing, and will do nothing."""
        asked.open -= 1
        self.check(asked)

    def check(self, asked: Asked) -> None:
        """What was refused each time is not in the log; of a dropped table it does not matter."""
        if self._auditors[asked.table].state.head().dropped:
            return
        landing = self.landing(asked)
        if landing is not None and not asked.open and asked.acknowledged is None:
            story = f"{asked.request.id} was refused each time, and landed at {landing.number}"
            raise Violation(TRUTH, story)

    def refuse_as_reused(self, asked: Asked) -> None:
        """A user was told that the id belongs to another request."""
        others = self._auditors[asked.table].landings.get(asked.request.id, [])
        if all(landing.digest == asked.request.digest for landing in others):
            raise Violation(TRUTH, f"{asked.request.id} was refused as used, and nobody used it")
        asked.reused = True
        self.refuse(asked)

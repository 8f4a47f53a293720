"""The door to what a cloud's own bill says of an instance."""

from __future__ import annotations

import datetime
from typing import Protocol


class Bills(Protocol):
    """The billed amounts by service. Bills lag behind by a day, and are asked for money."""

    def by_service(self, since: datetime.date, until: datetime.date) -> dict[str, float]:
        """Return dollars by service, from one day on and before another, before taxes and credits.

        Raises:
            DeniedError: the credentials do not permit it.
            UnavailableError: it cannot be asked now.
            InvalidError: it does not answer such a question, as for an account that has no bill.
        """
        ...

"""Makes the tables of an instance those that were deployed with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakebed.observe import events
from lakebed.tables.apply_tables import ApplyTables
from lakebed.tables.declarations import declarations_of


class DeployTables:
    """Applies files once, when they are deployed.

    read_texts: returns the files by name.
    is_taken_back: whether the deployment is being taken back. Then the files are those of before,
        and would make again what this deployment has renamed.
    """

    def __init__(
        self,
        tables: ApplyTables,
        *,
        read_texts: Callable[[], Mapping[str, str]],
        is_taken_back: Callable[[], bool],
    ) -> None:
        self._tables = tables
        self._read_texts = read_texts
        self._is_taken_back = is_taken_back

    def run(self) -> None:
        """Apply them, unless the deployment is being taken back. What is not declared any more is
        taken offline; nothing is dropped.

        Raises:
            InvalidError: a file that is wrong, a table that cannot be as declared, a field that
                would be dropped. Nothing was changed but what steps before it did.
            ConflictError, UnavailableError, UnknownOutcomeError: deploy again.
        """
        if self._is_taken_back():
            events.emit(events.TABLES_LEFT)
            return
        self._tables.run(declarations_of(self._read_texts()), remove="offline")

"""Takes what comes to the queue of submissions: messages of users that name files, and what S3 says
of files that arrived in folders which tables watch."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.config.messages import submission_message
from lakebed.config.sent.arrived_files import arrived_file
from lakebed.ingest.submit_files import SubmitFiles
from lakebed.observe import events
from lakebed.ports.table_registry import TableEntry, TableRegistry
from lakebed.tasks.watched_folders import watching_table

FILES_MAX = 5_000
"""Most files of one message, its folders expanded: a function submits them within its time."""


class TakeSubmissions:
    """Submits the files of messages. Safe to repeat, in any order.

    find: returns the table of a name, or raises TableMissingError.
    """

    def __init__(
        self, *, submit: SubmitFiles, registry: TableRegistry, find: Callable[[str], TableEntry]
    ) -> None:
        self._submit = submit
        self._registry = registry
        self._find = find

    def run(self, body: bytes) -> None:
        """Let the files of a message wait for their tables' next batches, or an arrived file.

        Who sends an event waits for no answer: a file that no table watches, that is gone again or
        cannot be taken in is passed over, and all but the first is logged.

        Raises:
            InvalidError: it is no message; an arrived file may not be read; of a user's message, as
                `SubmitFiles.run` too, or there is no such table.
            UnavailableError, UnknownOutcomeError: some files may wait; submit them again.
        """
        file = arrived_file(body)
        if file is None:
            message = submission_message(body)
            entry = self._find(message.table)
            self._submit.run(entry.id, entry.name, message.files, files_max=FILES_MAX)
            return
        watching = watching_table(file, self._registry.list())
        if watching is None:
            return
        problem = self._submit.arrived(watching.id, watching.name, file)
        if problem:
            events.emit(events.FILE_PASSED_OVER, table=watching.name, file=file, reason=problem)

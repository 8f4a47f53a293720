"""Submits files to a table: they are taken in later, together with others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakebed.face.exported_table import ExportedTable

if TYPE_CHECKING:
    from lakebed.ingest.batch_listing import BatchReport, PendingFile
    from lakebed.ingest.submit_files import Submitted
    from lakebed.ports.file_batches import BatchTarget


class SubmittedTable(ExportedTable):
    """A table whose files come one by one, and become jobs of the right size."""

    def submit(self, files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Submitted:
        """Let files wait until there are enough of them for a job, or the oldest has waited for
        `batch_seconds_max`. They are looked at now, and read later: as they are now, or not at all.
        In a directory `lake.run()` makes the jobs and does them.

        files: a path of a file or a folder, `s3://` with either; or several of these. Names in
            folders that begin with `_` or `.` are passed over.

        Raises:
            InvalidError: a file is gone, empty, unreadable, of no known format, or outside of where
                files may lie; none was submitted.
            UnavailableError, UnknownOutcomeError: some may wait; call again. What waits already, or
                was taken, as it is, is a double and dropped.
        """
        from lakebed.bootstrap.batching import submit_files

        named = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        names = [os.fspath(one) for one in named]
        return submit_files(self._app).run(self._opened.id, self.name, names)

    def send(
        self, files: str | Sequence[str], *, job: str | None = None, target: BatchTarget = "ingest"
    ) -> str:
        """Send a job to an instance, whose tasks take files in as one job, all or none. Returns the
        job's id, under which `jobs` tells what became of it.

        files: `s3://BUCKET/KEY`, or `s3://BUCKET/FOLDER/` for all files below; or several of these.
            They are looked at when the job begins.
        job: a name for this request; the same request under the same name is done once, for
            `job_id_seconds_min`. None: each call makes a new id, and so another job.
        target: `ingest`: a task does it. `bulk-import`: Spark does, on EMR Serverless.

        Raises:
            InvalidError: names that no job takes, or more than a message holds; the lake is a
                directory; the instance was deployed without what does it. Nothing was sent.
            UnavailableError, UnknownOutcomeError: call again with the job in its facts; it is done
                once.
        """
        from lakebed.bootstrap.batching import send_jobs

        names = [files] if isinstance(files, str) else [os.fspath(one) for one in files]
        return send_jobs(self._app).run(self.name, names, job=job, target=target)

    def pending_files(self, *, limit: int = 1_000) -> list[PendingFile]:
        """Return files that wait for a batch, the oldest first.

        limit: at most so many.
        """
        from lakebed.bootstrap.batching import batch_listing

        return batch_listing(self._app).pending(self._opened, limit=limit)

    def batches(self, *, below: int | None = None, limit: int = 20) -> list[BatchReport]:
        """Return batches of submitted files, the newest first, and what became of each.

        below: only batches with lower numbers; None: from the newest on.
        limit: at most so many.
        """
        from lakebed.bootstrap.batching import batch_listing

        return batch_listing(self._app).batches(self._opened, below=below, limit=limit)

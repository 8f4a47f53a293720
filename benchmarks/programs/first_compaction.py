"""The first compaction of a process, as a task does it: `FOLDER`, a lake with a job to create.

Run from the folder of an image: it imports what a task imports, and from there.
"""

from __future__ import annotations

import json
import resource
import sys

import boto3

from lakebed.bootstrap.local import open_local
from lakebed.bootstrap.tasks.compaction_task import compact_from

TABLE = "bench"
SERVICES = ("s3", "dynamodb", "sqs")
"""A task calls them: their clients are made in any case."""

HIDDEN_SECONDS = 600


def main(folder: str) -> None:
    for service in SERVICES:
        boto3.client(service, region_name="eu-central-1")
    app = open_local(folder, create=False)
    try:
        assert app.create_jobs.run(app.catalog.find(TABLE), everything=True) == 1, "one job"
        (message,) = app.queue.receive(messages_max=1, hidden_seconds=HIDDEN_SECONDS)
        compact_from(app, message)
    finally:
        app.close()
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "cpu_seconds": used.ru_utime + used.ru_stime,
                "merged_by_kernels": "lakebed.kernels.merging" in sys.modules,
                "compiled": "numba" in sys.modules,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])

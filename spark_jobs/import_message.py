"""The driver of a bulk import that came as a message: it runs where Spark was started for it."""

from __future__ import annotations

from contextlib import ExitStack, closing

from lakebed.bootstrap.bulk_import import Tasks
from lakebed.bootstrap.tasks import bulk_import_run
from spark_jobs.bulk_import import SparkCluster


def run(name: str) -> None:
    """Do what is asked for under a name. Raises: as `bulk_import_run.run`."""
    with ExitStack() as last:

        def cluster_for(tasks: Tasks) -> SparkCluster:
            return last.enter_context(closing(SparkCluster(tasks)))

        bulk_import_run.run(name, cluster_for)

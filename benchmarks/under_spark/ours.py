"""One bulk import as the command does it, in a process of its own: `... LAKE FOLDER SHAPE`."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing

from pyspark.sql import SparkSession

from benchmarks.shapes import SHAPES
from benchmarks.under_spark.spark_processes import CORES, SETTINGS, told
from lakebed.bootstrap.bulk_import import BulkImportApp, Tasks
from lakebed.lake import connect
from spark_jobs.bulk_import import SparkCluster


def main(lake: str, folder: str, shape: str) -> None:
    given = SHAPES[shape]
    with connect(lake) as opened:
        opened.create_table(
            "bench",
            given.schema,
            split_points=given.split_points,
            settings={
                "shared_file_rows_max": 0
            },  # a file of its own for each leaf, as the peer has
        )
    import_files(lake, folder)


def import_files(lake: str, folder: str) -> None:
    """Take all files of a folder into the table `bench`, and tell what it took."""
    with ExitStack() as last, BulkImportApp(lake) as app, told() as begin:

        def cluster_for(tasks: Tasks) -> SparkCluster:
            cluster = SparkCluster(tasks, master=f"local[{CORES},4]", conf=SETTINGS)
            last.enter_context(closing(cluster))
            assert cluster.tasks_at_once == CORES
            begin(SparkSession.builder.getOrCreate())
            return cluster

        app.run("bench", [folder], cluster_for=cluster_for)


if __name__ == "__main__":
    main(*sys.argv[1:])

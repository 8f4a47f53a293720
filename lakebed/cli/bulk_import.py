"""`lakebed bulk-import`: rows of many files in, sorted and merged by Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lakebed.cli.program import Command, Session, pass_session
from lakebed.cli.progress import ProgressLine
from lakebed.cli.row_commands.rows import file_arguments, show_ingested
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.bootstrap.bulk_import import Tasks

JAVA_MIN = 17
SPARK = "pyspark==4.0.2"
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@click.command(
    "bulk-import",
    cls=Command,
    examples="""
    lakebed bulk-import trips january/ february/ --job 2013-q1
    lakebed bulk-import trips trips.parquet --master 'local[4,4]'
    """,
)
@file_arguments
@click.option(
    "--master",
    default="local[*,4]",
    show_default=True,
    help="Where Spark runs: all cores of this machine, each task tried four times.",
)
@click.option(
    "--conf", "confs", multiple=True, metavar="NAME=VALUE", help="A setting of Spark. Repeatable."
)
@pass_session
def bulk_import(
    session: Session,
    *,
    table: str,
    paths: tuple[str, ...],
    job: str | None,
    format: Literal["parquet", "csv", "jsonl"] | None,
    extra_columns: Literal["refuse", "drop"],
    master: str,
    confs: tuple[str, ...],
) -> None:
    """Take rows of files, or of directories of them, into TABLE by Spark: all or none.

    For more rows than one machine's `lakebed ingest` should take. Needs Java 17 or newer, and
    pyspark 3.5 or 4.0 beside Lakebed.
    """
    settings = dict(_setting(text) for text in confs)
    refuse_without_spark()
    from lakebed.bootstrap.bulk_import import BulkImportApp
    from spark_jobs.bulk_import import SparkCluster

    with (
        ProgressLine(silent=session.as_json) as line,
        BulkImportApp(session.lake_path) as app,
        ExitStack() as last,
    ):

        def cluster_for(tasks: Tasks) -> SparkCluster:
            return last.enter_context(closing(SparkCluster(tasks, master=master, conf=settings)))

        done = app.run(
            table,
            list(paths),
            cluster_for=cluster_for,
            job=job,
            format=format,
            extra_columns=extra_columns,
            on_progress=line.show,
        )
    show_ingested(session, table, done)


def refuse_without_spark() -> None:
    """Raise InvalidError where Spark cannot run, with what to install."""
    try:
        import pyspark  # noqa: F401  only whether it is there
    except ImportError:
        hint = f"install it: pip install '{SPARK}'; `lakebed ingest` does without"
        raise InvalidError("bulk import needs pyspark, which is not installed", hint=hint) from None
    version = java_version()
    if version is None or version < JAVA_MIN:
        hint = (
            f"install Java {JAVA_MIN} (Debian: apt install openjdk-{JAVA_MIN}-jre-headless),"
            " or set JAVA_HOME to one; `lakebed ingest` does without"
        )
        found = "none" if version is None else version
        raise InvalidError(f"Spark needs Java {JAVA_MIN} or newer", found=found, hint=hint)


def java_version() -> int | None:
    """Return the major version of the Java that Spark would start; None: there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return None
    try:
        run = subprocess.run(  # noqa: S603  the user's own Java, without a shell
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _JAVA_VERSION.search(run.stderr)
    return int(found[1]) if found else None


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise InvalidError("not a setting of Spark", got=text, hint="write spark.NAME=VALUE")
    return name, value

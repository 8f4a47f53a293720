"""`lakebed send`, `submit`, `batches`: files become a job of an instance at once, or wait until
there are enough of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, aligned, counted, pass_session, time_text

if TYPE_CHECKING:
    from lakebed.ingest.batch_listing import BatchReport, PendingFile
    from lakebed.ports.file_batches import BatchTarget

HEADINGS = (
    "batch",
    "planned",
    "files",
    "bytes",
    "waited",
    "to",
    "state",
    "entry",
    "refused",
    "job",
)
PENDING_HEADINGS = ("submitted", "waits", "bytes", "file")


@click.command(
    cls=Command,
    examples="""
    lakebed --at dev send trips s3://landing/trips/2013-01-01/
    lakebed --at dev send trips s3://landing/trips/a.parquet s3://landing/trips/b.csv --job monday
    lakebed --at dev send trips s3://landing/trips/2013/ --bulk-import
    """,
)
@click.argument("table")
@click.argument("files", nargs=-1, required=True)
@click.option("--job", metavar="ID", help="A name for this request: it is done once.")
@click.option("--bulk-import", "by_spark", is_flag=True, help="Let Spark do it.")
@pass_session
def send(
    session: Session, table: str, files: tuple[str, ...], *, job: str | None, by_spark: bool
) -> None:
    """Send a job to an instance on AWS, which takes FILES into TABLE: all or none.

    A name that ends with `/` means all files below. `lakebed jobs` shows what became of the job.
    Without --job each call is another job. A lake in a directory has `lakebed ingest`.
    """
    target: BatchTarget = "bulk-import" if by_spark else "ingest"
    with session.open() as lake:
        sent = lake.table(table).send(files, job=job, target=target)
    session.give({"job": sent}, f"sent job {sent}")


@click.command(
    cls=Command,
    examples="""
    lakebed submit trips landing/2013-01-01.parquet
    lakebed submit trips landing/
    lakebed submit trips s3://landing/trips/2013-01-01/
    """,
)
@click.argument("table")
@click.argument("files", nargs=-1, required=True)
@pass_session
def submit(session: Session, table: str, files: tuple[str, ...]) -> None:
    """Let FILES, and those in folders, wait until they are worth a job of TABLE.

    A file that was submitted before, as it is, is dropped as a double. `lakebed run` makes batches
    and takes them in: when the oldest file has waited for `batch_seconds_max`, or sooner when there
    is enough. `lakebed batches` shows what became of them.
    """
    with session.open() as lake:
        done = lake.table(table).submit(files)
    said = f"{counted(done.added, 'file waits', 'files wait')} for a batch"
    if done.doubles:
        said += f"; {counted(done.doubles, 'file was', 'files were')} submitted before, dropped"
    session.give(msgspec.to_builtins(done), said)


@click.command(
    cls=Command,
    examples="""
    lakebed batches trips
    lakebed batches trips --pending
    lakebed batches trips --below 120 --limit 50
    lakebed batches trips --json
    """,
)
@click.argument("table")
@click.option("--pending", is_flag=True, help="Files that wait for a batch, the oldest first.")
@click.option("--below", type=click.IntRange(min=1), help="Only batches with lower numbers.")
@click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), default=20, help="At most so many."
)
@pass_session
def batches(session: Session, table: str, *, pending: bool, below: int | None, limit: int) -> None:
    """List batches of files that were submitted to TABLE, the newest first: files, sizes, how long
    they had waited, the job, and what became of it. Files that a job left out are named with the
    reason; --json names all of a batch.
    """
    with session.open() as lake:
        opened = lake.table(table)
        if pending:
            waiting = opened.pending_files(limit=limit)
            session.give(
                msgspec.to_builtins(waiting), aligned(PENDING_HEADINGS, map(_pending_row, waiting))
            )
            return
        found = opened.batches(below=below, limit=limit)
    text = "\n".join([aligned(HEADINGS, map(_row, found)), *_remarks(found)])
    session.give(msgspec.to_builtins(found), text)


def _pending_row(file: PendingFile) -> tuple[str, ...]:
    return (time_text(file.seen), f"{file.age_seconds:,} s", f"{file.size:,}", file.file)


def _row(report: BatchReport) -> tuple[str, ...]:
    return (
        str(report.batch),
        time_text(report.planned),
        f"{report.files:,}",
        f"{report.bytes:,}",
        f"{report.oldest_seconds:,} s",
        report.target,
        report.state,
        str(report.number or ""),
        f"{len(report.refused):,}" if report.refused else "",
        report.job,
    )


def _remarks(found: list[BatchReport]) -> list[str]:
    """Return what else is to be known: why a job is not done, and which files were left out."""
    lines = [f"batch {one.batch}: {one.last}" for one in found if one.last]
    lines += [
        f"batch {one.batch} left out {refused.file}: {refused.reason}"
        for one in found
        for refused in one.refused
    ]
    return lines

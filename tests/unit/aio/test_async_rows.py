"""Scans, SQL, data sets, versions, deletes, exports and changes in an event loop: of one thread."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakebed
import lakebed.aio
from lakebed.errors import ConflictError, InvalidError, TableMissingError, VersionExpiredError
from lakebed.sql import sql_work

T = TypeVar("T")
SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"n": "int64"})
SPLITS = list(range(10, 500, 10))


def rows(ids: range) -> pa.Table:
    return pa.table({"id": list(ids), "n": [i % 10 for i in ids]})


def run(story: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(story, 120))


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncIterator[tuple[lakebed.aio.Lake, lakebed.aio.Table]]:
    """Give a lake whose calls have one thread, with a table of 500 rows in 50 leaves."""
    async with await lakebed.aio.connect(tmp_path / "lake", threads=1) as lake:
        table = await lake.create_table("t", SCHEMA, split_points=SPLITS)
        await table.ingest(rows(range(500)), job="first")
        yield lake, table


async def ids(batches: lakebed.aio.Batches) -> list[int]:
    return list((await batches.read_all())["id"].to_pylist())


def test_a_scan_gives_all_rows_in_any_order(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (_, table):
            scan = table.scan(where="n = 3", columns=["id"])
            assert (await scan.schema()).names == ["id"]
            assert sorted(await ids(scan)) == list(range(3, 500, 10))
            unread = table.scan()
            assert (await anext(unread)).num_rows
            assert await table.count() == 500, "half a scan holds no thread"
            with pytest.raises(InvalidError, match="no such field"):
                await anext(table.scan(columns=["m"]))

    run(story())


def test_sql_is_asked_of_a_lake_and_of_a_table(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (lake, table):
            asked = lake.sql("select n, count(*) as many from t group by n order by n")
            assert (await asked.schema()).names == ["n", "many"]
            found = await asked.read_all()
            assert found.to_pydict() == {"n": list(range(10)), "many": [50] * 10}
            few = table.sql("select id from this where id < ? order by id", [3])
            assert [batch["id"].to_pylist() async for batch in few] == [[0, 1, 2]]
            half = lake.sql("select * from t")
            assert (await anext(half)).num_rows
            await half.aclose()
            (explained,) = (await lake.explain_sql("select * from t")).scans
            assert explained.table == "t"
            with pytest.raises(TableMissingError):
                await anext(lake.sql("select * from u"))

    run(story())


ENDLESS = "select count(*) from range(1_000_000_000_000) r(i) where hash(i) = 0"
"""Gives its first row in an hour."""


@pytest.mark.parametrize("way", ["next", "read_all", "schema", "at once", "early"])
def test_a_statement_that_computes_ends_when_its_task_is_cancelled(
    tmp_path: Path, way: str
) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (lake, table):
            asked = lake.sql(ENDLESS)
            waits = {"read_all": asked.read_all, "schema": asked.schema}.get(way, asked.__anext__)
            task = asyncio.ensure_future(waits())
            is_begun = way in ("next", "read_all", "schema")
            while is_begun and not computing():  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0.01)
            if way == "early":
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            try:
                async with asyncio.timeout(60):
                    assert await table.count() == 500, "the only thread is free again"
            finally:
                for work in list(sql_work._OPEN):
                    work.interrupt()
            assert not sql_work._OPEN
            if way != "at once":  # then it was not even asked
                with pytest.raises(InvalidError, match="ended"):
                    await asked.schema()

    run(story())


def computing() -> bool:
    """Whether an engine was given a statement and has not answered. It may only be about to begin:
    that is a case, too."""
    return any(work._connections for work in list(sql_work._OPEN))


def test_an_engine_reads_a_data_set(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (_, table):
            trips = await table.dataset()
            await table.ingest(rows(range(500, 510)))
            with duckdb.connect() as engine:
                engine.register("trips", trips)
                count = engine.sql("select count(*) from trips where id >= 490").fetchall()
            assert count == [(10,)], "it stays at its version"
            assert (await table.dataset()).count_rows(pc.field("id") >= 490) == 20

    run(story())


def test_older_versions_are_read_by_number_and_tag(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (_, table):
            tagged = await table.tag("before")
            assert [tag.name for tag in await table.tags()] == ["before"]
            await table.clear()
            assert await table.count() == 0
            assert await table.count(as_of=tagged.number) == 500
            assert await ids(table.query(keys=[7], as_of="before")) == [7]
            await table.drop_tag("before")
            with pytest.raises(InvalidError):
                await anext(table.query(as_of="before"))

    run(story())


def test_rows_are_deleted(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (_, table):
            gone = await table.delete(ranges={"id": (0, 100)}, job="forget")
            assert gone.rows == 100
            assert (await table.delete(ranges={"id": (0, 100)}, job="forget")).repeated
            assert (await table.delete(where=lakebed.field("n") == 0)).rows == 40
            assert await table.count() == 360
            with pytest.raises(InvalidError, match="without a condition"):
                await table.delete()
            await table.delete(all=True)
            assert await ids(table.query()) == []

    run(story())


def test_an_export_is_restored_as_another_table(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (lake, table):
            steps: list[int] = []
            target = tmp_path / "export"
            done = await table.export(target, on_progress=lambda rows, _: steps.append(rows))
            assert (done.rows, steps[-1]) == (500, 500)
            await lake.restore_table("u", target, verify=True)
            assert await ids((await lake["u"]).query()) == list(range(500))

    run(story())


def test_changes_come_in_the_order_of_commits(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (_, table):
            await table.clear()
            done = await table.ingest(rows(range(3)), job="second")
            changes = [change async for change in table.changes()]
            assert [(c.kind, c.rows) for c in changes] == [("rows", 500), ("clear", 0), ("rows", 3)]
            assert (changes[2].job, changes[2].number) == ("second", done.number)
            assert changes[0].at <= changes[2].at
            assert await ids(changes[0].read()) == list(range(500))
            assert [c.job async for c in table.changes(after=changes[1].number)] == ["second"]
            with pytest.raises(InvalidError, match="lies ahead"):
                await anext(table.changes(after=99))

    run(story())


def test_a_follower_reads_what_it_did_not_acknowledge(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (_, table):
            begun = await table.follow("mirror", after=0)
            assert (begun.name, begun.position) == ("mirror", 0)
            for job in ("one", "two", "three"):
                await table.ingest(rows(range(5)), job=job)
            read: list[str] = []
            async for change in begun:
                assert await ids(change.read())
                read.append(change.job)
                if change.job == "one":
                    await begun.acknowledge(change)
                    assert begun.position == change.upto
                    break
            assert read == ["first", "one"]
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(begun.renew())
            again = await table.follow("mirror")
            rest = [change async for change in again]
            assert [change.job for change in rest] == ["two", "three"]
            await again.acknowledge(rest[-1])
            assert [change async for change in again] == []
            with pytest.raises(ConflictError):
                await begun.acknowledge(rest[0])
            await table.drop_follower("mirror")
            with pytest.raises(InvalidError):
                await again.renew()

    run(story())


def test_changes_that_are_half_read_hold_no_thread(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (_, table):
            for number in range(1, 5):
                await table.ingest(rows(range(number)), job=f"j{number}")
            streams = [table.changes() for _ in range(3)]
            assert [(await anext(stream)).job for stream in streams] == ["first"] * 3
            change = await anext(streams[0])
            assert await ids(change.read()) == [0]
            await streams[0].aclose()
            with pytest.raises(StopAsyncIteration):
                await anext(streams[0])

    run(story())


def test_rows_that_were_collected_are_told_where_they_are_read(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as (_, table):
            (change,) = [change async for change in table.changes()]
            for file in (tmp_path / "lake").rglob("*.parquet"):
                file.unlink()
            with pytest.raises(VersionExpiredError, match="the oldest that can still be read"):
                await anext(change.read())

    run(story())

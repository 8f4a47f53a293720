"""`lakebed.aio`: names and arguments of the sync classes, awaited; a query is an async iterator."""

import asyncio
import inspect
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa
import pytest

import lakebed
import lakebed.aio
from lakebed.errors import InvalidError, TableExistsError, TableMissingError
from lakebed.face.followed_table import Follower, RowChange
from lakebed.lake import Lake, connect
from lakebed.table import Table

T = TypeVar("T")
SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"n": "int64"})


def rows(ids: range) -> pa.Table:
    return pa.table({"id": list(ids), "n": [i % 10 for i in ids]})


def run(story: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(story, 120))


def public(face: type) -> dict[str, Any]:
    return {
        name: member
        for owner in reversed(face.__mro__)
        for name, member in vars(owner).items()
        if not name.startswith("_") or name == "__getitem__"
    }


TWINS = [
    (Lake, lakebed.aio.Lake),
    (Table, lakebed.aio.Table),
    (Follower, lakebed.aio.Follower),
    (RowChange, lakebed.aio.RowChange),
]


@pytest.mark.parametrize(("sync", "twin"), TWINS)
def test_names_and_arguments_are_the_same(sync: type, twin: type) -> None:
    ours, theirs = public(twin), public(sync)
    fields = inspect.get_annotations(sync).keys()
    assert all(isinstance(ours.pop(field), property) for field in fields)
    if sync is Table:
        theirs.pop("wait")  # asyncio.sleep does
    assert ours.keys() == theirs.keys()
    for name, member in theirs.items():
        if isinstance(member, property):
            assert isinstance(ours[name], property), name
            continue
        wanted, found = inspect.signature(member), inspect.signature(ours[name])
        assert list(found.parameters) == list(wanted.parameters), name
        kinds = [(p.kind, p.annotation) for p in found.parameters.values()]
        assert kinds == [(p.kind, p.annotation) for p in wanted.parameters.values()], name
        assert ours[name].__doc__.split() == member.__doc__.split(), name


def test_connect_takes_what_connect_takes_and_threads() -> None:
    found = dict(inspect.signature(lakebed.aio.connect).parameters)
    assert found.pop("threads").default == 8
    assert list(found) == list(inspect.signature(connect).parameters)


def test_a_story_in_an_event_loop(tmp_path: Path) -> None:
    async def story() -> None:
        async with await lakebed.aio.connect(tmp_path / "lake") as lake:
            table = await lake.create_table("t", SCHEMA)
            done = await table.ingest(rows(range(1_000)), job="first")
            assert (done.rows, table.name) == (1_000, "t")
            assert (await table.schema, await table.split_points) == (SCHEMA, [])
            assert await lake.tables() == [name async for name in lake] == ["t"]
            again = await lake["t"]
            found = [batch async for batch in again.query(keys=[3, 4], columns=["n"])]
            assert pa.Table.from_batches(found)["n"].to_pylist() == [3, 4]
            query = table.query(ranges={"id": (990, None)})
            assert (await query.schema()).names == ["id", "n"]
            assert (await query.read_all()).num_rows == 10
            assert [batch async for batch in query] == []
            counted = await asyncio.gather(*(table.count(keys=[i]) for i in range(30)))
            assert counted == [1] * 30
            assert (await table.head(2)).to_pydict() == {"id": [0, 1], "n": [0, 1]}
            assert (await table.sample(3)).num_rows == 3
            await asyncio.gather(*(table.ingest(rows(range(i, i + 5))) for i in range(4)))
            await lake.run()
            assert await table.count() == 1_020
        with pytest.raises(InvalidError, match="the lake was closed"):
            await table.count()
        with pytest.raises(InvalidError, match="the lake was closed"):
            await anext(table.query())

    run(story())
    with lakebed.connect(tmp_path / "lake") as lake:
        assert lake["t"].count() == 1_020


def test_what_is_wrong_is_raised_where_it_is_awaited(tmp_path: Path) -> None:
    async def story() -> None:
        async with await lakebed.aio.connect(tmp_path / "lake") as lake:
            table = await lake.create_table("t", SCHEMA)
            with pytest.raises(TableExistsError):
                await lake.create_table("t", SCHEMA)
            with pytest.raises(TableMissingError):
                await lake.table("u")
            unread = table.query(columns=["m"])
            with pytest.raises(InvalidError, match="no such field"):
                await anext(unread)
            with pytest.raises(StopAsyncIteration):
                await anext(unread)
            table.query(columns=["m"])  # never read: nothing happens
            with pytest.raises(InvalidError, match="no such field"):
                await table.query(columns=["m"]).schema()
        with pytest.raises(InvalidError, match="no lake"):
            await lakebed.aio.connect(tmp_path / "missing", create=False)

    run(story())


@pytest.mark.parametrize("threads", [0, -1, 257, 1.5, True, None])
def test_what_is_no_number_of_threads_is_refused(tmp_path: Path, threads: object) -> None:
    with pytest.raises(InvalidError, match="not a number of threads"):
        run(lakebed.aio.connect(tmp_path / "lake", threads=cast("int", threads)))
    assert not (tmp_path / "lake").exists()


def test_queries_that_are_half_read_hold_no_thread(tmp_path: Path) -> None:
    async def story() -> None:
        async with await lakebed.aio.connect(tmp_path / "lake", threads=1) as lake:
            table = await lake.create_table("t", SCHEMA, split_points=list(range(10, 500, 10)))
            await table.ingest(rows(range(500)))
            streams = [table.query() for _ in range(5)]
            firsts = [await anext(stream) for stream in streams]
            assert await table.count() == 500
            rest = [sum([len(batch) async for batch in stream]) for stream in streams]
            assert [len(f) + r for f, r in zip(firsts, rest, strict=True)] == [500] * 5

    run(story())

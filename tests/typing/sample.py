"""A program of a user: mypy and pyright accept it, strictly, by the types that Lakebed ships."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lakebed

if TYPE_CHECKING:
    import pyarrow as pa


def fill(path: str, rows: pa.Table) -> int:
    """Take rows in, and count them."""
    schema = lakebed.schema_of(
        row_keys={"vehicle": "string"},
        sort_keys={"at": "timestamp[us, UTC]"},
        values={"fare": "float64?"},
    )
    with lakebed.connect(path) as lake:
        table = lake.create_table(
            "trips",
            schema,
            settings={"leaf_rows_max": 50_000},
            processing=lakebed.Processing(age_off=lakebed.AgeOff("at", seconds=86_400)),
        )
        done = table.ingest(rows, job="first", zone="UTC")
        lines: list[str] = []
        lake.run(on_progress=lambda line: lines.append(line.strip()))
        return done.rows + len(lines) + len(table)


def ask(path: str) -> dict[str, int]:
    """Ask in all ways that there are."""
    found: dict[str, int] = {}
    with lakebed.connect(path, create=False) as lake:
        table = lake["trips"]
        keep = (lakebed.field("fare") >= 4) & lakebed.field("vehicle").is_not_null()
        found["where"] = table.count(where=keep)
        found["bytes"] = sum(file.bytes for file in table.files() if file.whole)
        found["leaves"] = lake.status("trips")[0].leaves
        explanation = table.explain(keys=["b7"], ranges={"vehicle": lakebed.Range("a", "c")})
        found["requests"] = explanation.requests
    return found


async def ask_in_a_loop(path: str) -> int:
    """Ask in an event loop."""
    rows = 0
    async with await lakebed.aio.connect(path, threads=2) as lake:
        table = await lake["trips"]
        fields = (await table.schema).row_keys
        async for batch in table.query(keys=["b7"], columns=[fields[0].name]):
            rows += batch.num_rows
        async for change in await table.follow("mirror"):
            rows += (await change.read().read_all()).num_rows + len(change.job)
        status = await lake.status()
        return rows + status[0].files + await table.count()

"""The tables of a round, the rows of each job, and what a reader must find of jobs.

plain    every row is kept: each acknowledged job is there once and whole
tally    equal keys are summed: a job that lands twice shows doubled sums
newest   the latest version of a key is kept: a lost job shows an older version
"""

import random
import zlib
from collections.abc import Collection, Mapping

import pyarrow as pa

import lakebed
from lakebed.lake import Lake
from lakebed.model.schema import Schema, schema_of
from tests.e2e import rows as plain

TABLES = ("plain", "tally", "newest")
SETTINGS = plain.SETTINGS | {"leaf_rows_max": 4_000}
NEWEST_KEYS = 8

SCHEMAS: Mapping[str, Schema] = {
    "plain": plain.SCHEMA,
    "tally": schema_of(row_keys={"key": "string"}, values={"n": "int64"}),
    "newest": schema_of(row_keys={"key": "string"}, values={"version": "int64"}),
}
PROCESSING = {
    "plain": None,
    "tally": lakebed.Processing(aggregate={"n": "sum"}),
    "newest": lakebed.Processing(latest=lakebed.Latest("version")),
}


def make_tables(lake: Lake, settings: Mapping[str, int]) -> None:
    for name in TABLES:
        lake.create_table(
            name,
            SCHEMAS[name],
            split_points=plain.SPLIT_POINTS if name == "plain" else (),
            settings=SETTINGS | settings,
            processing=PROCESSING[name],
        )


def table_of(job: str) -> str:
    """Return the table that a job is for: its writer takes turns."""
    return TABLES[number_of(job) % len(TABLES)]


def number_of(job: str) -> int:
    return int(job.rpartition("-")[2])


def writer_of(job: str) -> str:
    return job.rpartition("-")[0]


def rows_of(job: str) -> pa.Table:
    """Return the rows of a job, the same each time."""
    match table_of(job):
        case "plain":
            return plain.rows_of(job)
        case "tally":
            keys = [key for key, times in tally_of(job).items() for _ in range(times)]
            return pa.table({"key": keys, "n": pa.array([1] * len(keys), pa.int64())})
        case _:
            keys = [f"{writer_of(job)}/{at}" for at in range(NEWEST_KEYS)]
            versions = pa.array([number_of(job)] * len(keys), pa.int64())
            return pa.table({"key": keys, "version": versions})


def tally_of(job: str) -> dict[str, int]:
    """Return how often a job counts each of its keys."""
    rng = random.Random(zlib.crc32(job.encode()))
    return {f"{job}:{at}": rng.randint(1, 3) for at in range(rng.choice([1, 30, 120]))}


def problems(lake: Lake, acknowledged: Collection[str]) -> list[str]:
    """Read all tables; return what contradicts the jobs that were acknowledged before."""
    of_table = {name: [job for job in acknowledged if table_of(job) == name] for name in TABLES}
    found = lake.table("plain").query(columns=["key", "place", "job"]).read_all()
    keys = found["key"].combine_chunks()
    wrong = [
        f"plain: {job} {what}" for job, what in plain.wrong_jobs(found, of_table["plain"]).items()
    ]
    if pa.compute.all(pa.compute.less_equal(keys[:-1], keys[1:])).as_py() is False:
        wrong.append("plain: rows are not in key order")
    return wrong + _wrong_tallies(lake, of_table["tally"]) + _old_versions(lake, of_table["newest"])


def landed(lake: Lake) -> set[str]:
    """Return the jobs that a whole lake holds; of writers' newest versions, the newest."""
    jobs = set(lake.table("plain").query(columns=["job"]).read_all()["job"].to_pylist())
    tallied = lake.table("tally").query(columns=["key"]).read_all()["key"].to_pylist()
    newest = lake.table("newest").query().read_all()
    keys, versions = newest["key"].to_pylist(), newest["version"].to_pylist()
    jobs |= {key.partition(":")[0] for key in tallied}
    return jobs | {
        f"{key.partition('/')[0]}-{version}" for key, version in zip(keys, versions, strict=True)
    }


def _wrong_tallies(lake: Lake, acknowledged: Collection[str]) -> list[str]:
    found = lake.table("tally").query().read_all()
    sums = dict(zip(found["key"].to_pylist(), found["n"].to_pylist(), strict=True))
    jobs = {key.partition(":")[0] for key in sums} | set(acknowledged)
    wrong = [] if len(sums) == len(found) else ["tally: a key is there twice"]
    for job in sorted(jobs):
        wanted = tally_of(job)
        got = {key: sums.get(key) for key in wanted}
        if got != wanted:
            wrong.append(f"tally: {job} counts {got}, {wanted} were given")
    return wrong


def _old_versions(lake: Lake, acknowledged: Collection[str]) -> list[str]:
    found = lake.table("newest").query().read_all()
    versions: dict[str, set[int]] = {}
    for key, version in zip(found["key"].to_pylist(), found["version"].to_pylist(), strict=True):
        versions.setdefault(key.partition("/")[0], set()).add(version)
    wrong = [f"newest: {w} has versions {v} at once" for w, v in versions.items() if len(v) > 1]
    for job in acknowledged:
        shown = versions.get(writer_of(job), set())
        if max(shown, default=-1) < number_of(job):
            wrong.append(f"newest: {job} was acknowledged, {shown} is shown")
    return wrong

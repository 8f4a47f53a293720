"""The five tables of a soak, the rows of each job, and what readers must find of jobs.

None grows with time: keys are few and rows with equal keys become one, or rows age off. So sizes of
logs, states and processes have no reason to grow either.

sums      integers by key, summed: one leaf
texts     the same by text keys, in four leaves
newest    the latest version of each sender's keys
extremes  the greatest number of each key
aged      rows that are left out ten minutes after their time
"""

import random
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

import lakebed
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND

TABLES = ("sums", "texts", "newest", "extremes", "aged")
KEYS, ROWS = 500, 50
AGED_SECONDS, MARGIN_SECONDS = 600, 60
SETTINGS = {
    "garbage_seconds_min": 60,
    "job_files_max": 4,
    "shared_file_rows_max": 0,
    "job_id_seconds_min": 3_600,
}
SCHEMAS = {
    "sums": lakebed.schema_of(row_keys={"key": "int64"}, values={"n": "int64"}),
    "texts": lakebed.schema_of(row_keys={"key": "string"}, values={"n": "int64"}),
    "newest": lakebed.schema_of(row_keys={"key": "string"}, values={"version": "int64"}),
    "extremes": lakebed.schema_of(row_keys={"key": "int64"}, values={"n": "int64"}),
    "aged": lakebed.schema_of(
        row_keys={"job": "string", "place": "int64"}, values={"at": "timestamp[us, UTC]"}
    ),
}
PROCESSING = {
    "sums": lakebed.Processing(aggregate={"n": "sum"}),
    "texts": lakebed.Processing(aggregate={"n": "sum"}),
    "newest": lakebed.Processing(latest=lakebed.Latest("version")),
    "extremes": lakebed.Processing(aggregate={"n": "max"}),
    "aged": lakebed.Processing(age_off=lakebed.AgeOff("at", AGED_SECONDS)),
}
SPLITS = {"texts": ("k125", "k250", "k375")}


def make_tables(lake: Lake) -> None:
    for name in TABLES:
        lake.create_table(
            name,
            SCHEMAS[name],
            split_points=SPLITS.get(name, ()),
            settings=SETTINGS,
            processing=PROCESSING[name],
        )


def job_of(sender: str, number: int) -> str:
    return f"{sender}-{number}"


def number_of(job: str) -> int:
    return int(job.rpartition("-")[2])


def table_of(job: str) -> str:
    """Return the table that a job is for: its sender takes turns."""
    return TABLES[number_of(job) % len(TABLES)]


def keys_of(job: str) -> list[int]:
    rng = random.Random(zlib.crc32(job.encode()))
    return [rng.randrange(KEYS) for _ in range(ROWS)]


def rows_of(job: str, at_seconds: float) -> pa.Table:
    """Return the rows of a job, the same each time. at_seconds: since 1970, when it was due."""
    keys, number = keys_of(job), number_of(job)
    match table_of(job):
        case "sums":
            return pa.table({"key": keys, "n": pa.array([1] * ROWS, pa.int64())})
        case "texts":
            return pa.table({"key": [f"k{key:03}" for key in keys], "n": [1] * ROWS})
        case "newest":
            sender = job.rpartition("-")[0]
            names = [f"{sender}/{place}" for place in range(ROWS)]
            return pa.table({"key": names, "version": [number] * ROWS})
        case "extremes":
            return pa.table({"key": keys, "n": [number] * ROWS})
        case _:
            at = pa.array([round(at_seconds * MICROS_PER_SECOND)] * ROWS, pa.timestamp("us", "UTC"))
            return pa.table({"job": [job] * ROWS, "place": list(range(ROWS)), "at": at})


class Known:
    """What readers must find of jobs that were acknowledged. due: tells when a job was due."""

    def __init__(self) -> None:
        self.jobs: set[str] = set()
        self.sums: Counter[int] = Counter()
        self.texts: Counter[str] = Counter()
        self.newest: dict[str, int] = {}
        self.extremes: dict[int, int] = {}
        self.aged: list[str] = []

    def add(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            if job in self.jobs:
                continue
            self.jobs.add(job)
            number = number_of(job)
            match table_of(job):
                case "sums":
                    self.sums.update(keys_of(job))
                case "texts":
                    self.texts.update(f"k{key:03}" for key in keys_of(job))
                case "newest":
                    sender = job.rpartition("-")[0]
                    self.newest[sender] = max(self.newest.get(sender, -1), number)
                case "extremes":
                    for key in keys_of(job):
                        self.extremes[key] = max(self.extremes.get(key, -1), number)
                case _:
                    self.aged.append(job)


def problems(
    lake: Lake, known: Known, *, due: Mapping[str, float], now: float, exact: bool
) -> list[str]:
    """Read all tables; return what contradicts the jobs that were acknowledged before.

    exact: no other job has landed, so sums must be equal; else they may be larger.
    """
    found = {name: lake.table(name).query().read_all() for name in TABLES}
    wrong = [
        *_sums("sums", found["sums"], known.sums, exact=exact),
        *_sums("texts", found["texts"], known.texts, exact=exact),
        *_sums("extremes", found["extremes"], known.extremes, exact=exact),
    ]
    versions = _pairs(found["newest"], "key", "version")
    for sender, number in known.newest.items():
        shown = {versions.get(f"{sender}/{place}", -1) for place in range(ROWS)}
        if len(shown) > 1 or min(shown) < number:
            wrong.append(f"newest: {sender} shows {shown}, {number} was acknowledged")
    return wrong + _aged(found["aged"], known.aged, due, now)


def _sums(name: str, table: pa.Table, wanted: Mapping[object, int], *, exact: bool) -> list[str]:
    got = _pairs(table, "key", "n")
    wrong = [] if len(got) == len(table) else [f"{name}: a key is there twice"]
    if exact and set(got) != set(wanted):
        wrong.append(f"{name}: keys {sorted(map(str, set(got) ^ set(wanted)))[:5]}")
    for key, least in wanted.items():
        n = got.get(key, -1)
        if n < least or (exact and n != least):
            wrong.append(f"{name}: {key} has {n}, {least} were given")
    return wrong


def _aged(
    table: pa.Table, jobs: Collection[str], due: Mapping[str, float], now: float
) -> list[str]:
    counts = Counter(table["job"].to_pylist())
    young = now - AGED_SECONDS + MARGIN_SECONDS
    wrong = [
        f"aged: {job} has {counts[job]} rows"
        for job in jobs
        if due[job] > young and counts[job] != ROWS
    ]
    wrong += [f"aged: {job} is there {n} times" for job, n in counts.items() if n > ROWS]
    if len(table):
        oldest = pc.min(table["at"]).cast(pa.int64()).as_py() / MICROS_PER_SECOND
        if oldest < now - AGED_SECONDS - MARGIN_SECONDS:
            wrong.append(f"aged: a row of {now - oldest:.0f} s ago is shown")
    return wrong


def _pairs(table: pa.Table, key: str, value: str) -> dict[object, int]:
    return dict(zip(table[key].to_pylist(), table[value].to_pylist(), strict=True))

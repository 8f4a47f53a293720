"""Rows that are deleted are those that a plain filter takes, whatever else goes on (H40, H41)."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.errors import InvalidError
from lakebed.face.followed_table import Follower

SCHEMA = lakebed.schema_of(
    row_keys={"city": "string", "day": "int64"}, values={"n": "int64", "note": "string?"}
)
CITIES = ["", "a", "a\0", "ab", "b", "k" * 30, "k" * 30 + "z", "x"]
LATEST = lakebed.Processing(latest=lakebed.Latest("n"))
STEPS = 14
Row = dict[str, Any]


class Model:
    """The rows of a table as they must be. folds: of equal keys the greatest `n` counts."""

    def __init__(self, rng: random.Random, *, folds: bool) -> None:
        self.rng = rng
        self.folds = folds
        self.rows: list[Row] = []
        self.count = 0

    def new_rows(self) -> list[Row]:
        made = []
        for _ in range(self.rng.randrange(1, 12)):
            self.count += 1
            note = self.rng.choice([None, "x", "y"])
            key = {"city": self.rng.choice(CITIES), "day": self.rng.randrange(-3, 6)}
            made.append(key | {"n": self.count, "note": note})
        self.rows += made
        return made

    def shown(self) -> list[Row]:
        """Return the rows that queries give, by key and number."""
        rows = sorted(self.rows, key=lambda row: (row["city"].encode(), row["day"], row["n"]))
        if self.folds:
            rows = list({(row["city"], row["day"]): row for row in rows}.values())
        return rows

    def delete(self, gone: Any) -> int:  # noqa: ANN401 - as what it replaces
        """Take rows away that are shown and that a filter takes; where rows fold, with all that
        they hide. Returns how many."""
        taken = [row for row in self.shown() if gone(row)]
        keys = {(row["city"], row["day"]) for row in taken}
        if self.folds:
            self.rows = [r for r in self.rows if (r["city"], r["day"]) not in keys]
        else:
            self.rows = [row for row in self.rows if row not in taken]
        return len(taken)

    def asked(self) -> tuple[dict[str, Any], Any]:
        """Return the arguments of a delete, and the filter that says the same."""
        rng, city, day = self.rng, self.rng.choice(CITIES), self.rng.randrange(-3, 6)
        most, span = rng.choice([None, *CITIES]), rng.randrange(1, 5)
        if most is not None and most.encode() < city.encode():
            city, most = most, city
        match rng.randrange(10):
            case 0:
                return {"keys": [city]}, lambda r: r["city"] == city
            case 1:
                return {"keys": [(city, day)]}, lambda r: (r["city"], r["day"]) == (city, day)
            case 2:
                return (
                    {"ranges": {"city": (city, most)}},
                    lambda r: (
                        city.encode() <= r["city"].encode()
                        and (most is None or r["city"].encode() < most.encode())
                    ),
                )
            case 3:
                return {
                    "ranges": {"day": (day, day + span)}
                }, lambda r: day <= r["day"] < day + span
            case 4:
                bound = rng.randrange(1, self.count + 2)
                return {"where": lakebed.field("n") < bound}, lambda r: r["n"] < bound
            case 5:
                one = lakebed.Range(city, city, max_inclusive=True)
                given = {"ranges": {"city": one, "day": (day, None)}}
                return given, lambda r: r["city"] == city and r["day"] >= day
            case 6:
                where = (lakebed.field("city") == city) & (lakebed.field("day") >= day)
                return {"where": where}, lambda r: r["city"] == city and r["day"] >= day
            case 7:
                where = f"city in ('a', 'b') and not (day = {day} or day > {day + span})"
                return {
                    "where": where
                }, lambda r: r["city"] in ("a", "b") and r["day"] != day and r["day"] <= day + span
            case 8:
                where = lakebed.field("city").starts_with("a") | (lakebed.field("city") == city)
                given = {"ranges": {"city": (city, most)}, "where": where}
                return (
                    given,
                    lambda r: (
                        city.encode() <= r["city"].encode()
                        and (most is None or r["city"].encode() < most.encode())
                        and (r["city"].startswith("a") or r["city"] == city)
                    ),
                )
            case _:
                where = lakebed.field("note") == "x"
                given = {"keys": [city], "where": where}
                return given, lambda r: r["city"] == city and r["note"] == "x"


@pytest.mark.parametrize("seed", range(12))
def test_deletes_take_what_a_plain_filter_takes(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    model = Model(rng, folds=seed % 3 == 2)
    with lakebed.connect(tmp_path / "lake") as lake:
        points = rng.choice([[], ["b"], ["a", "k" * 30]])
        settings = {
            "leaf_rows_max": 12,
            "job_files_max": 3,
            "size_ratio": 2,
            "garbage_seconds_min": 0,
        }
        table = lake.create_table(
            "visits",
            SCHEMA,
            split_points=points,
            settings=settings,
            processing=LATEST if model.folds else None,
        )
        follower, copy = table.follow("copy", after=0), Counter[tuple[Any, ...]]()
        for _ in range(STEPS):
            step(lake, table, model)
            follow(copy, follower, folds=model.folds)
            found = table.to_arrow(columns=["city", "day", "n", "note"]).to_pylist()
            found.sort(key=lambda row: (row["city"].encode(), row["day"], row["n"]))
            assert found == model.shown()
            assert model.folds or copy == Counter(tuple(row.values()) for row in found)
            assert table.count() == len(found)
        assert not lake.fsck(deep=True).findings


def follow(copy: Counter[tuple[Any, ...]], follower: Follower, *, folds: bool) -> None:
    """Do to a copy of the rows what was done to the table. folds: a delete takes one row for
    several that were taken in."""
    for change in follower:
        read = change.read().read_all().select(["city", "day", "n", "note"])
        rows = Counter(tuple(row.values()) for row in read.to_pylist())
        assert rows.total() == change.rows
        assert change.kind != "delete" or folds or rows <= copy
        (copy.subtract if change.kind == "delete" else copy.update)(rows)
        follower.acknowledge(change)
    for row in [row for row, count in copy.items() if not count]:
        del copy[row]


def step(lake: lakebed.Lake, table: lakebed.Table, model: Model) -> None:
    """Let one thing happen."""
    match model.rng.randrange(6):
        case 0 | 1:
            table.ingest(model.new_rows())
        case 2:
            lake.run()
        case 3 if model.rng.random() < 0.5:
            with suppress(InvalidError):  # there is one of the name
                table.add_field(f"more{model.count}", "int64?")
        case _:
            asked, gone = model.asked()
            assert table.delete(**asked).rows == model.delete(gone)

import random

import msgspec
import pytest

from lakebed.backends.memory import MemoryJobTracker
from lakebed.inspection.drawing import draw_status
from lakebed.inspection.status import ConnectionStatus, NodeStatus, TableStatus, table_status
from lakebed.model.names import JobId, TableId, TableName
from lakebed.ports.job_tracker import JobReport
from lakebed.statestore.open_table import OpenTable
from tests.dsl import TableStory


def leaf(id_: int, least: str | None, most: str | None, rows: int, **facts: int) -> NodeStatus:
    return NodeStatus(id=id_, field="carrier", min=least, max=most, rows=rows, **facts)


def inner(id_: int, least: str | None, most: str | None, left: int, right: int) -> NodeStatus:
    return NodeStatus(id=id_, field="carrier", min=least, max=most, left=left, right=right)


FLIGHTS = TableStatus(
    name="flights",
    id="0123",
    number=1042,
    floor=7,
    generation=1,
    rows=336_776,
    rows_exact=False,
    files=5,
    bytes=8_400_000,
    leaves=3,
    nodes=(
        inner(1, None, None, 2, 3),
        leaf(2, None, "DL", 100_000, rows_exact=False, files=2, bytes=4_000_000, claimed=2),
        inner(3, "DL", None, 4, 5),
        leaf(4, "DL", "a\x01b", 236_775, files=2, bytes=4_399_000),
        leaf(5, "a\x01b", None, 1, files=1, bytes=1_000, unsplittable=True),
    ),
    jobs=(),
    garbage_files=2,
    garbage_bytes=12_345,
    garbage_due=1,
    pins=1,
    snapshots=(1000, 900),
    settings={"leaf_rows_max": 100_000},
    queued=1,
    dead_letters=0,
    connections=(
        ConnectionStatus(
            id="0f", version=3, source_splits=12, read=1_000, stored=990, quarantined=9, gaps=1
        ),
        ConnectionStatus(
            id="1f", version=1, source_splits=1, read=1, stored=1, quarantined=0, gaps=0
        ),
    ),
)

DRAWN = r"""
flights: about 336,776 rows in 5 files (8.4 MB), 3 leaves

all of carrier
├─ carrier below DL           about 100,000 rows    2 files    4.0 MB  2 claimed
└─ carrier from DL
   ├─ carrier DL to a\x01b          236,775 rows    2 files    4.4 MB
   └─ carrier from a\x01b                  1 row     1 file    1.0 kB  no split point

jobs      none running, 1 message queued
garbage   2 files (12.3 kB), 1 due
log       entry 1,042, floor 7, snapshots at 1,000, 900
feed      0f, version 3: 12 source splits, 1,000 records read, 990 stored, 9 quarantined, 1 gap
feed      1f, version 1: 1 source split, 1 record read, 1 stored
pins      1 long reader
settings  leaf_rows_max=100000
"""


def test_a_status_is_drawn_as_a_tree() -> None:
    assert draw_status(FLIGHTS) == DRAWN.lstrip()


def test_a_status_goes_to_json_and_back() -> None:
    assert msgspec.json.decode(msgspec.json.encode(FLIGHTS), type=TableStatus) == FLIGHTS


def comb(leaves: int, *, to_the_left: bool) -> TableStatus:
    """Return a tree with a leaf at every depth."""
    nodes: list[NodeStatus] = []
    id_ = 1
    for depth in range(leaves - 1):
        children = (id_ + 1, id_ + 2)
        nodes.append(inner(id_, str(depth), None, *(children[::-1] if to_the_left else children)))
        nodes.append(leaf(id_ + 1, str(depth), None, 10, files=1, bytes=5))
        id_ += 2
    nodes.append(leaf(id_, "x", None, 10, files=1, bytes=5))
    return msgspec.structs.replace(FLIGHTS, nodes=tuple(nodes), leaves=leaves)


@pytest.mark.parametrize("to_the_left", [False, True])
@pytest.mark.parametrize("leaves", [1, 6, 7, 50])
def test_of_a_big_tree_the_first_and_last_leaves_are_drawn(
    leaves: int, *, to_the_left: bool
) -> None:
    drawn = draw_status(comb(leaves, to_the_left=to_the_left), leaves_max=6)
    told = sum("10 rows" in line and "more" not in line for line in drawn.splitlines())
    if leaves <= 6:
        assert told == leaves
        assert " more " not in drawn
    else:
        assert told == 6
        hidden = leaves - 6
        word = "leaf" if hidden == 1 else "leaves"
        assert f"... {hidden} more {word}: {10 * hidden} rows, {hidden} file" in drawn


def test_a_table_without_rows_has_one_empty_leaf() -> None:
    empty = msgspec.structs.replace(
        FLIGHTS, nodes=(leaf(1, None, None, 0),), leaves=1, rows=0, rows_exact=True, files=0
    )
    assert "all of carrier                0 rows    0 files       0 B" in draw_status(empty)


def test_a_tables_status_is_one_version_of_its_state() -> None:
    story = TableStory("L | m | R")
    story.given_files("L", a=1000, b=500)
    story.given_files("R", c=7)
    story.when_claimed("one", "L", "a", "b")
    story.when_claimed("two", "R", "c")
    story.when_replaced("two", "R", "c", d=7)
    story.clock.advance(4_000)
    table = OpenTable(id_=TableId("t1"), name=TableName("t"), head=story.head, rng=random.Random(0))
    tracker = MemoryJobTracker()
    status = table_status(table, tracker=tracker, loads={"a": (2, 1), "b": (3, 0), "c": (0, 4)})
    assert (status.rows, status.rows_exact, status.files, status.leaves) == (1507, True, 3, 2)
    assert [node.rows for node in status.nodes if node.left is None] == [1500, 7]
    assert [(node.min, node.max) for node in status.nodes] == [
        (None, None),
        (None, "m"),
        ("m", None),
    ]
    assert (status.garbage_files, status.garbage_due) == (1, 1)
    assert (status.queued, status.dead_letters) == (5, 5)
    assert status.dead_letters_of == {"a": 1, "c": 4}
    (job,) = status.jobs
    assert (job.files, job.age_seconds, job.report) == (2, 4_000, None)
    tracker.report(
        JobReport(
            table=TableId("t1"),
            job=JobId(job.id),
            kind="compaction",
            event="failed",
            at=story.clock.now(),
            reason="corrupt: a file",
        )
    )
    drawn = draw_status(table_status(table, tracker=tracker))
    assert "2 files of leaf 2, claimed 1 h ago, failed 0 s ago: corrupt: a file" in drawn


def test_a_drawing_says_which_queues_have_dead_letters() -> None:
    status = msgspec.structs.replace(
        FLIGHTS, dead_letters=1_003, dead_letters_of={"ingest": 1_000, "query": 3}
    )
    assert (
        "jobs      none running, 1 message queued, 1,003 dead letters (ingest 1,000, query 3):"
        " see `lakebed dead-letters list`"
    ) in draw_status(status).splitlines()

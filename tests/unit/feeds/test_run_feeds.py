"""Feeds of a lake in a directory: each line once, whoever runs them and however often, also when an
answer is lost (protocol R4)."""

import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.errors import InvalidError, LakebedError, TableBusyError, UnknownOutcomeError
from lakebed.feeds import pipeline
from lakebed.feeds.run_feeds import FeedDone
from lakebed.model.names import TransactionNumber
from lakebed.observe.events import FEED_PROGRESSED
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.transactions import Transaction

ROTATE_BYTES = 400
FEEDS = f'[feed.access]\nfiles = "{{folder}}/*.log"\nrotate_bytes = {ROTATE_BYTES}\n'


class FedLake:
    """A lake with a feed of growing files."""

    def __init__(self, folder: Path) -> None:
        self.files = folder / "logs"
        self.files.mkdir()
        self.lake = lakebed.connect(folder / "lake", create=True)
        self.text = FEEDS.format(folder=self.files)
        self.written: list[bytes] = []
        self.failures: list[LakebedError] = []

    def write(self, file: str, count: int) -> None:
        lines = [f"{file} {len(self.written) + n}".encode() * (n % 4) for n in range(count)]
        with (self.files / file).open("ab") as out:
            out.write(b"".join(line + b"\n" for line in lines))
        self.written += lines

    def run(self) -> FeedDone:
        (done,) = lakebed.Feeds(self.lake, self.text).run(
            failed=lambda _, error: self.failures.append(error)
        )
        return done

    def landed(self) -> list[bytes]:
        found = self.lake.table("access_landing").query().read_all()
        return [bytes(value) for value in found["value"].to_pylist()]

    def check(self) -> None:
        assert sorted(self.landed()) == sorted(self.written)
        (status,) = self.lake.status("access_landing")
        (fed,) = status.connections
        assert fed.read == fed.stored == len(self.written)
        found = self.lake.fsck(deep=True).findings
        assert [one.code for one in found if one.severity != "notice"] == []


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[FedLake]:
    given = FedLake(tmp_path)
    yield given
    given.lake.close()


def test_lines_are_landed_once_and_new_ones_with_the_next_run(fed: FedLake) -> None:
    fed.write("a.log", 50)
    fed.write("b.log", 20)
    first = fed.run()
    assert (first.tally.read, first.code, first.table) == (70, "", "access_landing")
    assert first.commits > 2, "no more than rotate_bytes in a commit"
    fed.check()
    assert fed.run().commits == 0
    fed.write("a.log", 5)
    fed.write("c.log", 1)
    assert fed.run().tally.read == 6
    fed.check()


@pytest.mark.parametrize("read_bytes", [ROTATE_BYTES * 2, ROTATE_BYTES // 8])
def test_rounds_that_are_full_are_within_a_tenth_of_the_limit(
    fed: FedLake,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    read_bytes: int,
) -> None:
    monkeypatch.setattr(pipeline, "READ_BYTES", read_bytes)
    fed.write("a.log", 300)
    with caplog.at_level(logging.INFO, logger="lakebed"):
        fed.run()
    said = [vars(one) for one in caplog.records if vars(one).get("event") == FEED_PROGRESSED]
    *full, last = [one["facts"]["bytes_count"] for one in said]
    assert len(full) > 4
    assert all(abs(size - ROTATE_BYTES) <= ROTATE_BYTES / 10 for size in full), full
    assert sum(full) + last == sum(len(line) + 1 for line in fed.written)


def test_rows_are_sorted_by_file_and_byte(fed: FedLake) -> None:
    fed.write("a.log", 9)
    fed.run()
    table = fed.lake.table("access_landing")
    rows = table.query().read_all()
    (split,) = set(rows["source_split"].to_pylist())
    assert [bytes(value) for value in rows["value"].to_pylist()] == fed.written
    position = rows["position"][7].as_py()
    (value,) = table.query(keys=[(split, position)]).read_all()["value"].to_pylist()
    assert value == fed.written[7]


def test_a_commit_whose_answer_was_lost_is_sent_again_and_done_once(
    fed: FedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed.write("a.log", 30)
    commit, lost = TableHead.commit, iter([True])

    def losing(self: TableHead, transaction: Transaction) -> TransactionNumber:
        number = commit(self, transaction)
        if transaction.positions and next(lost, False):
            raise UnknownOutcomeError("no answer came")
        return number

    monkeypatch.setattr(TableHead, "commit", losing)
    assert fed.run().tally.read == 30
    fed.check()


@pytest.mark.parametrize("landed", [True, False])
def test_a_run_that_dies_at_its_commit_leaves_a_position_that_is_true(
    fed: FedLake, monkeypatch: pytest.MonkeyPatch, *, landed: bool
) -> None:
    fed.write("a.log", 30)
    commit = TableHead.commit

    def dying(self: TableHead, transaction: Transaction) -> TransactionNumber:
        if transaction.positions:
            if landed:
                commit(self, transaction)
            raise KeyboardInterrupt
        return commit(self, transaction)

    with monkeypatch.context() as patch:
        patch.setattr(TableHead, "commit", dying)
        with pytest.raises(KeyboardInterrupt):
            fed.run()
    fed.run()
    fed.check()


def test_runs_that_race_take_each_line_once(fed: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading and committing, another process takes the same lines."""
    fed.write("a.log", 60)
    commit, rng = TableHead.commit, random.Random(1)
    inside = []

    def raced(self: TableHead, transaction: Transaction) -> TransactionNumber:
        if transaction.positions and not inside and rng.random() < 0.5:
            inside.append(True)
            with lakebed.connect(fed.lake._given_app.location) as other:
                (done,) = lakebed.Feeds(other, fed.text).run()
                assert not done.code
            inside.clear()
        return commit(self, transaction)

    monkeypatch.setattr(TableHead, "commit", raced)
    for _ in range(3):
        fed.write("a.log", 20)
        fed.run()
    fed.check()
    assert not fed.failures


def test_a_table_that_is_busy_stops_its_feed_and_nothing_is_lost(fed: FedLake) -> None:
    fed.write("a.log", 10)
    fed.run()
    fed.lake.table("access_landing").change_settings(leaf_files_max=4)
    fed.write("a.log", 200)
    done = fed.run()
    assert done.code == "table-busy"
    assert isinstance(fed.failures[0], TableBusyError)
    fed.lake.table("access_landing").compact()
    fed.lake.table("access_landing").change_settings(leaf_files_max=400)
    fed.run()
    fed.check()


def test_a_file_that_was_cut_fails_its_feed_and_no_other(fed: FedLake) -> None:
    fed.text += f'[feed.other]\nfiles = "{fed.files}/*.other"\n'
    (fed.files / "x.other").write_bytes(b"x\n")
    fed.write("a.log", 10)
    fed.write("a.log", 10)
    feeds = lakebed.Feeds(fed.lake, fed.text)
    feeds.run()
    text = (fed.files / "a.log").read_bytes()
    (fed.files / "a.log").write_bytes(text[: text.find(b"\n", 9) + 1])
    with (fed.files / "x.other").open("ab") as other:
        other.write(b"y\n")
    bad, good = feeds.run(failed=lambda _, error: fed.failures.append(error))
    assert (bad.code, good.code, good.tally.read) == ("position-gone", "", 1)
    assert "fewer bytes than were taken" in bad.reason


def test_a_filter_of_the_table_is_counted(fed: FedLake) -> None:
    fed.write("a.log", 8)
    fed.run()
    table = fed.lake.table("access_landing")
    table.change_processing(lakebed.Processing(filter=lakebed.field("position") < 10))
    fed.write("a.log", 8)
    done = fed.run()
    assert (done.tally.read, done.tally.stored, done.tally.filtered) == (8, 0, 8)


def test_an_older_definition_is_told_that_it_is(fed: FedLake) -> None:
    fed.write("a.log", 3)
    newer = fed.text + "version = 2\n"
    lakebed.Feeds(fed.lake, newer).run()
    fed.write("a.log", 3)
    assert fed.run().code == "definition-moved"
    lakebed.Feeds(fed.lake, newer).run()
    fed.check()


def test_a_table_that_is_no_landing_table_is_refused(fed: FedLake) -> None:
    fed.lake.create_table("access_landing", lakebed.schema_of(row_keys={"id": "string"}))
    with pytest.raises(InvalidError, match="no landing table"):
        fed.run()

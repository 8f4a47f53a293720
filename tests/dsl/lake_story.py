"""Stories about whole lakes: given_... when_... then_..., the same on every stage.

A story keeps a model of each table: the rows that it was given, by the job that brought them. What
queries return is compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.ingest.submit_files import Submitted
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.table import Table
from lakebed.tasks.user_jobs import Ingested
from tests.dsl.stage import FunctionStage, Stage, Work
from tests.dsl.table_rows import KEY_ORDER, SCHEMA

SAMPLED_KEYS = 5


class LakeStory:
    """A lake on a stage, and a model of what its tables hold."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.lake = stage.lake
        self._model: dict[str, dict[str, pa.Table]] = {}
        self._submitted: dict[str, list[str]] = {}
        self._open_queries: list[tuple[pa.RecordBatchReader, pa.Table]] = []

    # what is there

    def given_table(
        self, name: str, *, split_points: Sequence[str] = (), **settings: object
    ) -> Table:
        """Create a table of `SCHEMA`."""
        self._model[name] = {}
        return self.lake.create_table(name, SCHEMA, split_points=split_points, settings=settings)

    def given_an_open_query(self, name: str) -> None:
        """Query a whole table, and read nothing yet. `then_open_queries_match` reads on."""
        self._open_queries.append((self.table(name).query(), self._wanted(name)))

    def given_a_damaged_log(self, name: str) -> AbstractContextManager[None]:
        """Until the block ends, a table's log ends with a damaged entry. Work on it may fail."""
        return self.stage.damaged(self.table(name))

    def table(self, name: str) -> Table:
        """Return a table as its users have it."""
        return self.lake.table(name)

    # what happens

    def when_ingested(self, name: str, rows: pa.Table, *, job: str) -> Ingested:
        """Ingest rows directly. The same job may be sent again, with the same rows."""
        self._given(name, job, rows)
        return self.table(name).ingest(rows, job=job)

    def when_ingest_is_queued(self, name: str, rows: pa.Table, *, job: str) -> None:
        """Ingest rows, and leave their commit to the committer."""
        self._given(name, job, rows)
        self.table(name).ingest(rows, job=job, queued=True)

    def when_files_are_sent(self, name: str, *files: pa.Table, job: str) -> None:
        """Write files and send a message that names them. `when_messages_are_ingested` runs it."""
        self._given(name, job, pa.concat_tables(files))
        names = [self.stage.put(f"{job}/{n}.parquet", file) for n, file in enumerate(files)]
        self.stage.send("ingest", {"id": job, "table": name, "files": names})

    def when_files_are_submitted(self, name: str, *files: pa.Table, under: str) -> Submitted:
        """Write files and submit them; again under the same name, they are as they were."""
        self._given(name, under, pa.concat_tables(files))
        if under not in self._submitted:
            self._submitted[under] = [
                self.stage.put(f"{under}/{n}.parquet", file) for n, file in enumerate(files)
            ]
        return self.stage.submit(self.table(name), self._submitted[under])

    def when_batches_are_made(self) -> None:
        """Let submitted files that are due become jobs, and let tasks run these."""
        self.stage.work("batching", "ingest", "batching")

    def when_message_is_sent(self, queue: str, **message: object) -> None:
        """Send a user's message as it is. Who works on it may refuse it."""
        self.stage.send(queue, message)

    def when_queries_are_answered(self) -> None:
        """Let the results of queries that messages ask for be written down."""
        self.stage.work("query")

    def when_cleared(self, name: str, *, split_points: Sequence[str]) -> None:
        """Remove all rows, and begin with a new tree."""
        self._model[name] = {}
        self.table(name).clear(split_points=split_points)

    def when_snapshots_are_written(self) -> None:
        """Let snapshots that are due be written, and logs be emptied below them."""
        self.stage.work("snapshots")

    def when_messages_are_ingested(self) -> None:
        """Let tasks run the ingest jobs that messages ask for."""
        self.stage.work("ingest")

    def when_queued_commits_are_made(self) -> None:
        """Let the committer commit what is queued."""
        self.stage.work("commits")

    def when_split(self) -> None:
        """Let leaves that are too large be split."""
        self.stage.work("splitting")

    def when_jobs_are_created(self) -> None:
        """Let compaction jobs be created; nothing runs them yet."""
        self.stage.work("compaction-creation")

    def when_compacted(self) -> None:
        """Let compaction jobs be created and run until none is due."""
        self.stage.work("compaction")

    def when_messages_are_lost(self, queue: str) -> None:
        """Let a queue forget its messages."""
        self.stage.lose_messages(queue)

    def when_messages_die(self, queue: str) -> None:
        """Let the messages of a queue be dead letters, for each was received too often."""
        self.stage.give_up_messages(queue)

    def when_dead_jobs_are_given_up(self) -> None:
        """Let compaction jobs among the dead letters lose their claims."""
        self.stage.work("dead-letters")

    def when_garbage_is_collected(self) -> None:
        """Let garbage that is due be deleted."""
        self.stage.work("garbage")

    def when_time_passes(self, seconds: float) -> None:
        """Let time pass; no schedule goes off meanwhile."""
        self.stage.advance(seconds)

    # what is true then

    def leaves(self, name: str) -> int:
        """Return how many leaves a table has."""
        return self.lake.status(name)[0].leaves

    def jobs(self, name: str) -> int:
        """Return how many compaction jobs hold claims in a table."""
        return len(self.lake.status(name)[0].jobs)

    def number(self, name: str) -> int:
        """Return the number of a table's newest log entry."""
        return self.lake.status(name)[0].number

    def snapshots(self, name: str) -> int:
        """Return how many snapshots of a table are kept."""
        return len(self.table(name)._snapshots().newest_first())

    def summary(self, name: str) -> str:
        """Return a table's leaves in key order, with files and rows; then what is garbage."""
        (status,) = self.lake.status(name)
        lines = [
            f"{_counted(node.files)}, {'' if node.rows_exact else 'about '}{node.rows} rows"
            for node in status.nodes
            if node.left is None
        ]
        return "\n".join([*lines, f"garbage: {_counted(status.garbage_files)}"])

    def stored_files(self, name: str) -> int:
        """Return how many files of rows a table has in its store, referred to or not."""
        return self.stage.stored_files(self.table(name))

    def then_queries_match(self, name: str, *, without: Sequence[str] = ()) -> None:
        """Compare queries with the model: of everything, of a key range, of single keys.

        without: jobs whose rows are not there yet.
        """
        wanted, table = self._wanted(name, without), self.table(name)
        _same(table.query().read_all(), wanted)
        assert table.count() == wanted.num_rows
        keys = wanted["id"].unique().to_pylist()
        for key in keys[:: max(1, len(keys) // SAMPLED_KEYS)]:
            _same(table.query(keys=[key]).read_all(), wanted.filter(pc.field("id") == key))
        if keys:
            low, high = keys[len(keys) // 4], keys[3 * len(keys) // 4]
            within = wanted.filter((pc.field("id") >= low) & (pc.field("id") < high))
            _same(table.query(ranges={"id": (low, high)}).read_all(), within)

    def then_open_queries_match(self) -> None:
        """Read open queries to their end, and compare each with the model as it was then."""
        for reader, wanted in self._open_queries:
            _same(reader.read_all(), wanted)
        self._open_queries.clear()

    def then_answer_matches(self, name: str, *, job: str, without: Sequence[str] = ()) -> None:
        """Compare the result of a query of a whole table, which was sent as a message."""
        _same(self.stage.result(self.table(name), job), self._wanted(name, without))

    def _wanted(self, name: str, without: Sequence[str] = ()) -> pa.Table:
        given = [rows for job, rows in self._model[name].items() if job not in without]
        nothing = arrow_schema(SCHEMA).empty_table()
        wanted = pa.concat_tables([nothing, *(r.cast(nothing.schema) for r in given)])
        return wanted.sort_by(KEY_ORDER)

    def _given(self, name: str, job: str, rows: pa.Table) -> None:
        known = self._model[name].setdefault(job, rows)
        assert known.equals(rows), f"job {job} was given other rows before"


class FunctionStory(LakeStory):
    """A story in which functions die, and messages come again."""

    def __init__(self, stage: FunctionStage) -> None:
        super().__init__(stage)
        self._functions = stage

    def given_a_function_dies(self, work: Work) -> None:
        """Let the next function that does this work die before it deletes its messages."""
        self._functions.kill_next(work)

    def given_messages_are_delivered_twice(self) -> None:
        """Let each batch of messages be delivered a second time, once the first was worked on."""
        self._functions.deliver_twice()

    def when_a_schedule_fires(self, work: Work, *, at: str) -> None:
        """Let the trigger of a schedule send what is due; nothing works on it yet.

        at: the time for which it fires. A second try has the same.
        """
        self._functions.fire_schedule(work, at)

    def when_messages_come_again(self, work: Work) -> None:
        """Let messages come again that a dead function held, and be worked on."""
        self._functions.redeliver(work)


def _counted(files: int) -> str:
    return f"{files} file{'' if files == 1 else 's'}"


def _same(found: pa.Table, wanted: pa.Table) -> None:
    """Compare rows: keys in order, and each row as often as it is wanted."""
    found = found.select(wanted.column_names).cast(wanted.schema)
    keys = [name for name, _ in KEY_ORDER]
    assert found.select(keys).equals(wanted.select(keys))
    every = [*KEY_ORDER, *((n, "ascending") for n in wanted.column_names if n not in keys)]
    assert found.sort_by(every).equals(wanted.sort_by(every))

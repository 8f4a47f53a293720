"""An instance is upgraded under load: what is deployed in which order, and what users do meanwhile.

A test checks it after each step, and a benchmark counts what was lost.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from lakebed.ports.processes import SILENT_SECONDS
from tests.cloud.instance import RunningInstance
from tests.cloud.test_life import deployed
from tests.cloud.upgrades.two_releases import (
    BEFORE_COMMIT,
    CREATE,
    TABLE,
    command_of,
    mixed,
    release_of,
    stacks_of,
    synthesized,
    with_needed,
)
from tests.cloud.users import put, send
from tests.dsl.table_rows import rows

MIXED_SECONDS = 1_800
"""For so long, in the cloud's time, each mixture works."""
JOB_ROWS = 150


class Releases:
    """Assemblies of two releases, and of mixtures of their stacks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.project_before = release_of(BEFORE_COMMIT, folder / "project")
        self.before = synthesized(self.project_before, folder / "before")
        self.after = synthesized(Path(__file__).parents[3], folder / "after")

    def with_new(self, name: str, *parts: str) -> Path:
        """Return an assembly where stacks whose names hold a part are new, with all they need."""
        wanted = {id_ for id_ in stacks_of(self.after) if any(part in id_ for part in parts)}
        assert wanted, parts
        upgraded = with_needed(self.after, wanted)
        assert upgraded < set(stacks_of(self.after)), "some are as before"
        return mixed(self.before, self.after, upgraded, self._folder / name)


class Load:
    """What users do meanwhile: the first round makes the table, each brings rows by each way.

    given: rows by job; no two jobs have a row in common.
    """

    def __init__(self, releases: Releases) -> None:
        self.given: dict[str, pa.Table] = {}
        self._releases = releases
        self._ahead = 0.0

    def round(self, instance: RunningInstance) -> None:
        """Let a deployment work under load for half an hour."""
        cloud = instance.cloud
        if not self.given:
            self.older(*CREATE)
        cloud.advance(max(0.0, self._ahead - cloud.clock.ahead_seconds), schedules=False)
        for way, bring in (("queue", self._send), ("library", self._ingest)):
            job = f"{way}-{len(self.given)}"
            given = rows(JOB_ROWS, seed=len(self.given))
            bring(instance, job, given)
            bring(instance, job, given)  # a sender that got no answer
            self.given[job] = given
        cloud.advance(MIXED_SECONDS)
        assert cloud.finish_tasks(seconds_max=240)
        self._ahead = cloud.clock.ahead_seconds

    def older(self, *arguments: str) -> str:
        """Return what the command of the release before answers."""
        return command_of(self._releases.project_before, *arguments)

    def lost(self, instance: RunningInstance) -> list[str]:
        """Return jobs of which the table lacks rows."""
        with instance.lake() as lake:
            found = lake.table(TABLE).query().read_all()
        return lost_jobs(self.given, found)

    def _send(self, instance: RunningInstance, job: str, given: pa.Table) -> None:
        url = put(instance, f"{job}.parquet", given)
        message = {"id": job, "table": TABLE, "files": [url]}
        send(instance, "ingest", json.dumps(message), message_group=job)

    def _ingest(self, instance: RunningInstance, job: str, given: pa.Table) -> None:
        with instance.lake() as lake:
            lake.table(TABLE).ingest(given, job=job)


def lost_jobs(given: dict[str, pa.Table], found: pa.Table) -> list[str]:
    """Return jobs of whose rows not all were found. given: by job, no row twice."""
    texts = Counter(found["text"].to_pylist())
    return [job for job, of in given.items() if Counter(of["text"].to_pylist()) - texts]


def upgrade(
    releases: Releases, load: Load, folder: Path, *, look: Callable[[RunningInstance], None]
) -> None:
    """Deploy the release before, mixtures of both in both orders, each taken back, and the release
    after, and finish it. look: is called when each has worked under load, before the finish."""
    functions_first = releases.with_new("functions", "Splitting", "Garbage", "Snapshots", "Query")
    tasks_first = releases.with_new("tasks", "Compaction", "Ingest")
    before, after = releases.before, releases.after
    for assembly in (before, functions_first, before, tasks_first, before, after):
        with deployed(assembly, folder) as instance:
            load.round(instance)
            look(instance)
            if assembly == after:
                instance.cloud.advance(SILENT_SECONDS + 60, schedules=False)
                with instance.lake() as lake:
                    lake.finish_upgrade()

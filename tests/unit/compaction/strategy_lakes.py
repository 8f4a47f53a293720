"""Tables whose strategy is a user's, and strategies that are asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lakebed.backends.system.strategy_processes import StrategyProcesses
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.config.settings import TableSettings
from lakebed.lake import Lake
from lakebed.model.names import JobId
from lakebed.ports.compaction_strategies import Ask, CompactionStrategies, LeafFile
from lakebed.table import Table
from tests.unit.tables.lakes import SCHEMA, rows

MODULE = """
import os, sys, time

CALLS = []

def small_first(files, settings):
    '''Two files of fewer than fifty rows each.'''
    print("what is printed is no answer", flush=True)
    small = [file.name for file in files if file.rows < 50]
    return [small[:2]] if len(small) > 1 else []

def by_age(files, settings):
    old = [file.name for file in files if file.seconds >= 3600]
    return [old] if len(old) > 1 else []

def seen(files, settings):
    raise ValueError([(f.rows, f.bytes > 0, f.seconds) for f in files], settings.job_files_max)

def remembers(files, settings):
    CALLS.append(files)
    if len(CALLS) == 3:
        return [["no such file"] * 2]
    return [[file.name for file in files]]

def raises(files, settings):
    raise RuntimeError("it went wrong")

def exits(files, settings):
    sys.exit(0)

def dies(files, settings):
    os._exit(0)

def hangs(files, settings):
    time.sleep(3600)

def leaves_a_child(files, settings):
    held = os.open(os.environ["LAKEBED_TEST_FIFO"], os.O_WRONLY)
    if os.fork() == 0:
        time.sleep(3600)
    return []

def spins(files, settings):
    while True:
        pass

def writes(files, settings):
    return [["x" * (5 << 20)]]

def strange(files, settings):
    return [[b"1", object()]]

def a_number(files, settings):
    return 7

def a_text(files, settings):
    return ["ab"]

def unknown(files, settings):
    return [[files[0].name, "00" * 12]]

def twice(files, settings):
    return [[files[0].name] * 2]

def in_two(files, settings):
    return [[f.name for f in files[:2]], [f.name for f in files[1:3]]]

def alone(files, settings):
    return [[files[0].name]]

def empty(files, settings):
    return [[]]

def none(files, settings):
    return []
"""
NAMES = [line[4:].partition("(")[0] for line in MODULE.splitlines() if line.startswith("def ")]
SETTINGS = {"job_files_max": 2, "size_ratio": 1}


def made(lake: Lake, strategy: str, name: str = "t", files: int = 3, **settings: int) -> Table:
    """Return a table whose leaf has so many files, of 10 rows each."""
    chosen = SETTINGS | settings | {"compaction_strategy": strategy}
    table = lake.create_table(name, SCHEMA, settings=chosen)
    for n in range(files):
        table.ingest(rows([f"{n}-{m}" for m in range(10)]))
    return table


def create(
    lake: Lake,
    table: Table,
    seconds_max: float = 60.0,
    strategies: CompactionStrategies | None = None,
) -> int:
    """Do what the schedule does. The strategy may take so long."""
    app = lake._app
    service = CreateCompactionJobs(
        queue=app.queue,
        tracker=app.tracker,
        clock=app.clock,
        strategies=strategies or StrategyProcesses(seconds_max=seconds_max),
    )
    return service.run(table._opened)


def held(table: Table) -> list[JobId | None]:
    """Return the job of each file of the table's leaves."""
    with table._opened.head.reading() as state:
        leaves = [figures.partition for figures in state.leaf_figures()]
        return [job for leaf in leaves for _, job in state.references(leaf)]


class MergesTheOldestTwo:
    """Strategies that are one. asked: of how many files, each time."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    @contextmanager
    def opened(self, settings: TableSettings) -> Iterator[Ask]:
        yield self._ask

    def _ask(self, files: Sequence[LeafFile]) -> object:
        self.asked.append(len(files))
        return [[file.name for file in files[:2]]]

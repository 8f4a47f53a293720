"""The committer's function in processes, as its benchmark runs it: all commits land."""

from pathlib import Path

from benchmarks.servers import slow_amazon, slow_s3
from benchmarks.servers.deployed_committer import DeployedCommitter, DeployedShape, Load

SHAPE = DeployedShape(messages_at_once=10, runs_at_once=2, memory_mib=1_769, disk_mib=512)
LOAD = Load(tables=3, messages=2, commits=5)


def test_processes_of_the_function_answer_every_commit(tmp_path: Path) -> None:
    with slow_amazon.serving(latency_ms=0) as amazon, slow_s3.serving(tmp_path, latency_ms=0) as s3:
        committer = DeployedCommitter(tmp_path, amazon, s3, SHAPE, tables=LOAD.tables)
        with committer.processes() as running:
            assert len(running) == SHAPE.runs_at_once
            took = committer.answered(LOAD, running)
        assert committer.files() == LOAD.all_commits
    assert took.seconds > 0
    assert took.cpu_seconds > 0
    assert took.count.write_units >= LOAD.tables

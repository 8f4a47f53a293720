"""The committer's function in processes, as its benchmark runs it: all commits land, with as many
messages at once, and processes beside each other of such a share of a processor, as the template
says."""

import re
from pathlib import Path

from benchmarks.servers import slow_amazon, slow_s3
from benchmarks.servers.deployed_committer import DeployedCommitter, DeployedShape, Load

REVIEWED = Path(__file__).parents[1] / "golden/deployment.txt"
"""What the templates say. A test of stacks compares: a synthesis here would take longer than all
that is done with it."""
FUNCTION = r"^committer CommitOwnFunction .+: (\d+) MiB, .*EphemeralStorage\.Size=(\d+)"
SOURCE = r"^committer CommitSource .+: (\d+) messages at once, (\d+) runs at once"
LOAD = Load(tables=3, messages=2, commits=5)


def reviewed_shape() -> DeployedShape:
    text = REVIEWED.read_text("utf-8")
    ((memory, disk),) = re.findall(FUNCTION, text, re.MULTILINE)
    ((messages, runs),) = re.findall(SOURCE, text, re.MULTILINE)
    return DeployedShape(int(messages), int(runs), int(memory), int(disk))


def test_processes_of_the_function_answer_every_commit(tmp_path: Path) -> None:
    shape = reviewed_shape()
    with slow_amazon.serving(latency_ms=0) as amazon, slow_s3.serving(tmp_path, latency_ms=0) as s3:
        committer = DeployedCommitter(tmp_path, amazon, s3, shape, tables=LOAD.tables)
        with committer.processes() as running:
            assert len(running) == min(shape.runs_at_once, LOAD.tables)
            took = committer.answered(LOAD, running)
        assert committer.files() == LOAD.all_commits
    assert took.seconds > 0
    assert took.cpu_seconds > 0
    assert took.count.write_units >= LOAD.tables

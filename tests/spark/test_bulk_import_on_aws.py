"""Bulk import into a lake on AWS: the driver has log and names, tasks have the bucket only."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from tests.readers.rows import plain
from tests.servers.cdk import DeployedInstance
from tests.servers.fixtures import deployed_instance, ministack  # noqa: F401 - they are fixtures
from tests.spark.shell import SparkShell
from tests.spark.test_bulk_import import SCHEMA, files_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_files_come_into_an_instance_once(
    deployed_instance: DeployedInstance,  # noqa: F811 - the fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in deployed_instance.server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LAKEBED_CACHE", str(tmp_path / "cache"))
    place = f"aws:{deployed_instance.instance}"
    shell = SparkShell("4", place, tmp_path)
    rows = files_in(tmp_path / "input")
    with lakebed.connect(place) as lake:
        lake.create_table("bulk", SCHEMA, split_points=["3", "6"])
    asked = ("bulk", str(tmp_path / "input"), "--job", "j", "--json")
    for repeated in (False, True):
        run = shell.imported(*asked)
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout)["repeated"] is repeated
    with lakebed.connect(place) as lake:
        found: pa.Table = lake.table("bulk").query().read_all()
        reports = [report.event for report in lake.table("bulk").jobs(job="j")]
        assert not lake.fsck("bulk", deep=True).findings
        lake.drop_table("bulk")
    assert plain(found) == plain(rows)
    assert reports == ["started", "committed"]

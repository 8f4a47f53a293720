"""Settings of an instance that has all there is. Where settings exclude one another, it takes a
second one."""

from __future__ import annotations

from pathlib import Path

from lakebed.config.packages import STRATEGIES
from tests.wheels import build_wheel

SWITCHES = {
    "feed_workers_max": "1",
    "feed_push": "true",
    "feed_take": "true",
    "history_days": "30",
    "job_events": "true",
    "people_direct": "true",
    "table_metrics": "true",
}
"""What needs no name of anything else."""

_OF_BOTH = {
    **SWITCHES,
    "alarm_mail": "ops@example.org",
    "feed_queues": "arn:aws:sqs:eu-west-1:123456789012:orders.fifo",
    "function_disk_mib": "1024",
    "ingest_capacity": "ec2",
    "key_arn": "arn:aws:kms:eu-west-1:123456789012:key/0f1e2d3c-aaaa-bbbb-cccc-1234567890ab",
    "notices_https": "https://hooks.example.org/a",
    "notices_queue": "arn:aws:sqs:eu-west-1:123456789012:notices",
    "people_reader": "arn:aws:iam::123456789012:root",
    "sources": "s3://landing/files,s3://more",
    "task_addresses": "private",
    "task_disk_gib": "100",
}
_IN_A_USERS_NETWORK = {
    "feed_ports": "9092-9098",
    "feed_schemas": "true",
    "feed_secrets": "brokers",
    "shared_cluster": "j-1A2B3C4D5E6F7",
    "spark_clusters": "true",
    "subnet_ids": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
    "vpc_id": "vpc-0123456789abcdef0",
}
_IN_ITS_OWN_NETWORK = {"zones": "use1-az1,use1-az2"}


def table_folder(folder: Path) -> str:
    """Write a folder of files of tables, and return how the setting names it."""
    tables = folder / "tables"
    tables.mkdir(exist_ok=True)
    (tables / "trips.toml").write_text('name = "trips"\n[row_keys]\nid = "string"\n', "utf-8")
    return str(tables)


def _in_folders(folder: Path) -> dict[str, str]:
    steps = {STRATEGIES: {"pairs": "pairs"}}
    build_wheel(
        folder / "wheels", "my_steps", "def pairs(files, settings):\n    return []\n", steps
    )
    return {"packages": str(folder / "wheels"), "tables": table_folder(folder)}


def in_a_users_network(folder: Path) -> dict[str, str]:
    """Return the settings. folder: for the files that some of them name."""
    return {**_OF_BOTH, **_IN_A_USERS_NETWORK, **_in_folders(folder)}


def in_its_own_network(folder: Path) -> dict[str, str]:
    """Return the settings, without what its own network leads to nowhere. folder: as above."""
    return {**_OF_BOTH, **_IN_ITS_OWN_NETWORK, **_in_folders(folder)}

"""A policy for one table names that table, and what its library needs, and nothing beside."""

import fnmatch
import json
from typing import Any

import msgspec
import pytest

from lakebed.backends.aws.batching.file_batches import _stripe, _taken_key
from lakebed.backends.aws.costs.usage_ledger import _key
from lakebed.bootstrap.table_policy import patterns_of
from lakebed.config.people.table_access import LakeArns, Statement, TableAccess, statements_for
from lakebed.model.jobs import batch_job
from lakebed.model.names import FileName, Micros, TableId, TransactionNumber
from lakebed.model.paths import commits_path, entry_path, file_path, snapshot_path
from lakebed.observe.usage import NO_TABLE
from lakebed.ports.file_batches import SubmittedFile
from lakebed.ports.paying.usage_ledger import LedgerEntry

TABLE, NEIGHBOUR = TableId("0" * 31 + "a"), TableId("0" * 31 + "b")
KEY = "arn:aws:kms:eu-west-1:123456789012:key/one"
LAKE = LakeArns(
    partition="aws",
    region="eu-west-1",
    account="123456789012",
    parameter="/lakebed/dev",
    bucket="lakebed-dev-data",
    objects="lake/objects",
    log_table="lakebed-dev-log",
    registry_table="lakebed-dev-registry",
    tracker_table="lakebed-dev-tracker",
    batches_table="lakebed-dev-batches",
)
WITH_KEY = msgspec.structs.replace(LAKE, key_arn=KEY)


def statements(access: TableAccess, lake: LakeArns = LAKE) -> list[Statement]:
    return statements_for(access, lake, patterns_of(TABLE))


def actions(found: list[Statement]) -> set[str]:
    return {action for statement in found for action in statement["Action"]}


def objects_of(table: TableId) -> list[str]:
    file = FileName(bytes(16))
    return [
        file_path(table, file),
        snapshot_path(table, TransactionNumber(7), bytes(16)),
        entry_path(table, TransactionNumber(7), "0" * 32),
    ]


def may_do(found: list[Statement], action: str, path: str) -> bool:
    arn = f"arn:aws:s3:::lakebed-dev-data/lake/objects/{path}"
    return any(
        action in statement["Action"] and fnmatch.fnmatchcase(arn, pattern)
        for statement in found
        for pattern in statement["Resource"]
    )


def partitions(found: list[Statement], action: str, table: str) -> list[str]:
    named = []
    for statement in found:
        if f"dynamodb:{action}" in statement["Action"] and table in statement["Resource"][0]:
            named += statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
            assert statement["Condition"]["Null"] == {"dynamodb:LeadingKeys": "false"}
    return named


def test_a_reader_reads_the_objects_of_its_table_and_of_no_other() -> None:
    found = statements("read")
    for path in objects_of(TABLE):
        assert may_do(found, "s3:GetObject", path)
        assert not may_do(found, "s3:PutObject", path)
    assert not any(may_do(found, "s3:GetObject", path) for path in objects_of(NEIGHBOUR))
    assert partitions(found, "Query", "-log") == [TABLE]
    assert partitions(found, "GetItem", "-log") == [TABLE]
    assert partitions(found, "GetItem", "-registry") == ["names"]
    assert partitions(found, "Query", "-registry") == [], "it lists no names"


def test_a_writer_puts_files_and_entries_of_its_table_and_deletes_nothing() -> None:
    found = statements("write")
    file, snapshot, body = objects_of(TABLE)
    assert may_do(found, "s3:PutObject", file)
    assert may_do(found, "s3:PutObject", body)
    assert not may_do(found, "s3:PutObject", snapshot)
    queued = commits_path(TABLE, TransactionNumber(1), "0" * 32)
    assert not may_do(found, "s3:PutObject", queued), "the committer asks for whom nobody commits"
    assert not any(may_do(found, "s3:PutObject", path) for path in objects_of(NEIGHBOUR))
    assert partitions(found, "PutItem", "-log") == [TABLE]
    assert partitions(found, "UpdateItem", "-log") == [TABLE]
    assert partitions(found, "Query", "-registry") == ["formats"], "it lists no names"
    assert partitions(found, "PutItem", "-tracker") == ["process#*", f"job#{TABLE}#*"]
    assert not any("Delete" in action or "sqs" in action for action in actions(found))


@pytest.mark.parametrize("access", ["read", "write"])
def test_usage_is_kept_and_the_budget_read_of_this_table_only(access: TableAccess) -> None:
    found = statements(access)
    own, of_none = f"usage#{TABLE}", "usage#-"
    assert partitions(found, "Query", "-tracker") == [own], "what a budget is compared with"
    assert partitions(found, "UpdateItem", "-tracker") == [own, of_none]
    assert _key(LedgerEntry(table=TABLE, hour=0, kind="ingest", counts={}))["pk"] == {"S": own}
    assert _key(LedgerEntry(table=NO_TABLE, hour=0, kind="ingest", counts={}))["pk"] == {
        "S": of_none
    }


def test_who_writes_submits_files_to_this_table_and_sees_its_batches() -> None:
    found = statements("write")
    pending, taken = _stripe(TABLE, 3), f"taken#{TABLE}#00"
    file = SubmittedFile("s3://landing/a", 1, "v", Micros(0))
    put = partitions(found, "PutItem", "-batches")
    assert put == partitions(found, "ConditionCheckItem", "-batches")
    for key in (pending, taken, _taken_key(TABLE, file)["pk"]["S"]):
        assert any(fnmatch.fnmatchcase(key, pattern) for pattern in put)
    assert partitions(found, "BatchWriteItem", "-batches") == ["tables"]
    seen = partitions(found, "Query", "-batches")
    assert seen == partitions(found, "GetItem", "-batches")
    for key in (pending, f"batches#{TABLE}"):
        assert any(fnmatch.fnmatchcase(key, pattern) for pattern in seen)
    (job,) = partitions(found, "GetItem", "-tracker")
    assert fnmatch.fnmatchcase(f"job#{TABLE}#{batch_job(TABLE, 7)}", job)
    assert not fnmatch.fnmatchcase(f"job#{TABLE}#another", job)


def test_an_instance_without_batching_has_nothing_to_submit_to() -> None:
    without = msgspec.structs.replace(LAKE, batches_table="")
    for found in (statements("read"), statements("write", without)):
        assert "batches" not in json.dumps(found)


@pytest.mark.parametrize("access", ["read", "write"])
def test_every_statement_names_actions_and_resources(access: TableAccess) -> None:
    found = statements(access, WITH_KEY)
    names = [statement["Sid"] for statement in found]
    assert len(set(names)) == len(names)
    for statement in found:
        assert statement["Effect"] == "Allow"
        assert not any("*" in action for action in statement["Action"])
        assert "*" not in statement["Resource"]
    text = json.dumps(found)
    assert NEIGHBOUR not in text
    assert len(text) < 6_144, "what IAM takes of one managed policy"


def test_a_key_is_used_through_the_services_that_keep_the_data() -> None:
    assert not any("kms" in action for action in actions(statements("write")))
    read, write = (statements(access, WITH_KEY) for access in ("read", "write"))
    assert {a for a in actions(read) if "kms" in a} == {"kms:Decrypt", "kms:DescribeKey"}
    assert {a for a in actions(write) if "kms" in a} == {
        f"kms:{action}"
        for action in (
            "Decrypt",
            "DescribeKey",
            "Encrypt",
            "GenerateDataKey",
            "ReEncryptFrom",
            "ReEncryptTo",
        )
    }
    for statement in write:
        if statement["Resource"] == [KEY]:
            condition: dict[str, Any] = statement["Condition"]["StringEquals"]
            assert "dynamodb.eu-west-1.amazonaws.com" in json.dumps(condition["kms:ViaService"])

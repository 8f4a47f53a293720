"""A policy for one table names that table, and what its library needs, and nothing beside."""

import fnmatch
import json
from typing import Any

import pytest

from lakebed.bootstrap.table_policy import patterns_of
from lakebed.config.people.table_access import LakeArns, Statement, TableAccess, statements_for
from lakebed.model.names import FileName, TableId, TransactionNumber
from lakebed.model.paths import commits_path, entry_path, file_path, snapshot_path

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
)
WITH_KEY = LakeArns(**{**{f: getattr(LAKE, f) for f in LAKE.__struct_fields__}, "key_arn": KEY})


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
    assert partitions(found, "Query", "-registry") == ["formats"], "it lists no names"
    assert partitions(found, "PutItem", "-tracker") == ["process#*", f"job#{TABLE}#*"]
    assert not any("Delete" in action or "sqs" in action for action in actions(found))


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

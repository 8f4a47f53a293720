"""Writes the statements of a policy that let readers and writers of a table use it by the library.

`lakebed table policy` writes them for one table, the stack `people` for all. Partitions of DynamoDB
and keys in S3 begin with a table's id, so a statement names one table by conditions and by ARNs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from lakebed.config.dynamo_tables import PROCESS_PREFIX, USAGE_PREFIX
from lakebed.observe.usage import NO_TABLE

Statement = dict[str, Any]
"""A statement of a policy, as IAM writes it in JSON."""

TableAccess = Literal["read", "write"]

FILE_WRITES = ("s3:PutObject", "s3:AbortMultipartUpload")
"""Permissions to put an object, at once or in parts."""


class LakeArns(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an instance, as policies name them.

    partition, region, account: of AWS.
    bucket, log_table, registry_table, tracker_table, parameter: physical names.
    batches_table: of files that wait to be ingested; "": it was deployed without batching.
    objects: the folder of the lake's objects in the bucket, without a slash at its end.
    key_arn: of the key that encrypts all of it; "": AWS's own keys do.
    """

    partition: str
    region: str
    account: str
    parameter: str
    bucket: str
    objects: str
    log_table: str
    registry_table: str
    tracker_table: str
    batches_table: str = ""
    key_arn: str = ""

    def of(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of the instance's account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"

    def table(self, name: str) -> str:
        """Return the ARN of a table of DynamoDB."""
        return self.of("dynamodb", f"table/{name}")

    def keys(self, *patterns: str) -> list[str]:
        """Return the ARNs of objects. patterns: of their paths in the lake."""
        return [f"{self.bucket_arn}/{self.objects}/{pattern}" for pattern in patterns]

    @property
    def bucket_arn(self) -> str:
        """Return the ARN of the bucket."""
        return f"arn:{self.partition}:s3:::{self.bucket}"


class TablePatterns(msgspec.Struct, frozen=True, kw_only=True):
    """The patterns that match what is one table's, or every table's.

    id: of the table; "*": every one.
    files, snapshots, bodies: patterns of the paths of its files, of its snapshots, and of entries
        of its log that lie beside that.
    """

    id: str
    files: str
    snapshots: str
    bodies: str


def statements_for(access: TableAccess, lake: LakeArns, table: TablePatterns) -> list[Statement]:
    """Return what the library needs to read rows of a table, or to ingest rows into it as well."""
    writes = access == "write"
    return [
        *reading(lake, table),
        *(writing(lake, table) if writes else []),
        *use_key(lake, "dynamodb", "s3", writes=writes),
    ]


def allow(
    sid: str, actions: list[str], resources: list[str], **conditions: Mapping[str, object]
) -> Statement:
    """Return a statement. sid: its name in the policy. conditions: by operator; `_` is `:`."""
    statement: Statement = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": actions,
        "Resource": resources,
    }
    if conditions:
        statement["Condition"] = {name.replace("_", ":"): v for name, v in conditions.items()}
    return statement


def on_items(sid: str, table_arn: str, partitions: list[str], *actions: str) -> Statement:
    """Return a statement about items of some partitions, by patterns; `["*"]`: of all.

    A condition on all values holds where there are none: a request that names no partition is
    refused by the other one.
    """
    asked = [f"dynamodb:{action}" for action in actions]
    if partitions == ["*"]:
        return allow(sid, asked, [table_arn])
    keys: dict[str, object] = {"dynamodb:LeadingKeys": partitions}
    named: dict[str, object] = {"dynamodb:LeadingKeys": "false"}
    return allow(sid, asked, [table_arn], ForAllValues_StringLike=keys, Null=named)


def reading(lake: LakeArns, table: TablePatterns) -> list[Statement]:
    """Return what it takes to find a table, open it, and read its rows. A program that lives for
    longer than a minute reports its release."""
    paths = (table.files, table.snapshots, table.bodies)
    listed: dict[str, object] = {"s3:prefix": [f"{lake.objects}/{path}" for path in paths]}
    registry, tracker = lake.table(lake.registry_table), lake.table(lake.tracker_table)
    return [
        allow("Instance", ["ssm:GetParameter"], [lake.of("ssm", f"parameter{lake.parameter}")]),
        on_items("Names", registry, ["names"], "GetItem"),
        on_items("Log", lake.table(lake.log_table), [table.id], "GetItem", "Query"),
        allow("Objects", ["s3:GetObject"], lake.keys(*paths)),
        allow("Lists", ["s3:ListBucket"], [lake.bucket_arn], StringLike=listed),
        on_items("Release", tracker, [f"{PROCESS_PREFIX}*"], "PutItem"),
        keep_usage(lake, table.id),
        on_items("Budget", tracker, [f"{USAGE_PREFIX}{table.id}"], "Query"),
    ]


def keep_usage(lake: LakeArns, table_id: str) -> Statement:
    """Return what it takes to add to the ledger what a program used for a table, and for itself.
    table_id: "*": for any table."""
    kept = [table_id] if table_id == "*" else [table_id, NO_TABLE]
    partitions = [f"{USAGE_PREFIX}{one}" for one in kept]
    return on_items("Usage", lake.table(lake.tracker_table), partitions, "UpdateItem")


def writing(lake: LakeArns, table: TablePatterns) -> list[Statement]:
    """Return what it takes, beside reading, to write files, commit them and report that."""
    log, registry = lake.table(lake.log_table), lake.table(lake.registry_table)
    reports = [f"job#{table.id}#*"]
    return [
        # a library of the release before checks the entry before, and changes none
        on_items("Entries", log, [table.id], "ConditionCheckItem", "PutItem", "UpdateItem"),
        on_items("Formats", registry, ["formats"], "Query"),
        on_items("Marks", registry, ["marks"], "UpdateItem"),
        on_items("Reports", lake.table(lake.tracker_table), reports, "PutItem"),
        allow("Files", list(FILE_WRITES), lake.keys(table.files, table.bodies)),
        *(_submitting(lake, table) if lake.batches_table else []),
    ]


def _submitting(lake: LakeArns, table: TablePatterns) -> list[Statement]:
    """Return what it takes to let files wait for a batch, and to see what became of them: keys are
    those of `lakebed/backends/aws/batching` and of reports on jobs of batches."""
    batches, tracker = lake.table(lake.batches_table), lake.table(lake.tracker_table)
    pending, taken = f"pending#{table.id}#*", f"taken#{table.id}#*"
    jobs = [f"job#{table.id}#{table.id}-batch-*"]
    return [
        # one transaction does both, whose keys IAM may see together
        on_items("Submit", batches, [pending, taken], "ConditionCheckItem", "PutItem"),
        on_items("Submitted", batches, ["tables"], "BatchWriteItem"),
        on_items("Pending", batches, [pending, f"batches#{table.id}"], "GetItem", "Query"),
        on_items("BatchJobs", tracker, jobs, "GetItem"),
    ]


def use_key(lake: LakeArns, *services: str, writes: bool) -> list[Statement]:
    """Return the use of the instance's key, through services that keep what it encrypts. DynamoDB
    looks at the key and, to write, encrypts anew in the name of who asks. []: there is none."""
    if not lake.key_arn:
        return []

    def through(*names: str) -> dict[str, object]:
        return {"kms:ViaService": [f"{name}.{lake.region}.amazonaws.com" for name in names]}

    actions = ["kms:Decrypt", *(["kms:GenerateDataKey"] if writes else [])]
    found = [allow("Key", actions, [lake.key_arn], StringEquals=through(*services))]
    if "dynamodb" in services:
        anew = ["kms:Encrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo"] if writes else []
        looked = ["kms:DescribeKey", *anew]
        condition = through("dynamodb")
        found.append(allow("TablesKey", looked, [lake.key_arn], StringEquals=condition))
    return found

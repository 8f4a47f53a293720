"""Bucket, tables and keys of an instance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lakebed.backends.aws.deployed.asking import Answer, Asking
from lakebed.config.instance import OBJECTS_PREFIX
from lakebed.errors import InvalidError, ObjectMissingError
from lakebed.ports.examined.deployed_parts import DeployedBucket, DeployedTable

WRITE_ONCE = "ObjectsAreWrittenOnce"
"""The statement of the bucket's policy that denies that objects are overwritten."""
LAKE = f"{OBJECTS_PREFIX}/"
OF_EARLIER_RELEASES = f"{LAKE}unfinished/"
"""Prefix of the objects that earlier releases left unfinished: they may expire."""
BLOCKS = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
ON = {"ENABLED", "ENABLING"}


def bucket(asking: Asking, name: str) -> DeployedBucket | None:
    """Return a bucket; None: there is none."""
    s3 = asking.clients.s3
    try:
        versions = asking.ask("s3:GetBucketVersioning", s3.get_bucket_versioning, Bucket=name)
    except (InvalidError, ObjectMissingError):
        return None
    lifecycle = _of_bucket(
        asking, "s3:GetLifecycleConfiguration", s3.get_bucket_lifecycle_configuration, name
    )
    closed = _of_bucket(asking, "s3:GetBucketPublicAccessBlock", s3.get_public_access_block, name)
    policy = _of_bucket(asking, "s3:GetBucketPolicy", s3.get_bucket_policy, name)
    rules = [rule for rule in lifecycle.get("Rules", ()) if rule.get("Status") == "Enabled"]
    blocked = closed.get("PublicAccessBlockConfiguration", {})
    return DeployedBucket(
        name=name,
        versioned=versions.get("Status") == "Enabled",
        closed=all(blocked.get(block) for block in BLOCKS),
        old_versions_days=_old_versions_days(rules),
        expiring=tuple(_expiring(rules)),
        write_once=_is_write_once(policy.get("Policy", "{}")),
    )


def sends_file_events(asking: Asking, name: str) -> bool:
    """Return whether a bucket sends events of new files to EventBridge."""
    call = asking.clients.s3.get_bucket_notification_configuration
    answer = asking.found("s3:GetBucketNotification", call, Bucket=name)
    return answer is not None and "EventBridgeConfiguration" in answer


def _of_bucket(asking: Asking, needs: str, call: Callable[..., Any], name: str) -> Answer:
    """Return one of a bucket's settings; nothing, where it was never made."""
    try:
        return asking.ask(needs, call, Bucket=name)
    except ObjectMissingError:
        return {}


def _prefix(rule: Mapping[str, Any]) -> str:
    found = rule.get("Filter") or {}
    prefix = found.get("Prefix", (found.get("And") or {}).get("Prefix", rule.get("Prefix")))
    return str(prefix or "")


def _old_versions_days(rules: Iterable[Mapping[str, Any]]) -> int | None:
    days = [
        int(rule["NoncurrentVersionExpiration"].get("NoncurrentDays", 0))
        for rule in rules
        if "NoncurrentVersionExpiration" in rule and LAKE.startswith(_prefix(rule))
    ]
    return min(days, default=None)


def _expiring(rules: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for rule in rules:
        prefix, expiry = _prefix(rule), rule.get("Expiration") or {}
        if not ({"Days", "Date"} & set(expiry)) or prefix.startswith(OF_EARLIER_RELEASES):
            continue
        if LAKE.startswith(prefix) or prefix.startswith(LAKE):
            yield prefix


def _is_write_once(policy: str) -> bool:
    statements = json.loads(policy).get("Statement", [])
    return any(one.get("Sid") == WRITE_ONCE and one.get("Effect") == "Deny" for one in statements)


def table(asking: Asking, name: str) -> DeployedTable | None:
    """Return a table; None: there is none."""
    dynamodb = asking.clients.dynamodb
    answer = asking.found("dynamodb:DescribeTable", dynamodb.describe_table, TableName=name)
    if answer is None:
        return None
    backups = asking.ask(
        "dynamodb:DescribeContinuousBackups",
        dynamodb.describe_continuous_backups,
        TableName=name,
    )
    expiry = asking.ask(
        "dynamodb:DescribeTimeToLive", dynamodb.describe_time_to_live, TableName=name
    )["TimeToLiveDescription"]
    recovery = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    shown = answer["Table"]
    expires = expiry.get("TimeToLiveStatus") in ON
    return DeployedTable(
        name=name,
        status=shown["TableStatus"],
        recovers=recovery.get("PointInTimeRecoveryStatus") == "ENABLED",
        protected=bool(shown.get("DeletionProtectionEnabled")),
        expiry=expiry.get("AttributeName", "") if expires else "",
        key=shown.get("SSEDescription", {}).get("KMSMasterKeyArn", ""),
    )


def key_state(asking: Asking, key: str) -> str:
    """Return the state of a key."""
    answer = asking.found("kms:DescribeKey", asking.clients.keys.describe_key, KeyId=key)
    return str(answer["KeyMetadata"]["KeyState"]) if answer else "it is not there"


def keep_versions(asking: Asking, name: str) -> None:
    """Let a bucket keep what is deleted."""
    asking.change(
        "s3:PutBucketVersioning",
        asking.clients.s3.put_bucket_versioning,
        Bucket=name,
        VersioningConfiguration={"Status": "Enabled"},
    )


def keep_history(asking: Asking, name: str) -> None:
    """Let a table recover to any time from now on."""
    asking.change(
        "dynamodb:UpdateContinuousBackups",
        asking.clients.dynamodb.update_continuous_backups,
        TableName=name,
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )


def protect(asking: Asking, name: str) -> None:
    """Let a table refuse to be deleted."""
    update = asking.clients.dynamodb.update_table
    asking.change("dynamodb:UpdateTable", update, TableName=name, DeletionProtectionEnabled=True)

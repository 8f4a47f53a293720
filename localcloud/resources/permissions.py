"""Makers of roles, policies and keys. The emulator judges every request by roles and policies."""

from __future__ import annotations

import json
from functools import partial

from lakebed.errors import InvalidError
from localcloud.resources.making import Made, Making, Properties
from localcloud.resources.stores import taken_over
from localcloud.services.emulator import ACCOUNT

KEY_DAYS = 7
"""Days until a deleted key is gone."""
MANAGED_BY_AWS = "arn:aws:iam::aws:policy/"
OF_SERVICES = (f"{MANAGED_BY_AWS}service-role/AmazonEMRServicePolicy_v2",)
"""Policies for services of AWS that make things here without asking IAM."""


def make_role(making: Making, properties: Properties) -> Made:
    """Make a role with its own policies, and no others. Those that AWS manages are not known
    here."""
    iam = making.client("iam")
    name = properties.take("RoleName") or f"{making.stack}-{properties.logical_id}"[:64]
    trust = json.dumps(properties.need("AssumeRolePolicyDocument"))
    with taken_over("EntityAlreadyExists", "EntityAlreadyExistsException"):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=trust)
    for old in iam.list_role_policies(RoleName=name)["PolicyNames"]:
        iam.delete_role_policy(RoleName=name, PolicyName=old)
    for policy in properties.take("Policies", []):
        _put(making, name, policy["PolicyName"], policy["PolicyDocument"])
    for arn in properties.take("ManagedPolicyArns", []):
        if arn in OF_SERVICES:
            continue
        if arn.startswith(MANAGED_BY_AWS):
            hint = "write its statements by hand, exact actions on exact resources"
            raise InvalidError("a policy that AWS manages", role=name, policy=arn, hint=hint)
        iam.attach_role_policy(RoleName=name, PolicyArn=arn)
    for ignored in ("Description", "Path", "MaxSessionDuration"):
        properties.take(ignored)
    role_id = iam.get_role(RoleName=name)["Role"]["RoleId"]
    arn = f"arn:aws:iam::{ACCOUNT}:role/{name}"

    def remove() -> None:
        for inline in iam.list_role_policies(RoleName=name)["PolicyNames"]:
            iam.delete_role_policy(RoleName=name, PolicyName=inline)
        for attached in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=name, PolicyArn=attached["PolicyArn"])
        iam.delete_role(RoleName=name)

    return Made(name, {"Arn": arn, "RoleId": role_id}, remove)


def make_policy(making: Making, properties: Properties) -> Made:
    """Write a policy into roles."""
    name, document = properties.need("PolicyName"), properties.need("PolicyDocument")
    for role in properties.take("Roles", []):
        _put(making, role, name, document)
    return Made(name)


def make_managed_policy(making: Making, properties: Properties) -> Made:
    """Make a policy that roles and people are given; one that is there gets its new document."""
    iam = making.client("iam")
    name, document = properties.need("ManagedPolicyName"), properties.need("PolicyDocument")
    for ignored in ("Description", "Path"):
        properties.take(ignored)
    arn = f"arn:aws:iam::{ACCOUNT}:policy/{name}"
    text = json.dumps(document)
    try:
        iam.create_policy(PolicyName=name, PolicyDocument=text)
    except iam.exceptions.EntityAlreadyExistsException:
        for version in iam.list_policy_versions(PolicyArn=arn)["Versions"]:
            if not version["IsDefaultVersion"]:
                iam.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=text, SetAsDefault=True)
    return Made(arn, {"PolicyArn": arn}, lambda: iam.delete_policy(PolicyArn=arn))


def make_key(making: Making, properties: Properties) -> Made:
    """Make a key of KMS with its policy: nothing is encrypted with it here."""
    kms = making.client("kms")
    policy = json.dumps(properties.need("KeyPolicy"))
    description = properties.take("Description", "")
    for ignored in ("EnableKeyRotation", "PendingWindowInDays"):
        properties.take(ignored)
    made = kms.create_key(Policy=policy, Description=description)["KeyMetadata"]
    id_ = made["KeyId"]
    remove = partial(kms.schedule_key_deletion, KeyId=id_, PendingWindowInDays=KEY_DAYS)
    return Made(id_, {"Arn": made["Arn"], "KeyId": id_}, remove)


def _put(making: Making, role: str, name: str, document: object) -> None:
    making.client("iam").put_role_policy(
        RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document)
    )

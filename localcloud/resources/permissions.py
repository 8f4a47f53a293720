"""Makers of roles and policies. The emulator judges every request by them."""

from __future__ import annotations

import json

from lakebed.errors import InvalidError
from localcloud.resources.making import Made, Making, Properties
from localcloud.resources.stores import taken_over
from localcloud.services.emulator import ACCOUNT

MANAGED_BY_AWS = "arn:aws:iam::aws:policy/"


def make_role(making: Making, properties: Properties) -> Made:
    """A role with its own policies, and no others. Those that AWS manages are not known here."""
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
    """A policy written into roles."""
    name, document = properties.need("PolicyName"), properties.need("PolicyDocument")
    for role in properties.take("Roles", []):
        _put(making, role, name, document)
    return Made(name)


def _put(making: Making, role: str, name: str, document: object) -> None:
    making.client("iam").put_role_policy(
        RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document)
    )

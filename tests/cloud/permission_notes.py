"""Statements of an instance's roles, and what they were good for in the stories of a session."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from localcloud.cloud import LocalCloud


def policies_of(cloud: LocalCloud, role: str) -> list[tuple[str, dict[str, Any]]]:
    """Return name and document of each policy of a role, in the order in which they are judged."""
    iam = cloud.client("iam")
    found = []
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        found.append((name, json.loads(document) if isinstance(document, str) else document))
    return found


def permissions_of(cloud: LocalCloud) -> list[dict[str, Any]]:
    """Return each statement of each role, with what was noted of it."""
    notes = {(note["role"], note["statement"]): note for note in cloud.judgements()}
    roles = [
        role["RoleName"]
        for page in cloud.client("iam").get_paginator("list_roles").paginate()
        for role in page["Roles"]
    ]
    found = []
    for role in sorted(roles):
        statements = [s for _, d in policies_of(cloud, role) for s in d["Statement"]]
        for place, statement in enumerate(statements):
            note = notes.get((role, place), {"used": [], "needed": None})
            actions = statement["Action"]
            found.append(
                {
                    "role": role,
                    "statement": place,
                    "actions": [actions] if isinstance(actions, str) else actions,
                    "resource": statement["Resource"],
                    "used": note["used"],
                    "needed": note["needed"],
                }
            )
    return found


@contextmanager
def without(cloud: LocalCloud, role: str, action: str, resource: str) -> Iterator[None]:
    """Until the block ends, a role lacks the one statement of an action on a resource."""
    iam = cloud.client("iam")
    (name,) = [
        found["RoleName"]
        for page in iam.get_paginator("list_roles").paginate()
        for found in page["Roles"]
        if found["RoleName"].startswith(role)
    ]
    ((policy, document),) = policies_of(cloud, name)
    kept = [
        statement
        for statement in document["Statement"]
        if action not in statement["Action"] or resource not in json.dumps(statement["Resource"])
    ]
    assert len(kept) == len(document["Statement"]) - 1
    told = {"RoleName": name, "PolicyName": policy}
    iam.put_role_policy(**told, PolicyDocument=json.dumps({**document, "Statement": kept}))
    try:
        yield
    finally:
        iam.put_role_policy(**told, PolicyDocument=json.dumps(document))

"""MiniStack, with the types of resources that its CloudFormation lacks and our templates have, and
as strict as AWS where that decides how a deployment fails.

Nothing stands behind those types: a real `cdk deploy` gets an id for each, and may take it down
again. Tables that exist are not created once more, and protected ones are not deleted. An
application of EMR Serverless is neither changed nor deleted while it is started.
"""

import hashlib
import sys
from typing import Any

from ministack import app
from ministack.services import dynamodb, ssm
from ministack.services.cloudformation import provisioners

REGION, ACCOUNT = "us-east-1", "000000000000"
STARTED = "/emulator/started/"
"""A parameter of SSM whose name is this and that of an application: the application is started."""


def create_application(
    _logical_id: str, properties: dict[str, Any], _stack: str
) -> tuple[str, dict[str, str]]:
    id_ = hashlib.sha256(properties["Name"].encode()).hexdigest()[:16]
    arn = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications/{id_}"
    return id_, {"ApplicationId": id_, "Arn": arn}


def refuse_while_started(properties: dict[str, Any]) -> None:
    if STARTED + properties["Name"] in ssm._parameters:
        raise ValueError("Application must be in one of the following statuses [CREATED, STOPPED]")


def update_application(
    id_: str, old: dict[str, Any], new: dict[str, Any], stack: str
) -> tuple[str, dict[str, str]]:
    refuse_while_started(old)
    return create_application(id_, new, stack)


def delete_application(_id: str, properties: dict[str, Any]) -> None:
    refuse_while_started(properties)


TABLE = provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]


def create_table(
    logical_id: str, properties: dict[str, Any], stack: str
) -> tuple[str, dict[str, str]]:
    name = properties["TableName"]
    if name in dynamodb._tables:
        raise ValueError(f"Resource of type 'AWS::DynamoDB::Table' with {name} already exists.")
    return TABLE["create"](logical_id, properties, stack)


def delete_table(name: str, properties: dict[str, Any]) -> None:
    if dynamodb._tables.get(name, {}).get("DeletionProtectionEnabled"):
        raise ValueError("Resource cannot be deleted as it is currently protected against deletion")
    TABLE["delete"](name, properties)


provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"] = {
    **TABLE,
    "create": create_table,
    "delete": delete_table,
}
provisioners._RESOURCE_HANDLERS["AWS::EMRServerless::Application"] = {
    "create": create_application,
    "update": update_application,
    "delete": delete_application,
}

if __name__ == "__main__":
    sys.argv = ["ministack"]
    app.main()

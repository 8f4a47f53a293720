"""MiniStack, with the types of resources that its CloudFormation lacks and our templates have.

Nothing stands behind them: a real `cdk deploy` gets an id for each, and may take it down again.
"""

import hashlib
import sys
from typing import Any

from ministack import app
from ministack.services.cloudformation import provisioners

REGION, ACCOUNT = "us-east-1", "000000000000"


def create_application(
    _logical_id: str, properties: dict[str, Any], _stack: str
) -> tuple[str, dict[str, str]]:
    id_ = hashlib.sha256(properties["Name"].encode()).hexdigest()[:16]
    arn = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications/{id_}"
    return id_, {"ApplicationId": id_, "Arn": arn}


def delete_application(_id: str, _properties: dict[str, Any]) -> None:
    pass


provisioners._RESOURCE_HANDLERS["AWS::EMRServerless::Application"] = {
    "create": create_application,
    "delete": delete_application,
}

if __name__ == "__main__":
    sys.argv = ["ministack"]
    app.main()

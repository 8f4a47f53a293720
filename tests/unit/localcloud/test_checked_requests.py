"""Requests of every test are checked before they are sent."""

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ParamValidationError


def test_a_client_that_leaves_it_to_the_services_sends_no_wrong_parameter() -> None:
    client = boto3.Session("id", "secret", region_name="us-east-1").client(
        "dynamodb", config=Config(parameter_validation=False)
    )
    with pytest.raises(ParamValidationError):
        client.get_item(TableName="log", Key={"table": {"S": 5}})

"""Requests of these tests are checked before they are sent, encoded ones too."""

import pytest
from botocore.exceptions import ParamValidationError

from tests.servers.dynamo_servers import MotoServer


def test_a_parameter_that_the_service_does_not_know_is_refused(moto: MotoServer) -> None:
    dynamodb = moto.clients().dynamodb
    with pytest.raises(ParamValidationError):
        dynamodb.get_item(TableName="log", Key={"table": {"S": 5}})


def test_an_encoded_request_is_checked_too(moto: MotoServer) -> None:
    clients = moto.clients()
    wrong = [{"Put": {"TableName": "log", "Item": {"table": {"S": "a"}, "number": {"N": 5}}}}]
    with pytest.raises(ParamValidationError):
        clients.encoded.send(clients.dynamodb.transact_write_items, "TransactItems", wrong)

"""How an instance was deployed is read from its parameter, and no lake is opened for it."""

from typing import cast

import pytest

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.releases import instance_parameter
from lakebed.bootstrap import recorded_settings as module
from lakebed.bootstrap.recorded_settings import recorded_settings
from lakebed.config.deployments.deployed_settings import DeployedSettings
from lakebed.config.deployments.instance_resources import InstanceResources, encode_resources
from lakebed.config.instance import InstanceId
from lakebed.errors import DeniedError, InvalidError

DEV = InstanceId("dev")
SETTINGS = DeployedSettings(settings={"log_days": "90"}, without=("query",), tags={"team": "data"})


class Parameters:
    """Stands for AWS: what the parameter of the instance says, or how it cannot be read."""

    def __init__(self) -> None:
        self.says: str | Exception = ""
        self.asked: list[InstanceId] = []
        self.closed = 0

    def text(self, clients: AmazonClients, instance: InstanceId) -> str:
        assert cast("Parameters", clients) is self
        self.asked.append(instance)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Parameters:
    found = Parameters()
    monkeypatch.setattr(module, "new_clients", lambda *_: found)
    monkeypatch.setattr(instance_parameter, "parameter_text", found.text)
    return found


def said(deployed_with: DeployedSettings | None) -> str:
    return encode_resources(
        InstanceResources(
            instance=DEV,
            bucket="b",
            log_table="l",
            registry_table="r",
            tracker_table="t",
            deployed_with=deployed_with,
        )
    )


def test_settings_are_those_that_the_deployment_wrote(aws: Parameters) -> None:
    aws.says = said(SETTINGS)
    assert recorded_settings(DEV) == SETTINGS
    assert (aws.asked, aws.closed) == ([DEV], 1)


def test_a_deployment_that_does_not_say_is_refused(aws: Parameters) -> None:
    aws.says = said(None)
    with pytest.raises(InvalidError):
        recorded_settings(DEV)
    assert aws.closed == 1


def test_clients_are_closed_where_the_parameter_cannot_be_read(aws: Parameters) -> None:
    aws.says = DeniedError("not permitted", needs="ssm:GetParameter")
    with pytest.raises(DeniedError):
        recorded_settings(DEV)
    assert aws.closed == 1

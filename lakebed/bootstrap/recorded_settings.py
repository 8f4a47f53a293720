"""Reads how an instance was deployed. It needs the instance's parameter, and opens no lake."""

from __future__ import annotations

from contextlib import closing

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.aws import new_clients, resources_of
from lakebed.config.deployments.deployed_settings import DeployedSettings
from lakebed.config.instance import InstanceId


def recorded_settings(instance: InstanceId) -> DeployedSettings:
    """Return how an instance is set.

    Raises:
        InvalidError: no such instance, boto3 is not installed, or it does not say.
        DeniedError: the credentials do not permit to look. NewerFormatError: a newer Lakebed
        deployed the instance. UnavailableError: AWS cannot be reached.
    """
    with closing(new_clients(SystemClock(), system_random())) as clients:
        return resources_of(clients, instance).recorded_settings()

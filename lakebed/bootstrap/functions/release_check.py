"""Services of the function that checks which release may be deployed."""

from __future__ import annotations

import os
from functools import partial

from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.config.environments import ReleaseCheckEnvironment, environment_of
from lakebed.config.instance import instance_id
from lakebed.upgrades.check_deployment import CheckDeployment

App = CheckDeployment


def app() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.releases.instance_parameter import deployed_release
    from lakebed.backends.aws.table_registry import DynamoTableRegistry

    environment = environment_of(ReleaseCheckEnvironment, os.environ)
    clients = amazon_clients()
    return CheckDeployment(
        deployed=partial(deployed_release, clients, instance_id(environment.instance)),
        allowed=DynamoTableRegistry(clients, environment.registry_table).formats,
    )

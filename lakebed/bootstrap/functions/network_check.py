"""Services of the function that checks a user's network when an instance is deployed."""

from __future__ import annotations

import os
from functools import partial

from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.config.environments import NetworkCheckEnvironment, environment_of
from lakebed.tasks.check_network import CheckNetwork

App = CheckNetwork


def app() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.networks import endpoint_services

    environment = environment_of(NetworkCheckEnvironment, os.environ)
    look = partial(endpoint_services, amazon_clients(), environment.vpc_id)
    return CheckNetwork(environment.vpc_id, services=look)

"""Clients of AWS in a function: one set, which its services and its reports share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients

_made: list[AmazonClients] = []
"""The last clients that were made: a function makes one set, and keeps it."""


def amazon_clients() -> AmazonClients:
    """Return clients in the region and with the role that the function has."""
    from lakebed.backends.aws.clients import AmazonClients

    clients = AmazonClients(clock=SystemClock(), rng=system_random())
    _made[:] = [clients]
    return clients


def clients_of_function() -> AmazonClients:
    """Return the clients that this process's services have; new ones take a tenth of a second."""
    return _made[0] if _made else amazon_clients()

"""Clients of Amazon with made-up credentials, for tests that answer requests themselves."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Patience
from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.system.random_source import system_random


@contextmanager
def made_up_clients(monkeypatch: pytest.MonkeyPatch, *, tries_max: int) -> Iterator[AmazonClients]:
    """Yields clients that try each request so often."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    patience = Patience(tries_max=tries_max)
    with closing(
        AmazonClients(
            clock=VirtualClock(),
            rng=system_random(),
            patience=patience,
            region_name="eu-central-1",
        )
    ) as made:
        yield made

"""Checks that tasks can work in a user's network, when it is deployed and not when the first task
cannot start."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.errors import InvalidError

S3_SERVICE = "s3"


class CheckNetwork:
    """Looks at one network. services: returns what it has endpoints of, such as `s3`."""

    def __init__(self, vpc: str, *, services: Callable[[], set[str]]) -> None:
        self._vpc = vpc
        self._services = services

    def run(self) -> None:
        """Look once.

        Raises:
            InvalidError: there is no endpoint of S3. UnavailableError: it cannot be looked at.
        """
        if S3_SERVICE not in self._services():
            raise InvalidError(
                "a network without an endpoint of S3",
                vpc=self._vpc,
                hint="add a gateway endpoint of S3 to the route tables of the subnets, which costs"
                " nothing, or name another network",
            )

"""An account in memory, whose limits a test sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping


class MemoryAccount:
    """Answers what it was given.

    quotas: by service and code.
    refuses: is called before each answer with the permission that it needs; what it raises is what
        the platform says.
    """

    def __init__(
        self,
        quotas: Mapping[tuple[str, str], float],
        *,
        function_runs: int = 1_000,
        networks: int = 2,
        refuses: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._quotas = quotas
        self._function_runs = function_runs
        self._networks = networks
        self._refuses = refuses

    def quota(self, service: str, code: str) -> float | None:
        """Return the value of a quota."""
        self._refuses("servicequotas:GetServiceQuota")
        return self._quotas.get((service, code))

    def function_runs(self) -> int:
        """Return how many runs of functions are not reserved."""
        self._refuses("lambda:GetAccountSettings")
        return self._function_runs

    def networks(self) -> int:
        """Return how many networks there are."""
        self._refuses("ec2:DescribeVpcs")
        return self._networks

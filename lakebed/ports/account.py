"""The door to what an account may use at one time, in the region of its instance."""

from __future__ import annotations

from typing import Protocol


class Account(Protocol):
    """Limits of an account, and what of them others hold. Nothing is changed.

    Each call raises DeniedError where the credentials do not permit it, and UnavailableError where
    the platform is busy or cannot be reached.
    """

    def quota(self, service: str, code: str) -> float | None:
        """Return the value of a quota, as it applies to the account; None: there is none."""
        ...

    def function_runs(self) -> int:
        """Return how many runs of functions there may be at one time, without those that are
        reserved for single functions."""
        ...

    def networks(self) -> int:
        """Return how many networks the account has."""
        ...

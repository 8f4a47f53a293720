"""Secrets in memory."""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.feed_errors import SecretMissingError
from lakebed.ports.secrets import Secret, secret_name, secret_of


class MemorySecrets:
    """Secrets by name."""

    def __init__(self, values: Mapping[str, bytes]) -> None:
        self._values = dict(values)

    def read(self, name: str) -> Secret:
        """Return the secret of that name."""
        value = self._values.get(secret_name(name))
        if value is None:
            raise SecretMissingError("there is no such secret", secret=name)
        return secret_of(name, value)

"""Secrets in files that only their owner may read, and in the environment."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from lakebed.errors import DeniedError, InvalidError, UnavailableError
from lakebed.feed_errors import SecretMissingError
from lakebed.ports.secrets import (
    SECRET_BYTES_MAX,
    Secret,
    Secrets,
    secret_name,
    secret_of,
)

_VARIABLE = "LAKEBED_SECRET_"
_READABLE = stat.S_IRWXG | stat.S_IRWXO


def variable_of(name: str) -> str:
    """Return the environment's variable that holds a secret."""
    return _VARIABLE + secret_name(name).upper().replace("-", "_")


class EnvironmentSecrets:
    """Secrets in variables: `LAKEBED_SECRET_KAFKA` is the one called kafka."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def read(self, name: str) -> Secret:
        """Return the secret of that name."""
        variable = variable_of(name)
        value = self._environment.get(variable)
        if value is None:
            raise SecretMissingError("there is no such secret", secret=name, variable=variable)
        return secret_of(name, value.encode("utf-8", "surrogateescape"))


class FileSecrets:
    """Secrets in files of a folder, each named as its secret."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    def read(self, name: str) -> Secret:
        """Return the secret of that name."""
        path = self._folder / secret_name(name)
        try:
            # what it leads to is looked at when it is open: it may be replaced in between
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            hint = f"write it to {path} (mode 0600), or set {variable_of(name)}"
            raise SecretMissingError("there is no such secret", secret=name, hint=hint) from None
        except OSError as error:
            raise _refusal(error, path) from None
        try:
            _check_private(os.fstat(descriptor), path)
            return secret_of(name, os.read(descriptor, SECRET_BYTES_MAX + 1))
        except OSError as error:
            raise _refusal(error, path) from None
        finally:
            os.close(descriptor)


class FirstOfSecrets:
    """Secrets of several stores, asked in order."""

    def __init__(self, *stores: Secrets) -> None:
        if not stores:
            raise AssertionError("one store at least")
        self._stores = stores

    def read(self, name: str) -> Secret:
        """Return the secret of that name from the first store that has it."""
        missing: SecretMissingError | None = None
        for store in self._stores:
            try:
                return store.read(name)
            except SecretMissingError as error:
                missing = error
        assert missing is not None
        raise missing


def _check_private(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise InvalidError("a secret is a file", file=path, hint="write a plain file")
    if found.st_mode & _READABLE:
        hint = f"chmod 600 {path}, and change the secret if it was read"
        raise DeniedError("more users than its owner may read a secret's file", hint=hint)
    if found.st_uid not in {os.geteuid(), 0}:
        hint = "let the file belong to the user who runs this"
        raise DeniedError("a secret's file belongs to another user", file=path, hint=hint)


def _refusal(error: OSError, path: Path) -> Exception:
    why = error.strerror
    if isinstance(error, PermissionError):
        hint = "let the user who runs this read it"
        return DeniedError("a secret's file may not be read", file=path, why=why, hint=hint)
    if isinstance(error, IsADirectoryError) or "symbolic" in str(why):
        return InvalidError("a secret is a file", file=path, hint="write a plain file")
    return UnavailableError("a secret's file cannot be read", file=path, why=why)

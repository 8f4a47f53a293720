"""Where secrets lie, for tests of their port."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lakebed.backends.aws.feeds.secrets import SecretsManagerSecrets
from lakebed.backends.local import EnvironmentSecrets, FileSecrets, FirstOfSecrets
from lakebed.backends.local.secrets import variable_of
from lakebed.backends.memory import MemorySecrets
from lakebed.ports.secrets import Secrets
from tests.contracts.conftest import amazon

StoreSecret = Callable[[str, bytes], Secrets]


@pytest.fixture(params=("memory", "environment", "file", "first", "ministack", "moto"))
def store_secret(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreSecret]:
    """Stores a secret, and returns what reads it."""
    values: dict[str, bytes] = {}
    environment: dict[str, str] = {}
    files, empty = FileSecrets(tmp_path / "secrets"), EnvironmentSecrets({})
    stores: dict[str, Callable[[], Secrets]] = {
        "memory": lambda: MemorySecrets(values),
        "environment": lambda: EnvironmentSecrets(environment),
        "file": lambda: files,
        "first": lambda: FirstOfSecrets(empty, files, MemorySecrets({})),
    }

    def store(name: str, value: bytes) -> Secrets:
        values[name] = value
        environment[variable_of(name)] = value.decode("utf-8", "surrogateescape")
        (tmp_path / "secrets").mkdir(exist_ok=True)
        (tmp_path / "secrets" / name).touch(mode=0o600)
        (tmp_path / "secrets" / name).write_bytes(value)
        return stores[request.param]()

    if request.param in stores:
        yield store
        return
    server = amazon(request)
    prefix = f"lakebed/test-{os.getpid()}-{tmp_path.name}/"
    with closing(server.clients()) as clients:

        def store_there(name: str, value: bytes) -> Secrets:
            as_text = {"SecretString": value.decode()} if value.isascii() else {}
            more = as_text or {"SecretBinary": value}
            clients.secrets.create_secret(Name=prefix + name, **more)
            return SecretsManagerSecrets(clients, prefix)

        yield store_there

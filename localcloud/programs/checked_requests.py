"""Every request of botocore is held against the service's own model before it is sent, also by
clients that leave that to the services, as the product's do: it is a third of a call's time. A
wrong name or type is found here, before an emulator that is less strict than AWS lets it pass.

Run by its path, with another program and its arguments, in interpreters that know nothing of
Lakebed. botocore is imported when the program imports it, and not before: what is missing in a
bundle is missing, and a function is loaded in the same time.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

CLIENTS = "botocore.client"
"""The module in which clients are made."""
ENCODES = "dynamodb"
"""The service whose callers may write a body by themselves: an argument is empty then."""
UNCHECKED = "lakebed:unchecked"
"""Key in botocore's context of a request: the request's body is to be checked."""


def install() -> None:
    """Check the requests of clients that are made from now on. Raises, in a request:
    botocore.exceptions.ParamValidationError."""
    if CLIENTS in sys.modules:
        _join_clients(sys.modules[CLIENTS])
    else:
        sys.meta_path.insert(0, _AfterImport(CLIENTS, _join_clients))


class _AfterImport(MetaPathFinder):
    """Calls a function with a module when that has been imported."""

    def __init__(self, name: str, call: Callable[[Any], None]) -> None:
        self._name = name
        self._call = call

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the module lies: where it does without this."""
        if fullname != self._name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        loader: Any = spec and spec.loader
        if loader is not None:
            run = loader.exec_module

            def run_and_call(module: ModuleType) -> None:
                run(module)
                self._call(module)

            loader.exec_module = run_and_call
        return spec


def _join_clients(clients: Any) -> None:  # noqa: ANN401 - botocore may be one of a bundle
    """Let the module of clients make none whose requests are not checked."""
    make = clients.ClientCreator.create_client

    def made(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - botocore's, passed on
        client = make(*given, **more)
        client.meta.events.register_last("before-parameter-build", _check_parameters)
        client.meta.events.register_last("before-call", _check_body)
        return client

    clients.ClientCreator.create_client = made


def _check_parameters(
    params: dict[str, Any],
    model: Any,  # noqa: ANN401 - as above
    context: dict[str, Any],
    **_: object,
) -> None:
    is_encoded = any(value in ({}, []) for value in params.values())
    if is_encoded and model.service_model.service_name == ENCODES:
        context[UNCHECKED] = True
    else:
        _check(params, model)


def _check_body(
    params: dict[str, Any],
    model: Any,  # noqa: ANN401 - as above
    context: dict[str, Any],
    **_: object,
) -> None:
    if context.pop(UNCHECKED, False):
        _check(json.loads(params["body"]), model)


def _check(params: dict[str, Any], model: Any) -> None:  # noqa: ANN401 - as above
    from botocore.validate import validate_parameters  # noqa: PLC0415 - it is there by now

    if model.input_shape is not None:
        validate_parameters(params, model.input_shape)


if __name__ == "__main__":
    install()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")

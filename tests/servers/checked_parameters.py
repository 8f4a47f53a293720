"""Every request to AWS is held against the service's own model, as botocore has it.

The product leaves that to the services: it is a third of a call's time. In tests a wrong name or
type is found here, before a server that is less strict than AWS lets it pass.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest
from botocore.client import BaseClient
from botocore.model import OperationModel
from botocore.validate import validate_parameters

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.encoded_requests import EncodedRequests

Answer = TypeVar("Answer")

_IS_CHECKED = ContextVar("_IS_CHECKED", default=False)
"""Whether the request that is made has been checked: botocore does not see what is encoded."""


@pytest.fixture(autouse=True, scope="session")
def parameters_are_checked() -> Iterator[None]:
    """Check what clients ask that are made from now on. Raises, in a request:
    botocore.exceptions.ParamValidationError."""
    make, send = AmazonClients._made, EncodedRequests.send

    def made(self: AmazonClients, *arguments: object) -> BaseClient:
        client: BaseClient = make(self, *arguments)
        client.meta.events.register_last("before-parameter-build", _check)
        return client

    def checked_send(
        self: EncodedRequests,
        call: Callable[..., Answer],
        member: str,
        asked: Mapping[str, Any] | Sequence[Any],
    ) -> Answer:
        client: BaseClient = call.__self__
        operation = client.meta.method_to_api_mapping[call.__name__]
        model = client.meta.service_model.operation_model(operation)
        validate_parameters({member: asked}, model.input_shape)
        token = _IS_CHECKED.set(True)
        try:
            return send(self, call, member, asked)
        finally:
            _IS_CHECKED.reset(token)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AmazonClients, "_made", made)
        patch.setattr(EncodedRequests, "send", checked_send)
        yield


def _check(params: dict[str, Any], model: OperationModel, **_: object) -> None:
    if not _IS_CHECKED.get():
        validate_parameters(params, model.input_shape)

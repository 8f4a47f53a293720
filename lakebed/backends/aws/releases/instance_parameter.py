"""The parameter of SSM in which an instance says what its deployment made."""

from __future__ import annotations

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_PARAMETER
from lakebed.config.deployments.instance_resources import decode_resources
from lakebed.config.instance import InstanceId, parameter_name
from lakebed.errors import CorruptError, ObjectMissingError

_LOOK = Request(what="looking for an instance", needs="ssm:GetParameter")


def parameter_text(clients: AmazonClients, instance: InstanceId) -> str | None:
    """Return what an instance's parameter says; None: there is none.

    Raises:
        DeniedError: not permitted. UnavailableError: SSM is busy, or cannot be reached.
    """
    name = parameter_name(instance)
    try:
        answer = clients.requests(AMAZON_PARAMETER, name).run(
            _LOOK, lambda: clients.ssm.get_parameter(Name=name)
        )
    except ObjectMissingError:
        return None
    return answer["Parameter"].get("Value", "")


def deployed_release(clients: AmazonClients, instance: InstanceId) -> str | None:
    """Return the release that an instance was deployed of; "": it does not say; None: there is no
    such instance.

    Raises:
        NewerFormatError: a newer Lakebed deployed it, and says what this one cannot read. Others as
            `parameter_text`.
    """
    text = parameter_text(clients, instance)
    if text is None:
        return None
    try:
        return decode_resources(text, instance).release
    except CorruptError:
        return ""  # a deployment writes it anew, and must not be refused for it

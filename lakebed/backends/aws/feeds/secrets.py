"""Secrets in Secrets Manager, below a prefix that the instance's role may read."""

from __future__ import annotations

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_SECRET
from lakebed.errors import InvalidError
from lakebed.feed_errors import SecretMissingError
from lakebed.ports.secrets import Secret, secret_name, secret_of


class SecretsManagerSecrets:
    """Secrets by name. prefix: of their names there, such as `lakebed/INSTANCE/`."""

    def __init__(self, clients: AmazonClients, prefix: str) -> None:
        self._clients = clients
        self._prefix = prefix

    def read(self, name: str) -> Secret:
        """Return the secret of that name."""
        stored = self._prefix + secret_name(name)
        requests = self._clients.requests(AMAZON_SECRET, stored)
        request = Request(what="reading a secret", needs="secretsmanager:GetSecretValue")
        try:
            answer = requests.run(
                request, lambda: self._clients.secrets.get_secret_value(SecretId=stored)
            )
        except InvalidError as error:
            if "ResourceNotFound" not in str(error.facts.get("why")):
                raise
            raise SecretMissingError("there is no such secret", secret=stored) from None
        value = answer.get("SecretString")
        return secret_of(name, bytes(answer["SecretBinary"]) if value is None else value.encode())

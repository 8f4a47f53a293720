"""Asks all services of AWS about parts of an instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Patience, Request
from lakebed.backends.aws.service_answers import AMAZON_PART
from lakebed.config.instance import InstanceId, parameter_name, physical_name
from lakebed.errors import DeniedError, InvalidError, ObjectMissingError

PATIENCE = Patience(tries_max=3, seconds_max=8.0)
"""A person waits for each answer."""
PAGES_MAX = 50
"""Most pages that are read of one list: five thousand things, in most services."""

Answer = Mapping[str, Any]


class Asking:
    """Asks about one instance."""

    def __init__(self, clients: AmazonClients, instance: InstanceId) -> None:
        self.clients = clients
        self.instance = instance
        self._requests = clients.requests(AMAZON_PART, instance, patience=PATIENCE)

    def name(self, *parts: str) -> str:
        """Return the name of a part."""
        return physical_name(self.instance, *parts)

    def ask(self, needs: str, call: Callable[..., Any], **asked: object) -> Answer:
        """Return one answer. needs: the permission.

        Raises:
            InvalidError, ObjectMissingError: there is no such part. DeniedError, UnavailableError.
        """
        request = Request(what=f"asking for {needs}", needs=needs)
        answer: Answer = self._requests.run(request, partial(call, **asked))
        return answer

    def found(self, needs: str, call: Callable[..., Any], **asked: object) -> Answer | None:
        """Return one answer; None: there is no such part."""
        try:
            return self.ask(needs, call, **asked)
        except (InvalidError, ObjectMissingError):
            return None

    def change(self, needs: str, call: Callable[..., Any], **asked: object) -> None:
        """Change a part. May be done again."""
        request = Request(what=f"asking for {needs}", needs=needs, writes=True)
        self._requests.run(request, partial(call, **asked))

    def listed(
        self,
        needs: str,
        call: Callable[..., Any],
        key: str,
        *,
        token: str = "NextToken",  # noqa: S107 - names a page
        next_token: str = "",
        **asked: object,
    ) -> Iterator[Any]:
        """Yield what a list has under a key, page by page.

        token: what a page is asked by.
        next_token: what the page before calls it, if otherwise.
        """
        for _ in range(PAGES_MAX):
            answer = self.ask(needs, call, **asked)
            yield from answer.get(key) or ()
            found = answer.get(next_token or token)
            if not found:
                return
            asked[token] = found

    def is_ours(self, name: str, others: tuple[str, ...]) -> bool:
        """Return whether a name belongs to a part of this instance. others: of
        `longer_instances`."""
        return name.startswith(self.name("")) and not name.startswith(others)

    def longer_instances(self) -> tuple[str, ...]:
        """Return how names of parts begin of instances whose own name begins with ours and `-`."""
        here = parameter_name(self.instance)
        folder = here.removesuffix(self.instance)
        call = self.clients.ssm.get_parameters_by_path
        try:
            found = list(self.listed("ssm:GetParametersByPath", call, "Parameters", Path=folder))
        except DeniedError:
            return ()
        names = (one["Name"] for one in found if one["Name"].startswith(f"{here}-"))
        return tuple(physical_name(InstanceId(name.removeprefix(folder)), "") for name in names)

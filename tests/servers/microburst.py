"""microburst, a proxy of PyPI's that tells faults in the words of AWS's services.

It is used in two ways. As a proxy of requests it knows which service and operation each is for, and
answers as that service would. As a proxy of connections it passes bytes on, and knows nothing: so
objects, whose `Content-Length` it would leave out of answers, go through it, and the answer to any
request can be lost. Which faults come when is told by rules, in its own language; where several
rules would meet a request, the first does.
"""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from lakebed.backends.aws import Patience
from tests.servers.running import free_ports, running
from tests.servers.s3 import S3Server, http_status

Rule = dict[str, Any]

DYNAMODB, SQS = "dynamodb", "sqs"
UNANSWERED: Rule = {"response": {"abort_frac": 0.0}}
"""The request arrives, its answer does not."""
RESET: Rule = {"reset": True}
"""The connection ends before the request arrives."""
SLOW: Rule = {"latency": {"min": 5, "max": 30}}
"""An answer comes so many milliseconds later."""
CONNECTION_UNANSWERED: Rule = {"cut_reply": {"after_bytes": 0}}
"""As UNANSWERED, of connections."""


def refused(code: str, status: int) -> Rule:
    """An answer in the service's place: the request does not arrive."""
    return {"error": {"code": code, "status": status}}


def busy_object_store() -> Rule:
    """What S3 says when it is asked too often, told to a connection."""
    body = "<Error><Code>SlowDown</Code><Message>told by microburst</Message></Error>"
    head = "HTTP/1.1 503 Slow Down\r\nConnection: close\r\nContent-Type: application/xml\r\n"
    text = f"{head}Content-Length: {len(body)}\r\n\r\n{body}"
    return {"respond": {"data": text, "then": "close"}}


def weather(rules: Sequence[Rule], *, service: str | None = None) -> list[Rule]:
    """Return rules that meet a request now and then: the first each 14th, the next each 18th of
    those that are left, and so on. So a request that is repeated meets each of them once, if nobody
    else sends any. service: whose requests they are for."""
    about = {} if service is None else {"service": service}
    return [
        {**rule, **about, "sequence": {"fail": 1, "pass": 13 + 4 * place}}
        for place, rule in enumerate(rules)
    ]


@dataclass(frozen=True)
class Microburst:
    """url: of the proxy. control: the port at which it is told what to do."""

    url: str
    control: int

    def follow(self, rules: Sequence[Rule]) -> None:
        """Let what passes from now on meet these rules and no others."""
        self._ask("POST", "rules", rules)
        self._ask("DELETE", "fired")

    def met(self) -> Counter[str]:
        """Return how often each fault came since the rules were told: its name, and if it is an
        answer its code."""
        actions = (fired["action"] for fired in self._ask("GET", "fired?limit=100000"))
        return Counter(one if one.startswith("error:") else one.split(":")[0] for one in actions)

    def _ask(self, method: str, what: str, body: object = None) -> Any:  # noqa: ANN401 - of JSON
        connection = HTTPConnection("127.0.0.1", self.control, timeout=10)
        try:
            told = None if body is None else json.dumps(body)
            connection.request(method, f"/_microburst/{what}", told)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text
            return json.loads(text)
        finally:
            connection.close()


_DOUBTFUL = [refused("InternalServerError", 500), RESET]
_READS = ("GetItem", "Query")
_CONFLICT = {"code": "TransactionCanceledException", "status": 400}
_REASONS = {"CancellationReasons": [{"Code": "TransactionConflict"}]}
STORM = [
    *weather(
        [
            refused("ThrottlingException", 400),
            refused("ProvisionedThroughputExceededException", 400),
            SLOW,
            *({**rule, "operation": read} for read in _READS for rule in _DOUBTFUL),
            {"operation": "TransactWriteItems", "error": {**_CONFLICT, "fields": _REASONS}},
        ],
        service=DYNAMODB,
    ),
    *weather(
        [refused("ThrottlingException", 400), refused("ServiceUnavailable", 503), SLOW, *_DOUBTFUL],
        service=SQS,
    ),
]
"""What services do to requests now and then, short of leaving it open whether an entry of a log is
written, which is for whoever wrote it to find out: who is patient notices nothing."""
OBJECTS_STORM = weather([busy_object_store(), RESET, SLOW])
"""The same of an object store."""
STORMY_PATIENCE = Patience(
    tries_max=12, seconds_max=20.0, first_wait_seconds=0.01, wait_seconds_max=0.05
)


@dataclass(frozen=True)
class StormyServer(S3Server):
    """Another server behind microburst. shelter: that server."""

    shelter: S3Server | None = None

    @property
    def calm(self) -> S3Server:
        assert self.shelter is not None
        return self.shelter


@contextmanager
def stormy_server(before: S3Server, folder: Path) -> Iterator[StormyServer]:
    """Run microburst twice before a server, in a storm that never loses an answer."""
    requests, connections = folder / "requests", folder / "connections"
    requests.mkdir()
    connections.mkdir()
    with (
        microburst(before.url, requests) as services,
        microburst(before.url, connections, connections=True) as objects,
    ):
        services.follow(STORM)
        objects.follow(OBJECTS_STORM)
        yield StormyServer(
            "microburst",
            services.url,
            secret=before.secret,
            patience=STORMY_PATIENCE,
            shelter=before,
            objects_url=objects.url,
        )


@contextmanager
def microburst(upstream: str, folder: Path, *, connections: bool = False) -> Iterator[Microburst]:
    """Run it before a server. connections: as a proxy of those, not of requests."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = shutil.which("microburst", path=path)
    if command is None:
        assert not os.environ.get("CI"), "microburst is in requirements/dev.txt: make installs it"
        pytest.skip("no microburst: `make test-all` installs it")
    port, control = free_ports(2)
    place = urlsplit(upstream).netloc
    how = ["--protocol", "tcp", "--upstream", place, "--control-port", str(control)]
    if not connections:
        how, control = ["--upstream", upstream], port
    with running(
        [command, *how, "--host", "127.0.0.1", "--port", str(port)],
        folder,
        is_ready=lambda: http_status(control, "GET", "/_microburst/health") == 200,
    ):
        yield Microburst(f"http://127.0.0.1:{port}", control)

"""Which release may be deployed is asked by a function with its own role, before anything else."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec
import pytest

from lakebed.config.deployments.instance_resources import decode_resources, encode_resources
from lakebed.config.instance import InstanceId, parameter_name
from lakebed.model.releases import BEFORE, RELEASES, THIS
from tests.cloud.instance import INSTANCE, RunningInstance

pytestmark = pytest.mark.timeout(600)

NAME = parameter_name(InstanceId(INSTANCE))
NEWER = "99.0.0"


@contextmanager
def deployed_of(instance: RunningInstance, release: str) -> Iterator[None]:
    """Until the block ends, the instance says that it was deployed of a release."""
    ssm = instance.cloud.client("ssm")
    before = ssm.get_parameter(Name=NAME)["Parameter"]["Value"]
    other = msgspec.structs.replace(decode_resources(before, InstanceId(INSTANCE)), release=release)
    ssm.put_parameter(Name=NAME, Value=encode_resources(other), Type="String", Overwrite=True)
    try:
        yield
    finally:
        ssm.put_parameter(Name=NAME, Value=before, Type="String", Overwrite=True)


def answer_to(instance: RunningInstance, request: str) -> dict[str, Any]:
    """Return what CloudFormation hears when it asks for the check."""
    heard: list[bytes] = []

    class Listener(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            heard.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        event = {
            "RequestType": request,
            "StackId": "stack",
            "RequestId": "request",
            "LogicalResourceId": "Checked",
            "ResponseURL": f"http://127.0.0.1:{server.server_port}/answer",
        }
        instance.cloud.invoke(f"lakebed-{INSTANCE}-release-check", event)
    (body,) = heard
    found: dict[str, Any] = json.loads(body)
    return found


@pytest.mark.parametrize("release", [THIS.name, BEFORE.name, "", NEWER])
def test_a_release_that_this_one_follows_or_may_go_back_from_is_no_hindrance(
    instance: RunningInstance, release: str
) -> None:
    with deployed_of(instance, release):
        assert answer_to(instance, "Update")["Status"] == "SUCCESS"


def test_a_release_that_would_be_skipped_is(instance: RunningInstance) -> None:
    with deployed_of(instance, RELEASES[0].name):
        refused = answer_to(instance, "Update")
        assert refused["Status"] == "FAILED"
        assert "a release would be skipped" in refused["Reason"]
        assert f"deploy {RELEASES[1].name} first" in refused["Reason"]
        assert answer_to(instance, "Delete")["Status"] == "SUCCESS"

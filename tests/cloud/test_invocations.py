"""Functions called as users call them: by Lambda's own interface."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.backends.system.clock import SystemClock
from localcloud.cloud import LocalCloud
from localcloud.runner.invocations import PROXY_VARIABLE
from tests.cloud.assemblies import write_assembly
from tests.cloud.test_runner import CODE, stacks


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[LocalCloud]:
    write_assembly(tmp_path / "assembly", stacks(), code=CODE)
    with LocalCloud(tmp_path / "assembly", tmp_path / "cloud", clock=SystemClock()) as cloud:
        yield cloud


def test_a_function_answers_who_invokes_it_and_what_it_raises_is_told(cloud: LocalCloud) -> None:
    client = cloud.client("lambda")
    answer = client.invoke(FunctionName="look", Payload=b"{}")
    assert "FunctionError" not in answer
    assert json.load(answer["Payload"])["own"].endswith("/states")
    failed = client.invoke(FunctionName="refused", Payload=b"{}")
    assert failed["FunctionError"]
    told = json.load(failed["Payload"])
    assert told["errorType"] == "ClientError"
    assert "AccessDenied" in told["errorMessage"]
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.invoke(FunctionName="lok", Payload=b"{}")


def test_only_the_emulator_may_hand_calls_on(cloud: LocalCloud) -> None:
    told = cloud.client("lambda").get_function_configuration(FunctionName="look")
    server, secret, _ = told["Environment"]["Variables"][PROXY_VARIABLE].rsplit("/", 2)
    for path in ("wrong/look", f"{secret}x/look"):
        asked = urllib.request.Request(f"{server}/{path}", data=b"{}", method="POST")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(asked, timeout=10)


def test_functions_go_with_their_stacks(cloud: LocalCloud) -> None:
    client = cloud.client("lambda")
    assert len(client.list_functions()["Functions"]) == 5
    assert cloud.destroy() == []
    assert client.list_functions()["Functions"] == []

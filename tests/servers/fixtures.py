"""Servers, started when the first test of a session wants them. A `conftest.py` imports these."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.config.instance import InstanceId
from tests.servers.cdk import Cdk, DeployedInstance, named_network
from tests.servers.dynamo_servers import FILLERS, MotoServer, dynoxide_server
from tests.servers.elasticmq import elasticmq_server
from tests.servers.faulty_proxy import FaultyProxy, faulty_proxy
from tests.servers.kafka import KafkaServer, RealKafka, kafka_server, mock_kafka
from tests.servers.microburst import Microburst, StormyServer, microburst, stormy_server
from tests.servers.s3 import S3Server, ministack_server, rclone_server, seaweedfs_server

KNOWN_BAD = "LAKEBED_KNOWN_BAD_SERVERS"
"""Set by `test_known_bad_servers.py`, which runs contracts on servers that must fail them."""


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with ministack_server(tmp_path_factory.mktemp("ministack")) as server:
        yield server


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweedfs_server(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture(scope="session")
def elasticmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with elasticmq_server(tmp_path_factory.mktemp("elasticmq")) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_mock() -> Iterator[KafkaServer]:
    with mock_kafka() as server:
        yield server


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    with kafka_server(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with rclone_server(tmp_path_factory.mktemp("rclone")) as server:
        yield server


@pytest.fixture
def moto() -> Iterator[MotoServer]:
    from moto import mock_aws

    with mock_aws():
        yield MotoServer(FILLERS if os.environ.get(KNOWN_BAD) else 0)


@pytest.fixture(scope="session")
def dynoxide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with dynoxide_server(tmp_path_factory.mktemp("dynoxide")) as server:
        yield server


@pytest.fixture
def proxy(ministack: S3Server) -> Iterator[FaultyProxy]:
    """What passes to MiniStack through it, passes as the test says."""
    with faulty_proxy(ministack.url) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def stormy(ministack: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StormyServer]:
    """MiniStack, where requests are refused, lost and slow now and then."""
    with stormy_server(ministack, tmp_path_factory.mktemp("microburst")) as server:
        yield server


@pytest.fixture
def faulty_requests(ministack: S3Server, tmp_path: Path) -> Iterator[Microburst]:
    """What passes to MiniStack's services through it, passes as the test says."""
    folder = tmp_path / "requests"
    folder.mkdir()
    with microburst(ministack.url, folder) as proxy:
        yield proxy


@pytest.fixture
def faulty_connections(ministack: S3Server, tmp_path: Path) -> Iterator[Microburst]:
    """The same of connections, for objects."""
    folder = tmp_path / "connections"
    folder.mkdir()
    with microburst(ministack.url, folder, connections=True) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def deployed_instance(
    ministack: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> DeployedInstance:
    """What the real `cdk deploy` makes of this checkout, on MiniStack: ten seconds, once a session.

    The stacks' bucket, tables and parameter, empty; its schedules rest. Tests share it: each takes
    names of its own for lakebed's tables, and leaves those of others alone.
    """
    instance = InstanceId("tests")
    cdk = Cdk(ministack, tmp_path_factory.mktemp("cdk") / "out")
    cdk.bootstrap()
    wanted: tuple[str, ...] = (f"instance={instance}", "architecture=machine", "paused=true")
    wanted += tuple(f"{name}={value}" for name, value in named_network(ministack).items())
    settings = [word for setting in wanted for word in ("-c", setting)]
    return DeployedInstance(instance, ministack, cdk, cdk.deploy(*settings))

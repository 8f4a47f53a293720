"""The real command `cdk`, deploying instances to an emulator."""

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lakebed.config.instance import InstanceId
from stacks import NODE, NODE_FOLDER
from tests.servers.s3 import S3Server

ROOT = Path(__file__).parents[2]
CDK = ROOT / ".cache" / "cdk"
UNREACHABLE = re.compile("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH")
SECONDS_MAX = 300

DOCKER = Path(__file__).with_name("no_docker.sh")
"""Says of each image that it was built and pushed, and does nothing."""


def cdk_program() -> Path:
    """Return the command, pinned in requirements/npm; install it as `make cdk` does if need be.

    Where the registry cannot be reached tests are skipped, but never in CI.
    """
    CDK.mkdir(parents=True, exist_ok=True)
    with (CDK / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of the other process of these tests
        made = subprocess.run(
            ["make", f"NODE={NODE_FOLDER}", ".cache/cdk/.made"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    if made.returncode and UNREACHABLE.search(made.stderr) and not os.environ.get("CI"):
        pytest.skip("cdk is not installed, and the registry of npm cannot be reached")
    assert made.returncode == 0, made.stderr
    return CDK / "node_modules" / "aws-cdk" / "bin" / "cdk"


def named_network(server: S3Server, *, leads_to_s3: bool = True) -> dict[str, str]:
    """Return settings that name a new network: MiniStack's CloudFormation knows no flow logs, which
    an instance's own has."""
    with closing(server.clients()) as clients:
        vpc = clients.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = clients.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"]
        if leads_to_s3:
            clients.ec2.create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3")
    return {"vpc_id": vpc, "subnet_ids": subnet}


@dataclass(frozen=True)
class Cdk:
    """Runs `cdk` in this folder, as a person would, with an emulator in place of AWS.

    output: where it synthesizes to.
    """

    server: S3Server
    output: Path
    program: Path = field(default_factory=cdk_program)

    def bootstrap(self) -> None:
        """Prepare the account, once. It needs no synthesis of ours: elsewhere it runs faster."""
        self.run("bootstrap", "aws://000000000000/us-east-1", folder=self.output.parent)

    def deploy(self, *arguments: str) -> str:
        """Return what it said."""
        return self.run("deploy", "--all", "--require-approval", "never", *arguments)

    def command(self) -> tuple[Path, Path]:
        """Return Node, and what it runs."""
        return NODE, self.program

    def run(self, *arguments: str, folder: Path = ROOT) -> str:
        """Return what the command said, which must have been a success."""
        done = self.try_(*arguments, folder=folder)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def try_(self, *arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
        """Return how the command ended, and what it said, all of it as `stdout`."""
        where = [] if folder != ROOT or "--app" in arguments else ["--output", str(self.output)]
        return subprocess.run(
            [str(NODE), str(self.program), *arguments, *where],
            cwd=folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )

    def environment(self) -> Mapping[str, str]:
        """Return the variables that lead it to the emulator."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        folders = [str(Path(sys.executable).parent), str(NODE.parent), os.environ["PATH"]]
        return {
            **inherited,
            **self.server.environment(),
            "AWS_EC2_METADATA_DISABLED": "true",
            "CDK_DOCKER": str(DOCKER),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "PATH": os.pathsep.join(folders),
        }


@dataclass(frozen=True)
class DeployedInstance:
    """An instance that `cdk deploy` made on an emulator, for all tests of a session.

    `server.environment()` has the variables that lead `lakebed.connect(f"aws:{instance}")` and
    the command `lakebed --at` there; `server.clients()` are clients of its services.
    """

    instance: InstanceId
    server: S3Server
    cdk: Cdk
    said: str
    """What `cdk deploy` said."""

"""docs/operate/deploy.md, command by command, against the emulator."""

import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.servers.cdk import SECONDS_MAX, Cdk, named_network
from tests.servers.s3 import S3Server
from tests.stacks.conftest import HERE, ROOT, Templates

PAGE = (ROOT / "docs/operate/deploy.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
UNASKED = {"deploy": "--require-approval never", "destroy": "--force", "import": "--force"}
"""What answers the questions that people are asked."""


SETTINGS_OF = {
    "Who hears of alarms": {"notices_mail", "alarm_topic_arn"},
    "Packages of yours": {"packages"},
    "A key of yours": {"key_arn"},
    "Zones of the instance's own network": {"zones"},
    "A network of yours": {"vpc_id", "subnet_ids"},
}
"""What the page has a section for, and which settings that section gives."""


def test_each_section_of_settings_gives_its_own_and_no_others() -> None:
    sections = dict(re.findall(r"^### (.+)\n((?:(?!#+ ).*\n)*)", PAGE, re.MULTILINE))
    given = {title: set(re.findall(r"-c (\w+)=", sections[title])) for title in SETTINGS_OF}
    assert given == SETTINGS_OF


@pytest.fixture
def checkout(ministack: S3Server, tmp_path: Path) -> Path:
    """A folder that looks like a checkout after `make cdk`."""
    folder = tmp_path / "checkout"
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("app.py", "containers", "lakebed", "lambdas", "stacks", "requirements", ".cache"):
        (folder / name).symlink_to(ROOT / name)
    settings = json.loads((ROOT / "cdk.json").read_text("utf-8"))
    settings["context"] |= {**HERE, **named_network(ministack), "paused": True}
    (folder / "cdk.json").write_text(json.dumps(settings))
    cdk = Cdk(ministack, tmp_path / "out")
    answers = "".join(f'{name}) set -- "$@" {more} ;;\n' for name, more in UNASKED.items())
    node, program = cdk.command()
    shims = {
        "cdk": f'case "$1" in\n{answers}esac\nexec "{node}" "{program}" "$@"',
        "lakebed": f'exec "{sys.executable}" -c "from lakebed.cli.main import main; main()" "$@"',
        "make": "exit 0",
    }
    for name, body in shims.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n", "utf-8")
        (programs / name).chmod(0o755)
    return folder


def test_the_page_says_to_empty_buckets_that_are_to_go() -> None:
    """CloudFormation deletes no others; the emulator does."""
    text = " ".join(PAGE.split())
    assert "The buckets go only when they are empty, old versions too: empty both" in text


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_command_of_the_page_works(
    checkout: Path, ministack: S3Server, templates: Templates, tmp_path: Path
) -> None:
    buckets = [
        id_
        for id_, resource in templates["data"]["Resources"].items()
        if resource["Type"] == "AWS::S3::Bucket"
    ]
    assert all(f'"{id_}"' in PAGE for id_ in buckets)
    cdk = Cdk(ministack, tmp_path / "out")
    path = os.pathsep.join([str(checkout / ".venv/bin"), cdk.environment()["PATH"]])
    folders = {"PYTHONPATH": str(ROOT), "LAKEBED_CACHE": str(tmp_path / "cache")}
    said: list[str] = []
    for block in BLOCKS:
        done = subprocess.run(
            ["bash", "-eu", "-c", block],
            cwd=checkout,
            env={**cdk.environment(), **folders, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}"
        said.append(done.stdout)
        if "lakebed-dev-data" in block:
            assert "IMPORT_COMPLETE" in done.stdout
    assert len(said) >= 5
    with closing(ministack.clients()) as clients:
        assert "lakebed-dev-log" not in clients.dynamodb.list_tables()["TableNames"]

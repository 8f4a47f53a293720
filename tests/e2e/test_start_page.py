"""docs/start.md, as people type it: the tour on this machine, and the way to AWS."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakebed.backends.system.clock import SystemClock
from localcloud.cloud import LocalCloud
from tests.cloud.assemblies import write_assembly
from tests.servers.cdk import NODE, cdk_program
from tests.stacks.conftest import CONTEXT, HERE

ROOT = Path(__file__).parents[2]
TOUR, ON_AWS = (ROOT / "docs/start.md").read_text("utf-8").split("\n## On AWS\n")
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECONDS_MAX = 300

FAILING = "lakebed query tripz"
"""Begins the one block whose commands show what is wrong."""


def blocks(text: str) -> list[str]:
    """What is typed, but for the demo: `make demo` has tests of its own."""
    return [block for block in BLOCK.findall(text) if block != "make demo\n"]


class Person:
    """Types blocks into one shell after the other, in one folder; what was exported stays."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._exported = folder / ".exported"
        self._exported.touch()
        self._environment = environment

    def types(self, block: str) -> str:
        """Return what was said, which must have been no failure but where the page wants one."""
        stops = "" if block.startswith(FAILING) else "set -e\n"
        typed = f". ./.exported\n{stops}{block}\nexport -p > .exported\n"
        done = subprocess.run(
            ["bash", "-c", typed],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}"
        return done.stdout


def program(folder: Path, name: str, does: str) -> None:
    """Put a program where `make` puts those of Lakebed."""
    path = folder / ".venv" / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{does}\n", "utf-8")
    path.chmod(0o755)


def checkout(folder: Path) -> Path:
    """A folder that looks like a checkout after `make demo`."""
    folder.mkdir()
    call = "from lakebed.cli.main import main; main()"
    program(folder, "python", f'exec "{sys.executable}" "$@"')
    program(folder, "lakebed", f'exec "{sys.executable}" -c "{call}" "$@"')
    return folder


def test_the_tour_works_as_it_is_typed(tmp_path: Path) -> None:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    person = Person(checkout(tmp_path / "clone"), {**inherited, "PYTHONPATH": str(ROOT)})
    said = [person.types(block) for block in blocks(TOUR)]
    assert len(said) == 8
    whole = "\n".join(said)
    assert "did you mean 'trips'" in whole
    assert '{"id":"b7","at":1,"fare":3}' in whole
    assert "1 row in 1 file (3 read, 1 left out by filter or age-off)" in whole
    assert " 0 rows in " not in whole
    assert "100 records into tips" in said[-2]
    assert re.search(r"^100$", said[-2], re.MULTILINE)
    assert "clean" in said[-1]


def checkout_to_deploy_from(folder: Path) -> Path:
    """A checkout after `make cdk`, whose `cdk` deploys to where `localcloud` would: the real
    one synthesizes. What else it does is tried by tests/stacks, with the same commands."""
    checkout(folder)
    for name in ("app.py", "containers", "lakebed", "lambdas", "requirements", "spark_jobs"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("pyproject.toml", "stacks", ".cache"):
        (folder / name).symlink_to(ROOT / name)
    settings = json.loads((ROOT / "cdk.json").read_text("utf-8"))
    settings["context"] = {**CONTEXT, **HERE}
    (folder / "cdk.json").write_text(json.dumps(settings))
    deploy = f'shift 2; exec "{NODE}" "{cdk_program()}" synth --quiet --output assembly "$@"'
    cases = f"deploy) {deploy};;\nbootstrap|destroy) exit 0;;\n*) exit 1;;"
    program(folder, "cdk", f'case "$1" in\n{cases}\nesac')
    program(folder, "make", "exit 0")
    (folder / "trips.csv").write_text("id,at,fare\nb7,2,4.5\na1,1,\nb7,1,3\n")
    return folder


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_way_to_aws_works_as_it_is_typed(tmp_path: Path) -> None:
    folder = checkout_to_deploy_from(tmp_path / "clone")
    nothing = write_assembly(tmp_path / "nothing", {"nothing": {}})
    account = tmp_path / "account"
    deploys, sends, told, answers, looks = blocks(ON_AWS)
    with LocalCloud(nothing, account, clock=SystemClock(), kept=True) as cloud:
        person = Person(folder, environment(cloud, folder))
        person.types(deploys)
    with LocalCloud(folder / "assembly", account, clock=SystemClock(), kept=True) as cloud:
        person = Person(folder, environment(cloud, folder))
        person.types(sends)
        cloud.advance(120)
        assert cloud.finish_tasks(seconds_max=SECONDS_MAX)
        assert "committed" in person.types(told)
        said = person.types(answers)
        assert said.count("b7") >= 4
        assert not re.search(r"\ba1\b", said)
        assert "trips" in person.types(looks)
        assert cloud.destroy() == []


def environment(cloud: LocalCloud, folder: Path) -> dict[str, str]:
    """The variables of somebody whose programs, also `aws`, are led to a local cloud."""
    programs = [folder / ".venv/bin", Path(sys.executable).parent, NODE.parent]
    return {
        **cloud.environment(),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "HOME": str(folder),
        "LAKEBED_CACHE": str(folder / ".lakebed"),
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
    }

"""One jsii kernel (Node with CDK in it, which starts in seconds) for all tests of a session."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.servers.fixtures import deployed_instance, ministack
from tests.stacks.deployments.everything import in_a_users_network, in_its_own_network

__all__ = ["deployed_instance", "ministack"]

ROOT = Path(__file__).parents[2]
CONTEXT = json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"]

HERE = {"architecture": "machine"}
"""What functions are, so that they can run here."""

IN_PLACE = {"aws:cdk:disable-asset-staging": True}
"""With this, an assembly names bundles where they lie. Else it has copies, half a gigabyte, and a
synthesis takes five times as long. Templates are the same."""

Templates = dict[str, dict[str, Any]]
"""By the stack's part of the instance: `data`, `state`, ..."""

Synthesize = Callable[..., Templates]


@pytest.fixture(scope="session")
def synthesize() -> Synthesize:
    """Returns the templates of an instance with settings; outdir: where they go as files, which
    are gone at once without one."""

    def run(outdir: Path | None = None, /, **settings: object) -> Templates:
        if outdir is not None:
            return synthesized(outdir, **settings)
        with TemporaryDirectory(prefix="assembly-") as folder:
            return synthesized(Path(folder), **settings)

    return run


def synthesized(into: Path, /, **settings: object) -> Templates:
    """Return the templates of an instance called `dev`, which go into a folder as files."""
    from stacks.instance import instance_app

    context = {**CONTEXT, **HERE, **IN_PLACE, "instance": "dev", **settings}
    instance_app(context, outdir=str(into)).synth()
    return templates_in(into)


def templates_in(folder: Path) -> Templates:
    manifest: Mapping[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
    found = {}
    for artifact in manifest["artifacts"].values():
        if artifact["type"] == "aws:cloudformation:stack":
            properties = artifact["properties"]
            text = (folder / properties["templateFile"]).read_text("utf-8")
            found[properties["stackName"].rpartition("-")[2]] = json.loads(text)
    return found


@pytest.fixture(scope="session")
def templates(synthesize: Synthesize) -> Templates:
    """Those of an instance called `dev`, as set by default."""
    return synthesize()


@pytest.fixture(scope="session")
def everything_folder(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembly of an instance that has all there is, with tasks in a network of a user's."""
    folder = tmp_path_factory.mktemp("everything")
    synthesize(folder, **in_a_users_network(tmp_path_factory.mktemp("named")))
    return folder


@pytest.fixture(scope="session")
def with_everything(everything_folder: Path) -> Templates:
    """Its templates."""
    return templates_in(everything_folder)


@pytest.fixture(scope="session")
def in_own_network(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """The same, with a network of the instance's own, from which machines do not reach EMR."""
    return synthesize(**in_its_own_network(tmp_path_factory.mktemp("own-network")))

"""What runs where only some of the requirements are installed, as by `make demo`."""

import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest

import lakebed.cli
import stacks

ROOT = Path(__file__).parents[2]
IMPORTING = """
import importlib, json, sys

refused = frozenset(json.loads(sys.argv[1]))

class Refusing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"no module named {name}, it is not installed", name=name)

sys.meta_path.insert(0, Refusing)
for module in sys.argv[2:]:
    importlib.import_module(module)
"""
RUN = (
    "lakebed",
    "demo.flights",
    "localcloud.commands",
    *(f"lakebed.cli.{found.name}" for found in pkgutil.iter_modules(lakebed.cli.__path__)),
)
DEPLOY = tuple(f"stacks.{found.name}" for found in pkgutil.iter_modules(stacks.__path__))


def required(name: str) -> set[str]:
    """Names of the distributions that a file of requirements installs."""
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return {_normal(found[1]) for line in lines if (found := re.match(r"([\w.-]+)==", line))}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize(
    ("modules", "files"),
    [(RUN, ["run.txt"]), (DEPLOY, ["run.txt", "aws.txt", "deploy.txt"])],
    ids=["run", "deploy"],
)
def test_nothing_is_imported_that_is_not_installed_there(
    modules: Sequence[str], files: Sequence[str]
) -> None:
    allowed = {"lakebed"}.union(*map(required, files))
    assert {"pyarrow", "msgspec"} < allowed
    packages = metadata.packages_distributions()
    refused = [top for top, names in packages.items() if allowed.isdisjoint(map(_normal, names))]
    assert {"pydantic", "numba"} < set(refused)
    command = [sys.executable, "-c", IMPORTING, json.dumps(refused), *modules]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_oldest_that_are_tried_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    bounds = dict(re.findall(r"([\w-]+)>=([\d.]+)", " ".join([*project["dependencies"], *extras])))
    lines = (ROOT / "requirements" / "lowest.txt").read_text("utf-8")
    pins = dict(re.findall(r"^([\w-]+)==([\d.]+)", lines, re.MULTILINE))
    assert {"numpy", "pyarrow", "boto3", "numba"} < set(bounds)
    assert {name: _release(pins[name]) for name in bounds} == {
        name: _release(bound) for name, bound in bounds.items()
    }


def _release(version: str) -> tuple[int, ...]:
    """Returns a version's numbers, three of them: 26 is 26.0.0."""
    major, minor, patch, *_ = [*map(int, version.split(".")), 0, 0]
    return major, minor, patch

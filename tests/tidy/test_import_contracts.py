"""The import contracts that list modules one by one list all of them."""

import tomllib

import pytest

from tests.tidy.source import ROOT, Source, project_files

FENCES = [
    (
        "Loops know decorators and instructions, and nothing else of the toolchain",
        "source_modules",
    ),
    ("The toolchain does not know the loops", "forbidden_modules"),
]
"""Each contract between loops and toolchain, and which of its lists names the loops."""


def listed(contract: str, key: str) -> list[str]:
    """Return the modules that a contract lists under a key."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (found,) = (one for one in contracts if one["name"] == contract)
    modules: list[str] = found[key]
    return modules


def loops(sources: list[Source]) -> list[str]:
    """Return the modules of kernels, without the toolchain's."""
    return [
        s.module
        for s in sources
        if s.is_python and s.inside("lakebed/kernels") and not s.inside("lakebed/kernels/toolchain")
        if s.module != "lakebed.kernels"
    ]


@pytest.mark.parametrize(("contract", "key"), FENCES)
def test_contracts_of_kernels_name_every_module(contract: str, key: str) -> None:
    modules = loops(list(project_files()))
    assert len(modules) > 10
    assert listed(contract, key) == modules, "pyproject.toml lists them in order"


def test_a_new_kernel_is_noticed() -> None:
    names = ["__init__", "folding", "new", "toolchain/arrays"]
    found = loops([Source(f"lakebed/kernels/{name}.py", "") for name in names])
    assert found == ["lakebed.kernels.folding", "lakebed.kernels.new"]

"""Every backend meets the contracts of its port, or is tested where this file says."""

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.source import ROOT

FAMILIES = ("aws", "aws/costs", "aws/feeds", "local", "memory", "web")
"""Of backends. `faulty` has wrappers, `system` the real clock and the real random source."""
ELSEWHERE = {
    # no emulator has bills
    "CostExplorerBills": "tests/unit/backends/amazon/test_cost_explorer.py",
    "EcsTaskRunner": "tests/cloud/test_tasks.py",  # as the local cloud deploys it
    "MemoryTaskRunner": "tests/unit/tasks/test_start_tasks.py",
    "WebSourceFiles": "tests/e2e/test_rows_by_url.py",  # the web has no folders
    "MachineClock": "tests/unit/backends/test_memory.py",
}


def classes(folder: str) -> Iterator[ast.ClassDef]:
    """Yield the classes of the modules in a folder."""
    for path in sorted((ROOT / folder).glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        yield from (node for node in tree.body if isinstance(node, ast.ClassDef))


def methods(node: ast.ClassDef) -> set[str]:
    """Return the names of a class's methods."""
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


PORTS = {
    node.name: methods(node)
    for folder in ("lakebed/ports", "lakebed/ports/paying")
    for node in classes(folder)
    if any(ast.unparse(base).startswith("Protocol") for base in node.bases)
    and node.name != "ObjectWriter"  # which a store gives
}
BACKENDS = sorted(
    node.name
    for family in FAMILIES
    for node in classes(f"lakebed/backends/{family}")
    for port, wanted in PORTS.items()
    if node.name.endswith(port) and wanted <= methods(node)
)
CONTRACTS = "".join(path.read_text("utf-8") for path in (ROOT / "tests/contracts").rglob("*.py"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_meets_the_contracts_of_its_port(backend: str) -> None:
    if backend not in ELSEWHERE:
        assert backend in CONTRACTS, "add it to the port's fixture in tests/contracts/conftest.py"


def test_backends_that_are_tested_elsewhere_are_backends_and_the_tests_are_there() -> None:
    assert set(ELSEWHERE) <= set(BACKENDS)
    assert all((ROOT / path).is_file() for path in ELSEWHERE.values())


def test_backends_are_found_by_the_names_of_their_ports() -> None:
    assert {"DynamoTransactionLogs", "LocalObjectStore", "MemoryTableMarks"} <= set(BACKENDS)

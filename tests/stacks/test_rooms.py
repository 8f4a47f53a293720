"""A bundle and an image hold the rooms that their programs import, and nothing else of ours."""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import grimp
import pytest

from lakebed.config.environments import (
    BulkImportEnvironment,
    IngestTaskEnvironment,
    TaskEnvironment,
    variables_of,
)
from stacks.constructs import image_context, python_bundle
from stacks.constructs.python_bundle import (
    FEEDS,
    ROWS,
    SPARK,
    STATE,
    PythonBundle,
    digest_of,
    target_of,
)
from stacks.constructs.rooms import FEED_ROOMS, TASK_ROOMS, files_in
from tests.stacks.conftest import ROOT

KERNELS = "lakebed/kernels"
NEVER = (
    "lakebed/backends/faulty",
    "lakebed/backends/memory",
    "lakebed/cli",
    "localcloud",
)
"""No bundle and no image holds these."""

OF_FEEDS = ("lambdas.feeds.take",)
OF_ROWS = (
    "lambdas.batching.submit",
    "lambdas.bulk_import.start",
    "lambdas.history.handle",
    "lambdas.query.answer",
    "lambdas.query.handle",
    "lambdas.tables.apply",
)
CONTAINERS = ("containers.compaction.main", "containers.ingest.main")

CASES = {
    "state": (STATE.rooms, (*NEVER, KERNELS)),
    "rows": (ROWS.rooms, (*NEVER, KERNELS)),
    "spark": (SPARK.rooms, (*NEVER, KERNELS)),
    "take": (FEEDS.rooms, (*NEVER, KERNELS)),
    "tasks": (TASK_ROOMS, NEVER),
    "feeds": (FEED_ROOMS, NEVER),
}
"""Rooms by kind of bundle, and what must not be among them. Images have numba, so they
hold kernels."""

NOT_MISSED = {
    ("lakebed.bootstrap.aws", "lakebed.backends.memory.job_queues"),
    ("lakebed.sorted_files.sorting.engines", "lakebed.kernels.toolchain.presence"),
}
"""Imports of rooms that are not deployed, which never fail there. Queues in memory serve an
instance whose parameter names no queue;
tasks and Spark's driver read no parameter, and a test opens an instance as they do. `engines.py`
catches that there are no kernels."""

STORES = {
    "instance": "dev",
    "bucket": "objects",
    "objects_prefix": "lake",
    "log_table": "log",
    "registry_table": "names",
    "table_metrics": "false",
    "tracker_table": "jobs",
}
URL = "https://sqs.eu-central-1.amazonaws.com/1/queue.fifo"
QUEUES = {
    "compaction_queue_url": URL,
    "commits_queue_url": URL,
    "task_vcpus": "1",
    "task_memory_mib": "4096",
}
OPENED: dict[str, tuple[str, TaskEnvironment | BulkImportEnvironment]] = {
    "spark": ("bulk_import_run", BulkImportEnvironment(**STORES, sources="s3://objects")),
    "compaction": ("task_process", TaskEnvironment(**STORES, **QUEUES)),
    "ingest": (
        "task_process",
        IngestTaskEnvironment(
            **STORES,
            **QUEUES,
            batches_table="batches",
            ingest_queue_url=URL,
            sources="s3://objects",
        ),
    ),
    "feeds": ("task_process", TaskEnvironment(**STORES, **QUEUES)),
}
"""Programs that open an instance by names that they were given."""

OPEN = """
import os
from lakebed.bootstrap.tasks.{module} import opened
from lakebed.config.environments import {kind}, environment_of
opened(environment_of({kind}, os.environ)).close()
"""

COMPILED = (
    "lakebed.parquet_bytes.chunk_metadata",
    "lakebed.parquet_bytes.column_encoding",
    "lakebed.parquet_bytes.decoding",
    "lakebed.parquet_bytes.spool",
    "lakebed.sorted_files.merging.range_merger",
    "lakebed.sorted_files.sorting.compiled_engine",
    "lakebed.sorted_files.sorting.compiled_folding",
    "lakebed.sorted_files.sorting.compiled_merge",
    "lakebed.sorted_files.sorting.gathered_rows",
    "lakebed.sorted_files.writing.encoding_row_groups",
)
"""Modules that import kernels. They run only where `engines.py` found kernels."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    packages = ("containers", "lakebed", "lambdas", "spark_jobs")
    return grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)


def programs(graph: grimp.ImportGraph, kind: str) -> set[str]:
    """Return the modules that a bundle of this kind starts."""
    functions = {m for m in graph.modules if m.startswith("lambdas.") and m.count(".") == 2}
    assert functions >= {*OF_ROWS, *OF_FEEDS}
    return {
        "state": functions - set(OF_ROWS) - set(OF_FEEDS),
        "rows": set(OF_ROWS),
        "spark": {"spark_jobs.main"},
        "take": set(OF_FEEDS),
        "tasks": set(CONTAINERS),
        "feeds": {"containers.feeds.main"},
    }[kind]


def imported(
    graph: grimp.ImportGraph, starts: Iterable[str], absent: tuple[str, ...]
) -> tuple[set[str], set[tuple[str, str]]]:
    """Return what `starts` import, late or at once, and which imports lead to `absent` rooms."""
    found: set[str] = set()
    missed = set()
    waiting = list(starts)
    while waiting:
        module = waiting.pop()
        if module in found:
            continue
        found.add(module)
        package = module.rpartition(".")[0]
        waiting += [package] if package else []
        for other in graph.find_modules_directly_imported_by(module):
            if lies_in(other, absent):
                missed.add((module, other))
            else:
                waiting.append(other)
    return found, missed


def lies_in(module: str, rooms: Iterable[str]) -> bool:
    path = module.replace(".", "/")
    return any(
        room in (f"{path}.py", f"{path}/__init__.py") or f"{path}/".startswith(f"{room}/")
        for room in rooms
    )


@pytest.mark.parametrize("kind", CASES)
def test_rooms_are_those_that_programs_import(graph: grimp.ImportGraph, kind: str) -> None:
    rooms, absent = CASES[kind]
    found, missed = imported(graph, programs(graph, kind), absent)
    ours = {module for module in found if not module.startswith("containers")}
    assert not {module for module in ours if not lies_in(module, rooms)}, "name their rooms"
    needed = [r for r in rooms if r.endswith(".toml") or any(lies_in(m, [r]) for m in ours)]
    assert needed == list(rooms), "needless rooms"
    odd = {pair for pair in missed - NOT_MISSED if pair[0] not in COMPILED}
    assert not odd, "it is not deployed: do without it, or import it late with a reason"


def test_reasons_for_imports_of_what_is_left_out_are_still_needed(
    graph: grimp.ImportGraph,
) -> None:
    missed: set[tuple[str, str]] = set()
    for kind, (_, absent) in CASES.items():
        missed |= imported(graph, programs(graph, kind), absent)[1]
    assert missed >= NOT_MISSED
    assert {module for module, _ in missed} - {module for module, _ in NOT_MISSED} == set(COMPILED)


@pytest.mark.parametrize("kind", CASES)
def test_what_is_for_tests_people_and_numba_is_not_deployed(kind: str) -> None:
    rooms, absent = CASES[kind]
    names = [path.relative_to(ROOT).as_posix() for path in files_in(ROOT, rooms)]
    assert len(names) > 100
    assert not [name for name in names if name.startswith(tuple(f"{one}/" for one in absent))]


@pytest.mark.parametrize("program", OPENED)
def test_a_program_opens_an_instance_with_its_rooms_and_no_others(
    tmp_path: Path, program: str
) -> None:
    rooms = {"spark": SPARK.rooms, "feeds": FEED_ROOMS}.get(program, TASK_ROOMS)
    for path in files_in(ROOT, rooms):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    module, environment = OPENED[program]
    variables = {
        **variables_of(environment),
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "HOME": str(tmp_path),
        "LAKEBED_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": str(tmp_path),
    }
    text = OPEN.format(module=module, kind=type(environment).__name__)
    command = [sys.executable, "-c", text]
    done = subprocess.run(
        command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr


def test_a_bundle_holds_its_rooms_and_packages_and_nothing_else() -> None:
    folder = PythonBundle(STATE, target_of("machine")).folder
    ours = {
        path.relative_to(folder).as_posix()
        for top in ("lakebed", "lambdas", "localcloud", "spark_jobs", "stacks", "tests")
        for path in (folder / top).rglob("*.py")
    }
    wanted = [path for path in files_in(ROOT, STATE.rooms) if path.suffix == ".py"]
    assert ours == {path.relative_to(ROOT).as_posix() for path in wanted}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of every folder that a bundle could take files from."""
    parts = ("containers", "lakebed", "lambdas", "localcloud", "requirements", "spark_jobs")
    ignored = shutil.ignore_patterns("__pycache__")
    for part in parts:
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    return tmp_path


def change(root: Path, *places: str) -> None:
    """Add a line to each module of these folders, and a new module to each folder."""
    for place in places:
        for path in (root / place).rglob("*.py"):
            path.write_text(path.read_text("utf-8") + "CHANGED = 1\n", "utf-8")
        (root / place / "another.py").write_text("CHANGED = 1\n", "utf-8")


@pytest.mark.parametrize(
    "bundle", [STATE, ROWS, FEEDS, SPARK], ids=["state", "rows", "feeds", "spark"]
)
def test_a_change_of_what_is_not_deployed_leaves_digests_as_they_are(
    checkout: Path, bundle: python_bundle.Bundle
) -> None:
    def digest() -> str:
        return digest_of(files_in(checkout, bundle.rooms), root=checkout)

    before = digest()
    assert before == digest_of(files_in(ROOT, bundle.rooms))
    change(checkout, *NEVER, KERNELS)
    assert digest() == before
    change(checkout, "lakebed/statestore")
    assert digest() != before


def test_a_function_stays_as_it_is_when_only_kernels_change(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = PythonBundle(STATE, target_of("machine"))
    monkeypatch.setattr(python_bundle, "ROOT", checkout)
    change(checkout, *NEVER, KERNELS)
    after = PythonBundle(STATE, target_of("machine"))
    assert (after.digest, after.folder) == (before.digest, before.folder)


@pytest.mark.parametrize("kind", ["compaction", "ingest"])
def test_an_image_stays_as_it_is_until_what_its_tasks_run_changes(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(image_context, "ROOT", checkout)
    monkeypatch.setattr(image_context, "CACHE", checkout / "images")
    make = image_context.image_context.__wrapped__
    before = make(kind)
    change(checkout, *NEVER)
    assert make(kind) == before
    change(checkout, KERNELS)
    assert make(kind) != before

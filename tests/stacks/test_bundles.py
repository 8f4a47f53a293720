"""A function starts and works with nothing but its bundle, which fits and is the same anywhere."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import lakebed
from stacks.constructs import python_bundle
from stacks.constructs.python_bundle import FEEDS, ROWS, STATE, Bundle, PythonBundle, target_of
from tests.servers.built_images import python_of_debian, skip_where_images_cannot_be_built
from tests.stacks.conftest import IN_PLACE, ROOT, Synthesize
from tests.stacks.deployments.everything import in_a_users_network
from tests.stacks.test_functions import HANDLERS

ASKED_FOR = (
    "lambdas.feed_tasks.start.handler",
    "lambdas.feeds.push.handler",
    "lambdas.feeds.take.handler",
    "lambdas.history.handle.handler",
    "lambdas.job_events.publish.handler",
    "lambdas.networking.check.handler",
    "lambdas.tables.apply.handler",
)
"""What functions run that only some settings bring."""
OF_ROWS = ("lambdas.feeds.", "lambdas.history.", "lambdas.query.", "lambdas.tables.")
"""Handlers that bring Arrow along when they are imported begin with these."""
MEGABYTES_MAX = 250
"""What Lambda takes of a function, unpacked."""


@pytest.fixture(scope="module")
def assembly(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assembly")
    named = in_a_users_network(tmp_path_factory.mktemp("named"))
    del named["packages"]  # bundles of an instance without wheels are those of others, too
    synthesize(folder, **named, **dict.fromkeys(IN_PLACE, False))
    return folder


def bundles(assembly: Path) -> dict[str, Path]:
    """Return the folder of the code, by handler, as a deployment finds it."""
    found = {}
    for template in assembly.glob("*.template.json"):
        assets = json.loads(template.with_name(f"{template.name[:-14]}.assets.json").read_text())
        for resource in json.loads(template.read_text())["Resources"].values():
            if resource["Type"] == "AWS::Lambda::Function":
                key = resource["Properties"]["Code"]["S3Key"].removesuffix(".zip")
                folder = assets["files"][key]["source"]["path"]
                found[resource["Properties"]["Handler"]] = assembly / folder
    return found


CLEAN = """
import sys
sys.path.insert(0, {folder!r})
import importlib
module = importlib.import_module({module!r})
assert callable(module.handler)
late = {late!r} & set(sys.modules)
assert not late, f"imported at once: {{late}}"
"""


def test_the_lists_name_each_handler_that_an_instance_may_have(everything_folder: Path) -> None:
    assert set(bundles(everything_folder)) == {*HANDLERS, *ASKED_FOR}


@pytest.mark.parametrize("handler", [*HANDLERS, *ASKED_FOR])
def test_a_handler_imports_with_nothing_but_its_bundle(assembly: Path, handler: str) -> None:
    moves_rows = handler.startswith(OF_ROWS)
    program = CLEAN.format(
        folder=str(bundles(assembly)[handler]),
        module=handler.removesuffix(".handler"),
        late={"boto3"} if moves_rows else {"pyarrow", "numpy", "boto3", "pydantic"},
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_bundles_that_nothing_used_for_a_week_go_when_another_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "packages-state-new"
    for name, days in (("state-old", 8), ("state-new", 6), ("packages-state-new", 6)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "code.py").touch()
        then = time.time() - days * 86_400
        os.utime(tmp_path / name, (then, then))
    monkeypatch.setattr(python_bundle, "CACHE", tmp_path)
    monkeypatch.setattr(python_bundle, "_packages", lambda *_: packages)
    made = PythonBundle(STATE, target_of("machine")).folder
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {
        "state-new",
        packages.name,
        made.name,
    }
    os.utime(made, (0, 0))
    assert PythonBundle(STATE, target_of("machine")).folder.stat().st_mtime > 0, "it is in use"


def test_bundles_fit_and_hold_nothing_of_the_machine(assembly: Path) -> None:
    folders = set(bundles(assembly).values())
    assert len(folders) == 3
    for folder in folders:
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) <= MEGABYTES_MAX << 20
        assert not [path for path in files if path.name in {"RECORD", "direct_url.json"}]
        here = str(ROOT).encode()
        assert not [path for path in files if path.suffix == ".pyc" and here in path.read_bytes()]


ANSWERS = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import pydantic
import pyarrow.csv, pyarrow.json
from lakebed.backends.local.job_tracker import SqliteJobTracker
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.table_registry import SqliteTableRegistry
from lakebed.backends.local.transaction_logs import SqliteTransactionLogs
from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.query_answers import answers_over
from lakebed.bootstrap.functions.table_names import catalog_over
from lakebed.bootstrap.functions.table_stores import table_stores
from lakebed.query.run_query import RunQuery
from lakebed.sorted_files.parquet_files import ParquetFiles

lake, own, clock = Path({lake!r}), Path({own!r}), SystemClock()
objects = LocalObjectStore(lake, clock)
stores = table_stores(
    clock=clock,
    rng=system_random(),
    objects=objects,
    logs=SqliteTransactionLogs(lake / "logs", clock),
    registry=SqliteTableRegistry(lake),
    marks=None,
    folder=own,
)
answers = answers_over(
    query=RunQuery(files=ParquetFiles(objects, spill_directory=stores.scratch)),
    find_table=catalog_over(stores).find,
    tracker=SqliteJobTracker(lake / "queues"),
    clock=clock,
    results=LocalObjectStore(own, clock),
    location="location",
)
print(answers.answer({message!r}))
"""


def test_rows_are_read_with_nothing_but_their_bundle(tmp_path: Path) -> None:
    """Kernels are not missed, even where a variable asks for them always."""
    schema = lakebed.schema_of(row_keys={"k": "int64"}, values={"v": "string"})
    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t", schema)
        for start in range(2):
            numbers = range(start, 500, 2)
            table.ingest(pa.table({"k": list(numbers), "v": [f"v{n}" for n in numbers]}))
    program = ANSWERS.format(
        folder=str(PythonBundle(ROWS, target_of("machine")).folder),
        lake=str(tmp_path / "lake"),
        own=str(tmp_path),
        message=b'{"table": "t", "ranges": [{"k": {"min": 6, "max": 9}}]}',
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", program],
        env={**os.environ, "LAKEBED_KERNELS": "always"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [f"v{n}" in done.stdout for n in (5, 6, 7, 8, 9)] == [False, True, True, True, False]


TAGS = {"arm64": ("aarch64-linux-gnu", 183), "x86_64": ("x86_64-linux-gnu", 62)}
"""Of compiled modules, and the processor in the header of each compiled file (`e_machine`)."""
TAGGED = re.compile(r"\.(cpython-\w+|abi3)(?:-([\w-]+))?\.so$")


def foreign(folder: Path, architecture: str, python: str) -> list[str]:
    """Return the compiled files of a bundle that the runtime of functions could not load."""
    tag, machine = TAGS[architecture]
    wanted = f"cpython-{python.replace('.', '')}"
    found = []
    for path in folder.rglob("*.so*"):
        named = TAGGED.search(path.name)
        fits = named is None or named[1] == "abi3" or (named[1], named[2]) == (wanted, tag)
        is_ours = int.from_bytes(path.read_bytes()[18:20], "little") == machine
        if not fits or not is_ours:
            found.append(path.relative_to(folder).as_posix())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("bundle", [STATE, ROWS, FEEDS], ids=lambda bundle: bundle.name)
@pytest.mark.parametrize("architecture", sorted(TAGS))
def test_what_is_compiled_in_a_bundle_is_of_its_runtimes_python(
    bundle: Bundle, architecture: Literal["arm64", "x86_64"]
) -> None:
    target = target_of(architecture)
    folder = PythonBundle(bundle, target).folder
    compiled = [path for path in folder.rglob("*.so") if TAGGED.search(path.name)]
    assert len(compiled) > 3
    assert foreign(folder, architecture, target.python) == []
    other = next(name for name in TAGS if name != architecture)
    assert len(foreign(folder, other, target.python)) >= len(compiled)
    assert foreign(folder, architecture, "3.11")


LOADED = """
import importlib, sys
assert sys.version_info[:2] == {version!r}, sys.version
sys.path.insert(0, {folder!r})
for name in {modules!r}:
    importlib.import_module(name)
"""
PACKAGES = {
    STATE: ("boto3", "obstore", "msgspec", "zstandard", "anycrc", "aws_lambda_powertools"),
    ROWS: ("boto3", "pyarrow.csv", "pyarrow.json", "pyarrow.parquet", "numpy", "pydantic"),
    FEEDS: ("boto3", "fastavro", "google.protobuf", "pyarrow.json", "pyarrow.parquet"),
}
"""What handlers of a bundle import, some of them only when a message comes."""


@contextmanager
def runtimes_python(version: str, folder: Path) -> Iterator[list[str]]:
    """Yields the command of a Python: this machine's, else that of Debian's next release."""
    if python := shutil.which(f"python{version}"):
        yield [python]
        return
    skip_where_images_cannot_be_built()
    with python_of_debian(version, folder) as command:
        yield command


@pytest.mark.slow
@pytest.mark.timeout(1_200)  # on a new machine Debian's packages are fetched
@pytest.mark.parametrize("bundle", [STATE, ROWS, FEEDS], ids=lambda bundle: bundle.name)
def test_handlers_import_under_the_python_of_their_runtime(
    bundle: Bundle, everything_folder: Path
) -> None:
    target = target_of("arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64")
    modules = [
        handler.removesuffix(".handler")
        for handler, folder in bundles(everything_folder).items()
        if folder.name.startswith(f"{bundle.name}-")
    ]
    assert modules
    folder = PythonBundle(bundle, target).folder
    with runtimes_python(target.python, folder) as python:
        for module in modules:
            program = LOADED.format(
                version=tuple(map(int, target.python.split("."))),
                folder=str(folder),
                modules=[module, *PACKAGES[bundle]],
            )
            command = [*python, "-I", "-S", "-B", "-c", program]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{module}: {done.stderr}"

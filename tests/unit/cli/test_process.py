"""The command as a process: how fast it answers, how it stops."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell

COMMAND = [sys.executable, "-c", "from lakebed.cli.main import main; main()"]
EVERY_HELP = [
    ["--help"],
    *([name, "--help"] for name in ("ingest", "query", "run", "compact", "status", "explain")),
    *(["table", name, "--help"] for name in ("create", "list", "describe", "drop")),
    ["explain", "corrupt"],
]


def test_help_loads_neither_pyarrow_nor_numpy() -> None:
    code = (
        "import sys\nfrom lakebed.cli.main import main\n"
        f"for args in {EVERY_HELP}:\n"
        "    try: main(args)\n"
        "    except SystemExit as end: assert not end.code, args\n"
        "sys.exit(bool({'pyarrow', 'numpy', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("args", EVERY_HELP[:-1], ids=" ".join)
def test_help_begins_with_examples(tmp_path: Path, args: list[str]) -> None:
    assert Shell(tmp_path).ok(*args).startswith("Examples:\n  lakebed ")


def test_python_runs_the_package_as_the_command() -> None:
    words = [sys.executable, "-m", "lakebed", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(",")[0]) == (0, "lakebed"), done.stderr


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_a_signal_stops_the_work_between_two_jobs(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    settings = ("--set", "job_files_max=2", "--set", "size_ratio=1")
    shell.ok("table", "create", "t", "--row-key", "id:int64", *settings)
    for job in ("one", "two"):
        shell.ok("ingest", "t", shell.write("rows.parquet", {"id": [1]}), "--job", job)
    args = ["run", "--forever", "--every", "0.1", "--lake", str(shell.lake)]
    running = subprocess.Popen([*COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == b"1 compaction job done\n"
    time.sleep(0.3)
    assert running.poll() is None, "it goes on until it is told to stop"
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=30)
    assert running.returncode == 0, told.decode()
    assert b"stopping" in told


@pytest.mark.parametrize("what", [("query", "t"), ("sql", "select id from t where id >= 0")])
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path, what: tuple[str, str]) -> None:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "t", "--row-key", "id:int64")
    shell.ok("ingest", "t", shell.write("rows.parquet", {"id": range(50_000)}))
    args = [*what, "--json", "--lake", str(shell.lake)]
    writing = subprocess.Popen([*COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writing.stdout is not None
    assert writing.stderr is not None
    assert writing.stdout.readline().startswith(b'{"id":')
    writing.stdout.close()
    told = writing.stderr.read()
    writing.stderr.close()
    assert (writing.wait(30), told) == (0, b"")


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
"""
IMPATIENT = (
    "from lakebed.statestore.table_state import database_lock\n"
    "database_lock.NOTICE_SECONDS = 0.01\n"
    "from lakebed.cli.main import main\nmain()"
)


def test_a_command_says_for_whom_it_waits_and_goes_on_after(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "t", "--row-key", "id:int64")
    rows = shell.write("rows.parquet", {"id": [1]})
    (database,) = (shell.lake / "cache").glob("*.sqlite")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(database)], **pipes) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        command = [sys.executable, "-c", IMPATIENT, "ingest", "t", rows]
        with subprocess.Popen([*command, "--lake", str(shell.lake)], **pipes) as waiting:
            assert waiting.stderr is not None
            told = waiting.stderr.readline().decode()
            _, problems = holder.communicate(b"\n")
            said, _ = waiting.communicate(timeout=60)
    assert told.startswith(f"waiting for {database}: process {holder.pid} (python")
    assert (problems, waiting.returncode) == (b"", 0)
    assert b"1 row in 1 file" in said

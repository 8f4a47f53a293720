"""What people are told while a command works: on a terminal one line, in a log a line a minute."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from click.testing import _NamedTextIOWrapper

import lakebed
from lakebed.cli import progress
from lakebed.cli.progress import COLUMNS_MAX, ProgressLine, progress_text
from lakebed.observe import usage
from tests.unit.cli.programs import Shell
from tests.unit.tables.lakes import SCHEMA, rows


class Terminal(io.StringIO):
    """What a program writes to; a terminal, or not."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


class Seconds:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("done", "total", "seconds", "says"),
    [
        (0, None, 0.0, "read 0 rows"),
        (1_000_000, None, 2.0, "read 1,000,000 rows, 500,000 rows/s"),
        (25, 100, 1.0, "read 25 of 100 rows, 25 %, 25 rows/s, 3 s left"),
        (1, 151, 1.0, "read 1 of 151 rows, 0 %, 1 rows/s, 2 min 30 s left"),
        (100, 100, 4.0, "read 100 of 100 rows, 100 %, 25 rows/s, 0 s left"),
        (0, 0, 1.0, "read 0 of 0 rows, 0 %"),
    ],
)
def test_a_line_tells_share_rate_and_time_left(
    done: int, total: int | None, seconds: float, says: str
) -> None:
    assert progress_text("read", done, total, seconds) == says


def test_a_terminal_has_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, seconds = Terminal(is_terminal=True), Seconds()
    monkeypatch.setattr(sys, "stderr", screen)
    with ProgressLine(clock=seconds) as line:
        for n in range(1, 4):
            seconds.now += 1
            line.count("written", n * 10, 30)
        line.show("x" * 500)
    shown = screen.getvalue().split("\r\x1b[K")
    assert shown[3] == "written 30 of 30 rows, 100 %, 15 rows/s, 0 s left"
    assert len(shown[4]) == COLUMNS_MAX
    assert shown[5] == ""
    assert "\n" not in screen.getvalue()


def test_a_log_has_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    log, seconds = Terminal(is_terminal=False), Seconds()
    monkeypatch.setattr(sys, "stderr", log)
    with ProgressLine(clock=seconds) as line:
        for _ in range(150):
            seconds.now += 1
            line.count("read", round(seconds.now))
    assert len(log.getvalue().splitlines()) == 2
    assert log.getvalue().startswith("read 60 rows, ")


def test_who_is_silent_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", screen)
    with ProgressLine(silent=True) as line:
        line.show("x")
    assert screen.getvalue() == ""


def test_who_counts_on_after_the_end_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", screen)
    with ProgressLine() as line:
        line.count("read", 1)
    line.count("read", 2)
    assert screen.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["sql", "select n, count(*) from t group by 1"], "read 300 rows"),
        (["count", "t", "--where", "n >= 0"], "counted 300 rows"),
        (["query", "t", "--count", "--where", "n >= 0"], "counted 300 rows"),
    ],
)
def test_a_question_tells_how_much_it_has_read(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: list[str], says: str
) -> None:
    with lakebed.connect(shell.lake) as lake:
        lake.create_table("t", SCHEMA).ingest(rows([f"{n:04d}" for n in range(300)]))
    told: list[str] = []
    monkeypatch.setattr(
        ProgressLine, "show", lambda line, text: told.append(text) if line._on else None
    )
    shell.ok(*command)
    assert any(says in one for one in told)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said while a command works, each byte that is read at once."""
    found: list[str] = []
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_READS", 0)
    monkeypatch.setattr(
        ProgressLine, "show", lambda line, text: found.append(text) if line._on else None
    )
    return found


@pytest.mark.parametrize(
    "command",
    [
        ["query", "t", "--where", "v = -1"],
        ["query", "t", "--where", "v = -1", "--limit", "3"],
        ["query", "t", "--where", "v = -1", "--output", "{folder}/none.csv"],
        ["query", "t", "--where", "v = -1", "--explain"],
        ["query", "t", "--where", "v = -1", "--count"],
        ["count", "t", "--where", "v = -1"],
        ["sql", "select * from t where v = -1"],
        ["sql", "select * from t where v = -1", "--explain"],
        ["delete", "t", "--where", "v = -1", "--dry-run"],
        ["delete", "t", "--where", "v = -1", "--yes"],
        ["delete", "t", "--where", "v = 7", "--yes"],
    ],
)
@pytest.mark.parametrize("is_terminal", [False, True])
def test_what_finds_no_row_tells_how_much_it_has_read(
    shell: Shell,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    *,
    is_terminal: bool,
) -> None:
    schema = lakebed.schema_of(row_keys={"id": "string"}, values={"v": "int64"})
    with lakebed.connect(shell.lake) as lake:
        ids = [f"{n:06}" for n in range(20_000)]
        lake.create_table("t", schema).ingest(pa.table({"id": ids, "v": range(20_000)}))
    monkeypatch.setattr(_NamedTextIOWrapper, "isatty", lambda _: is_terminal)
    shell.ok(*(word.format(folder=shell.folder) for word in command))
    assert any(line.endswith("MiB read") for line in told)
    told.clear()
    shell.run(*(word.format(folder=shell.folder) for word in command), "--json")
    assert not told


def test_rows_on_a_terminal_end_the_line(
    shell: Shell, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with lakebed.connect(shell.lake) as lake:
        lake.create_table("t", SCHEMA).ingest(rows([f"{n:04d}" for n in range(300)]))
    monkeypatch.setattr(_NamedTextIOWrapper, "isatty", lambda _: True)
    shown = shell.ok("query", "t", "--limit", "300")
    assert all(f"{n:04d}" in shown for n in range(300))
    assert told
    assert not any("written" in line for line in told)


def test_bytes_are_told_beside_rows_each_half_second_by_whatever_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen, seconds = Terminal(is_terminal=True), Seconds()
    monkeypatch.setattr(sys, "stderr", screen)
    with ProgressLine(clock=seconds).reading() as line:
        usage.count("s3_get_bytes", 1 << 20)
        assert screen.getvalue() == ""
        seconds.now += 0.5
        with ThreadPoolExecutor(1) as threads:
            threads.submit(usage.count, "local_get_bytes", 1 << 20).result()
        usage.count("s3_put_bytes", 1 << 20)
        line.count("counted", 7)
    usage.count("s3_get_bytes", 1 << 20)
    assert screen.getvalue().split("\r\x1b[K")[1:] == [
        "2.0 MiB read",
        "counted 7 rows, 2.0 MiB read",
        "",
    ]


def test_an_ingest_tells_what_it_has_read_and_then_what_it_has_written(shell: Shell) -> None:
    read, written = list[int](), list[tuple[int, int]]()
    with lakebed.connect(shell.lake) as lake:
        table = lake.create_table(
            "t", SCHEMA, split_points=["5"], settings={"shared_file_rows_max": 1}
        )
        table.ingest(
            rows([f"{n:04d}" for n in range(10_000)]),
            on_progress=read.append,
            written=lambda done, total: written.append((done, total)),
        )
    assert read[-1] == 10_000
    assert written == sorted(written)
    assert written[-1] == (10_000, 10_000)


def test_a_compaction_tells_how_many_jobs_are_left(shell: Shell) -> None:
    lines: list[str] = []
    settings = {"compaction_strategy": "basic", "job_files_max": 2, "leaf_jobs_max": 9}
    with lakebed.connect(shell.lake) as lake:
        table = lake.create_table("t", SCHEMA, settings=settings)
        for n in range(4):
            table.ingest(rows([str(n)]))
        lake.run(on_progress=lines.append)
    assert lines[:2] == ["1 jobs merged; 1 of table t left", "2 jobs merged; 0 of table t left"]


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("progress"))

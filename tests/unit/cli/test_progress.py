"""What people are told while a command works: on a terminal one line, in a log a line a minute."""

import io
import sys

import pytest

import lakebed
from lakebed.cli.progress import COLUMNS_MAX, ProgressLine, progress_text
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

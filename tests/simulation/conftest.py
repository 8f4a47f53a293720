"""One table of faults at the end, whatever the number of workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from lakebed.errors import LakebedError
from lakebed.sorted_files.reading import read_ahead
from tests.simulation.tally import Tally

KEY = pytest.StashKey[Tally]()


class InTurn:
    """An executor that works at once: in a world only one goes on at a time, and a thread that the
    world did not start cannot be told to wait."""

    def __init__(self, *_: object) -> None:
        """Start no threads."""

    def submit(self, work: Callable[..., Any], *given: object) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*given))
        except LakebedError as error:
            done.set_exception(error)
        return done

    def shutdown(self, *, wait: bool) -> None:
        """There is nothing to end."""


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "ThreadPoolExecutor", InTurn)


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Tally:
    return pytestconfig.stash.setdefault(KEY, Tally())


@pytest.fixture
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run, whatever the number of workers."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "simulated"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    own = session.config.stash.get(KEY, None)
    if output is not None and own is not None:
        output["lakebed_worlds"] = own.worlds
        output["lakebed_counts"] = dict(own.counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ANN401 - xdist's, if it is there
    output = getattr(node, "workeroutput", {})
    if "lakebed_counts" in output:
        total = node.config.stash.setdefault(KEY, Tally())
        total.merge(output["lakebed_worlds"], output["lakebed_counts"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    config = terminalreporter.config
    total = config.stash.get(KEY, None)
    if total is not None and total.worlds:
        terminalreporter.section("simulated faults")
        terminalreporter.write_line(total.table())

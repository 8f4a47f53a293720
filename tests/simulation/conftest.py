"""One table of faults at the end, whatever the number of workers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.tally import Tally

KEY = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Tally:
    return pytestconfig.stash.setdefault(KEY, Tally())


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

"""What processes say of themselves comes back to anyone, as long as they may live."""

from typing import Any

import msgspec
import pytest

from lakebed.backends.local.processes import LockedProcessReports
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.processes import SILENT_SECONDS, ProcessReport, ProcessReports
from tests.contracts.conftest import ProcessesOf

START = 1_700_000_000 * MICROS_PER_SECOND


def after(seconds: float) -> Micros:
    return Micros(START + int(seconds * MICROS_PER_SECOND))


def report(
    process: str,
    at: float = 0,
    **more: Any,  # noqa: ANN401 - fields of a report
) -> ProcessReport:
    fields: dict[str, Any] = {"program": "lakebed run", "release": "0.3.0", "reads": {"entry": 6}}
    return ProcessReport(process=process, started=after(0), at=after(at), **fields | more)


def said(view: ProcessReports, at: float) -> list[ProcessReport]:
    """Return the reports that were made, without what is only known of a lock."""
    return [one for one in view.living(after(at)) if one.release]


def test_a_report_comes_back_whole_to_another_process(processes: ProcessesOf) -> None:
    mine, other = processes(), processes()
    whole = report("p", program="function dev-garbage-handle", release="0.4.0", reads={"x": 9})
    mine.report(whole)
    assert said(other, 1) == [whole]


def test_each_process_has_its_newest_report_by_name(processes: ProcessesOf) -> None:
    mine, other = processes(), processes()
    for view, one in ((mine, report("b", 1)), (other, report("a", 2)), (mine, report("b", 5))):
        view.report(one)
    assert said(processes(), 6) == [report("a", 2), report("b", 5)]


def test_a_process_that_ended_does_not_live(processes: ProcessesOf) -> None:
    mine = processes()
    mine.report(report("p", 1))
    mine.report(report("p", 2, ended=True))
    assert said(processes(), 3) == []


def test_silence_is_death_where_no_lock_says_otherwise(processes: ProcessesOf) -> None:
    mine = processes()
    mine.report(report("p", 0))
    assert said(processes(), SILENT_SECONDS) == [report("p", 0)]
    late = said(processes(), SILENT_SECONDS + 1)
    assert late == ([report("p", 0)] if isinstance(mine, LockedProcessReports) else [])


def test_a_report_that_is_late_does_not_hide_a_newer_one(processes: ProcessesOf) -> None:
    mine = processes()
    if isinstance(mine, LockedProcessReports):
        pytest.skip("a process writes into its own file, in order")
    mine.report(report("p", 5, ended=True))
    mine.report(report("p", 4))
    assert said(processes(), 6) == []


def test_more_processes_than_a_page_holds_are_found(processes: ProcessesOf) -> None:
    if isinstance(processes(), LockedProcessReports):
        pytest.skip("each of them has a file of its own")
    view, long = processes(), "on a machine with a long name " * 400
    for n in range(100):  # 1.2 MB: a page of DynamoDB has one
        view.report(report(f"p{n:03}", program=long))
    assert len(said(view, 1)) == 100


def test_fields_of_newer_releases_are_not_read() -> None:
    from lakebed.ports.processes import encode_process, process_in

    known = msgspec.to_builtins(report("p"))
    assert process_in(msgspec.msgpack.encode(known | {"of a newer release": 1})) == report("p")
    assert process_in(encode_process(report("p"))[:-1]) is None
    assert process_in(b"") is None

"""A process reports when it is due, by a thread while it works, and that it ended."""

import threading

from lakebed.backends.memory import MemoryProcessReports, VirtualClock
from lakebed.errors import UnavailableError
from lakebed.model.names import Micros
from lakebed.ports.processes import REPORT_SECONDS, SILENT_SECONDS, ProcessReport
from lakebed.upgrades.release_reports import ReleaseReports, ReportMeanwhile


class Heard(MemoryProcessReports):
    """Keeps each report. is_busy: refuses them."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[ProcessReport] = []
        self.came = threading.Event()
        self.is_busy = False

    def report(self, report: ProcessReport) -> None:
        self.heard.append(report)
        self.came.set()
        if self.is_busy:
            raise UnavailableError("the tracker is busy")
        super().report(report)


class Wrong(VirtualClock):
    ahead_seconds = 0

    def now(self) -> Micros:
        return Micros(super().now() + self.ahead_seconds * 1_000_000)


def reports_to(heard: Heard, clock: VirtualClock) -> ReleaseReports:
    return ReleaseReports(heard, clock=clock, process="p", program="garbage on x")


def test_several_reports_may_be_lost_before_a_process_seems_dead() -> None:
    assert REPORT_SECONDS * 5 < SILENT_SECONDS


def test_a_process_reports_once_for_much_work_and_again_when_it_is_due() -> None:
    heard, clock = Heard(), VirtualClock()
    reports = reports_to(heard, clock)
    began = clock.now()
    for _ in range(5):
        reports.report_if_due()
        clock.advance(REPORT_SECONDS / 10)
    assert len(heard.heard) == 1
    clock.advance(REPORT_SECONDS / 2)
    reports.report_if_due()
    first, second = heard.heard
    assert (first.started, second.started) == (began, began)
    assert second.at == Micros(first.at + REPORT_SECONDS * 1_000_000)


def test_a_clock_that_was_set_back_does_not_silence_a_process() -> None:
    heard, clock = Heard(), Wrong()
    clock.ahead_seconds = 7_200
    reports = reports_to(heard, clock)
    reports.report_if_due()
    clock.ahead_seconds = 0
    reports.report_if_due()
    assert len(heard.heard) == 2


def test_work_goes_on_when_no_report_can_be_written() -> None:
    heard, clock = Heard(), VirtualClock()
    heard.is_busy = True
    reports = reports_to(heard, clock)
    reports.report_if_due()
    reports.report_if_due()
    reports.end()
    assert [one.ended for one in heard.heard] == [False, True]


def test_the_end_is_said_once_and_only_by_who_was_heard() -> None:
    heard, clock = Heard(), VirtualClock()
    reports = reports_to(heard, clock)
    reports.end()
    assert heard.heard == []
    reports.report()
    reports.end()
    reports.end()
    assert [one.ended for one in heard.heard] == [False, True]
    assert heard.living(clock.now()) == []


def test_a_thread_reports_while_a_process_works_on_one_thing() -> None:
    heard, clock = Heard(), VirtualClock()
    meanwhile = ReportMeanwhile(reports_to(heard, clock), first_seconds=0.0)
    assert heard.came.wait(60)
    meanwhile.close()
    meanwhile.close()
    assert [one.ended for one in heard.heard] == [False, True]


def test_who_ends_soon_is_not_worth_a_report() -> None:
    heard, clock = Heard(), VirtualClock()
    ReportMeanwhile(reports_to(heard, clock), first_seconds=3_600.0).close()
    assert heard.heard == []

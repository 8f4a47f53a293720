"""Who is heard lives; what the living say adds up."""

import msgspec

from lakebed.backends.memory.clock import VirtualClock
from lakebed.feeds.operating.worker_reports import listen, work_on
from lakebed.feeds.worker import FeedReport
from lakebed.model.feeds.tallies import Tally
from lakebed.ports.leases import Leases, WorkerBeat, WorkerId


class Beats(Leases):
    """Beats that rise by what each worker does at each look."""

    def __init__(self, reports: dict[str, bytes], steps: dict[str, int]) -> None:
        self._reports = reports
        self._steps = steps
        self.looks = 0

    def workers(self) -> list[WorkerBeat]:
        self.looks += 1
        return [
            WorkerBeat(WorkerId(name), 7 + self._steps[name] * self.looks, report)
            for name, report in self._reports.items()
        ]


def said(**changes: object) -> bytes:
    report = FeedReport(
        kind="connection", name="eu", version=3, splits=2, behind=10, waiting=5, commits=1,
        tally=Tally(read=4, stored=4),
    )  # fmt: skip
    return msgspec.json.encode([msgspec.structs.replace(report, **changes)])


def test_a_worker_that_does_not_beat_while_we_listen_is_silent_and_counts_for_nothing() -> None:
    beats = Beats({"ann": said(), "ben": said(splits=7)}, {"ann": 1, "ben": 0})
    heard = listen(beats, VirtualClock(), 4.0)
    assert [(one.worker, one.lives) for one in heard] == [("ann", True), ("ben", False)]
    work = work_on(heard, "connection", "eu")
    assert (work.workers, work.splits, work.tally.read) == (("ann",), 2, 4)
    assert work_on(heard, "feed", "eu").workers == ()


def test_of_several_workers_the_greatest_lag_counts_and_their_loads_are_added() -> None:
    first, second = said(lag_seconds=3.0, load=1.5), said(lag_seconds=7.5, load=0.75, spooled=8)
    beats = Beats({"ann": first, "ben": second}, {"ann": 1, "ben": 1})
    work = work_on(listen(beats, VirtualClock(), 4.0), "connection", "eu")
    assert (work.lag_seconds, work.load, work.congested_by) == (7.5, 2.25, "")
    assert work.spooled == 8
    first = said(congested_by="discard", spooled=1)
    congested = Beats({"ann": first, "ben": second}, {"ann": 1, "ben": 1})
    work = work_on(listen(congested, VirtualClock(), 4.0), "connection", "eu")
    assert work.congested_by == "discard"
    assert work.spooled == 9


def test_listening_ends_when_all_were_heard() -> None:
    beats = Beats({"ann": said(failing="unavailable: x"), "ben": said()}, {"ann": 1, "ben": 1})
    clock = VirtualClock()
    before = clock.monotonic()
    work = work_on(listen(beats, clock, 4.0), "connection", "eu")
    assert clock.monotonic() == before
    assert (work.splits, work.behind, work.waiting, work.commits) == (4, 20, 10, 2)
    assert work.failing == "unavailable: x"


def test_what_a_newer_release_says_otherwise_hides_no_worker() -> None:
    for words in (b"", b"{}", b"\xff", b'[{"kind": 3}]'):
        (heard,) = listen(Beats({"ann": words}, {"ann": 1}), VirtualClock(), 1.0)
        assert (heard.lives, heard.reports) == (True, ())
    newer = said()[:-2] + b', "more": 1}]'
    (heard,) = listen(Beats({"ann": newer}, {"ann": 1}), VirtualClock(), 1.0)
    assert len(heard.reports) == 1

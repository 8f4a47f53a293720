"""A gate is raised by `finish` alone, and only when no older process may live."""

import pytest

from lakebed.backends.memory import MemoryProcessReports, MemoryTableRegistry, VirtualClock
from lakebed.errors import (
    LakebedError,
    NewerFormatError,
    OlderProcessError,
    ReleaseSkippedError,
    UnavailableError,
)
from lakebed.model.formats import NEWEST, Formats
from lakebed.model.releases import BEFORE, RELEASES, THIS, Release
from lakebed.ports.processes import SILENT_SECONDS, ProcessReport
from lakebed.upgrades.release_reports import ReleaseReports
from lakebed.upgrades.upgrade_lake import UpgradeLake


class Fleet:
    """A lake of the release before, and its processes."""

    def __init__(self, deployed: str | None = None) -> None:
        self.clock = VirtualClock()
        self.registry = MemoryTableRegistry()
        self.registry.raise_formats(BEFORE.formats)
        self.processes = MemoryProcessReports()
        self.upgrade = UpgradeLake(
            registry=self.registry, processes=self.processes, clock=self.clock, deployed=deployed
        )

    def reports(self, name: str, release: Release, *, ended: bool = False) -> None:
        now = self.clock.now()
        reads = {"entry": release.formats.entry, "state": release.formats.state}
        self.processes.report(
            ProcessReport(
                process=name,
                program=name,
                release=release.name,
                reads=reads,
                started=now,
                at=now,
                ended=ended,
            )
        )

    def is_refused(self, kind: type[LakebedError]) -> None:
        """`finish` is, and the gate stays."""
        with pytest.raises(kind):
            self.upgrade.finish()
        assert self.registry.formats() == BEFORE.formats


def test_two_releases_side_by_side_until_the_older_one_is_gone() -> None:
    fleet = Fleet()
    fleet.reports("old task", BEFORE)
    fleet.reports("new task", THIS)
    assert [one.process for one in fleet.upgrade.status().older()] == ["old task"]
    fleet.is_refused(OlderProcessError)
    fleet.clock.advance(60)
    fleet.reports("old task", BEFORE, ended=True)
    assert fleet.upgrade.finish().is_finished()
    assert fleet.registry.formats() == NEWEST
    assert fleet.upgrade.finish().is_finished(), "again changes nothing"
    assert fleet.upgrade.plan().steps == []


def test_one_that_died_without_a_word_holds_it_up_for_an_hour_of_silence() -> None:
    fleet = Fleet()
    fleet.reports("old task", BEFORE)
    fleet.clock.advance(SILENT_SECONDS - 1)
    fleet.is_refused(OlderProcessError)
    fleet.clock.advance(2)
    assert fleet.upgrade.finish().is_finished()


def test_a_clock_that_is_ahead_counts_for_longer() -> None:
    fleet = Fleet()
    fleet.clock.advance(600)
    fleet.reports("old task, ten minutes ahead", BEFORE)
    fleet.clock.advance(SILENT_SECONDS - 600)
    fleet.is_refused(OlderProcessError)


def test_nothing_is_raised_on_an_instance_that_an_older_release_deployed() -> None:
    Fleet(deployed=BEFORE.name).is_refused(OlderProcessError)
    Fleet(deployed="").is_refused(OlderProcessError)
    assert Fleet(deployed=THIS.name).upgrade.finish().is_finished()


def test_nothing_is_raised_where_a_release_is_skipped() -> None:
    fleet = Fleet()
    fleet.reports("forgotten task", RELEASES[-3])
    fleet.is_refused(ReleaseSkippedError)
    Fleet(deployed=RELEASES[-3].name).is_refused(ReleaseSkippedError)


def test_nothing_is_raised_by_a_program_that_is_older_than_the_lake() -> None:
    Fleet(deployed="99.0").is_refused(NewerFormatError)
    fleet = Fleet()
    newer = Formats(entry=NEWEST.entry + 1, state=BEFORE.formats.state)
    fleet.registry.raise_formats(newer)
    with pytest.raises(NewerFormatError):
        fleet.upgrade.finish()
    assert fleet.registry.formats() == newer


def test_nothing_is_raised_when_it_cannot_be_known_who_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def busy(_: object) -> list[ProcessReport]:
        raise UnavailableError("the tracker is busy")

    fleet = Fleet()
    monkeypatch.setattr(fleet.processes, "living", busy)
    fleet.is_refused(UnavailableError)


def test_status_and_plan_change_nothing() -> None:
    fleet = Fleet(deployed=THIS.name)
    assert fleet.upgrade.status().gate == BEFORE.name
    assert len(fleet.upgrade.plan().steps) == 1
    assert fleet.registry.formats() == BEFORE.formats


def test_what_this_program_reports_of_itself_is_no_obstacle() -> None:
    fleet = Fleet()
    ReleaseReports(fleet.processes, clock=fleet.clock, process="me", program="me").report()
    (mine,) = fleet.upgrade.status().processes
    assert (mine.release, mine.reads) == (THIS.name, {"entry": 6, "state": 4})
    assert fleet.upgrade.finish().is_finished()

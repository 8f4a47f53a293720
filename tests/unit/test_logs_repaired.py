"""A log that has lost entries goes on: rebuilt from what proves them, or with the loss told."""

import base64
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import lakebed
from lakebed.backends.local.transaction_logs import SqliteTransactionLog
from lakebed.errors import CorruptError, GenerationError, InvalidError
from lakebed.inspection.fsck import FsckReport
from lakebed.inspection.log_repair import LogRepairAction
from lakebed.inspection.lost_history import KeepLost
from lakebed.inspection.repair import RepairPlan
from lakebed.model.formats import Formats
from lakebed.model.names import CommitId, digest_of
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.table_changes import ChangeSettings
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.snapshots import Snapshots
from tests.unit.cli.programs import Shell
from tests.unit.test_logs_rolled_back import (
    DAMAGES,
    Damage,
    cut_the_wal,
    delete_the_log,
    given_copy,
    ids_of,
    log_files,
    restore_yesterday,
    rows,
)
from tests.unit.test_logs_rolled_back import lake as lake  # noqa: PLC0414 - the fixture

pytestmark = pytest.mark.usefixtures("lake")


Effect = tuple[type, str, int]
EFFECTS: list[Effect] = [
    (KeepLost, "run", 1),
    (Snapshots, "write", 1),
    (SqliteTransactionLog, "resume", 1),
    (Snapshots, "write", 2),
]
"""Of a repair, in order: whose, its name, and for which time it comes."""


class KilledError(BaseException):
    """The process ends here."""


def nothing(_root: Path, _yesterday: Path) -> None:
    """Leave the log as it is."""


def lose_entries(root: Path, *numbers: int) -> None:
    log = next(path for path in log_files(root) if path.suffix == ".sqlite")
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.executemany("DELETE FROM entry WHERE number = ?", [(n,) for n in numbers])


def gap_without_cache(tmp_path: Path) -> Path:
    """Return a copy of which entry 4 is lost, with entry 5 behind the gap, and no cache."""
    root = given_copy(tmp_path, nothing)
    lose_entries(root, 4)
    shutil.rmtree(root / "cache")
    return root


def damage_of(report: FsckReport) -> list[str]:
    return [one.code for one in report.findings if one.severity == "damage"]


def planned(root: Path, log: LogRepairAction | None = None) -> RepairPlan:
    with lakebed.connect(root) as lake:
        return lake.plan_repair(lake.fsck("t"), log=log)


def repaired(root: Path, log: LogRepairAction) -> RepairPlan:
    """Repair a lake's log, and look that nothing is damaged then. Returns what was planned."""
    with lakebed.connect(root) as lake:
        plan = lake.plan_repair(lake.fsck("t"), log=log)
        (done,) = lake.repair(plan)
        assert not done.problem
    with lakebed.connect(root) as lake:
        assert not damage_of(lake.fsck(deep=True))
        assert "object-stray" not in {one.code for one in lake.fsck().findings}
    return plan


def goes_on(root: Path, ids: list[int]) -> None:
    """Look that a table has these rows, takes more, and has them without a cache, too."""
    with lakebed.connect(root) as lake:
        assert ids_of(lake.table("t")) == ids
        lake.table("t").ingest(rows(99))
        assert ids_of(lake.table("t")) == [*ids, 99]
    shutil.rmtree(root / "cache")
    with lakebed.connect(root) as lake:
        assert ids_of(lake.table("t")) == [*ids, 99]
        assert not damage_of(lake.fsck(deep=True))


def snapshot_of(root: Path) -> None:
    """Write down the newest state of a whole lake."""
    with lakebed.connect(root) as lake:
        app, opened = lake._app, lake.table("t")._opened
        with opened.head.reading() as state:
            app.heads.snapshots(opened.id).write(state)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("known_by", ["cache", "snapshot"])
def test_the_tail_of_a_log_is_rebuilt_from_what_proves_it(
    tmp_path: Path, damage: Damage, known_by: str
) -> None:
    root = given_copy(tmp_path, nothing)
    if known_by == "snapshot":
        snapshot_of(root)
        shutil.rmtree(root / "cache")
    damage_here = restore_yesterday if damage is cut_the_wal else damage
    damage_here(root, tmp_path / "yesterday")
    plan = repaired(root, "rebuild-log")
    assert plan.steps[0].lost is not None
    assert plan.steps[0].lost.commits == ()
    goes_on(root, [1, 2, 3, 4])


def test_a_rebuilt_tail_knows_which_jobs_are_done(tmp_path: Path, lake: lakebed.Lake) -> None:
    lake.table("t").ingest(rows(5), job="five")
    root = given_copy(tmp_path, restore_yesterday)
    repaired(root, "rebuild-log")
    with lakebed.connect(root) as copy:
        copy.table("t").ingest(rows(5), job="five")
        assert ids_of(copy.table("t")) == [1, 2, 3, 4, 5]


def test_a_gap_is_closed_by_a_cache_that_knows_its_entries(tmp_path: Path) -> None:
    root = given_copy(tmp_path, nothing)
    lose_entries(root, 4)
    repaired(root, "rebuild-log")
    goes_on(root, [1, 2, 3, 4])


@pytest.mark.parametrize("damage", [cut_the_wal, restore_yesterday])
def test_a_loss_is_told_and_what_is_taken_out_is_kept(tmp_path: Path, damage: Damage) -> None:
    root = given_copy(tmp_path, damage)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(root / "cache", elsewhere)
    with closing(sqlite3.connect(next(elsewhere.glob("*.sqlite")))) as cache:
        known = dict(cache.execute("SELECT number, id FROM commits"))
    (step,) = repaired(root, "accept-loss").steps
    assert step.lost is not None
    ends = 4 if damage is cut_the_wal else 3
    assert {one.number: one.id for one in step.lost.commits} == {
        number: id_ for number, id_ in known.items() if number > ends
    }
    assert len(step.lost.files) == 5 - ends
    (kept,) = (root / "objects" / "lost").glob("*/*")
    assert json.loads((kept / "lost.json").read_bytes())["commits"][0]["number"] == ends + 1
    assert {path.name[:16] for path in kept.iterdir()} >= {f"{5:016x}", "entries.jsonl"}
    shutil.rmtree(root / "cache")
    shutil.copytree(elsewhere, root / "cache")  # a machine that knew what is lost
    goes_on(root, [1, 2, 3, 4][: ends - 1])


def test_the_log_goes_on_from_a_gap_and_takes_what_is_sent_again(tmp_path: Path) -> None:
    root = gap_without_cache(tmp_path)
    (step,) = repaired(root, "accept-loss").steps
    assert step.lost is not None
    assert [one.number for one in step.lost.commits] == [5]
    assert step.lost.commits[0].at is not None
    goes_on(root, [1, 2])


def test_an_entry_that_cannot_be_read_ends_what_the_log_leads_to(tmp_path: Path) -> None:
    root = given_copy(tmp_path, nothing)
    shutil.rmtree(root / "cache")
    log = next(path for path in log_files(root) if path.suffix == ".sqlite")
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.execute("UPDATE entry SET body = x'00' WHERE number = 4")
    (step,) = repaired(root, "accept-loss").steps
    assert step.lost is not None
    assert [one.number for one in step.lost.commits] == [4, 5]
    goes_on(root, [1, 2])


def test_what_was_planned_on_the_lost_part_is_refused(tmp_path: Path) -> None:
    root = given_copy(tmp_path, restore_yesterday)
    with lakebed.connect(root) as copy:
        (id_,) = {entry.id for entry in copy._app.registry.list()}
        with copy._app.heads(id_).holding() as state:
            base, generation = state.head().number, state.head().generation
    repaired(root, "accept-loss")
    with lakebed.connect(root) as copy:
        change = ChangeSettings({"size_ratio": 3})
        planned_before = Transaction(
            CommitId("late"), digest_of(b"late"), base, generation, (change,)
        )
        with pytest.raises(GenerationError):
            copy._app.heads(id_).commit(planned_before)


def other_history(tmp_path: Path) -> Path:
    """Return a lake whose log was restored and has gone on, beside a cache of before."""
    root = given_copy(tmp_path, restore_yesterday)
    shutil.move(root / "cache", tmp_path / "kept")
    with lakebed.connect(root) as copy:
        copy.table("t").ingest(rows(13))
    shutil.rmtree(root / "cache")
    shutil.move(tmp_path / "kept", root / "cache")
    return root


def test_of_two_histories_the_log_is_taken_and_never_the_cache(tmp_path: Path) -> None:
    root = other_history(tmp_path)
    with pytest.raises(InvalidError, match="not known to continue the log"):
        planned(root, "rebuild-log")
    (step,) = repaired(root, "accept-loss").steps
    assert step.lost is not None
    assert [one.number for one in step.lost.commits] == [4, 5]
    goes_on(root, [1, 2, 13])


def test_a_log_that_is_missing_is_not_a_loss_to_accept(tmp_path: Path) -> None:
    root = given_copy(tmp_path, delete_the_log)
    with pytest.raises(InvalidError, match="no entry of the log is left"):
        planned(root, "accept-loss")
    shutil.rmtree(root / "cache")
    with lakebed.connect(root) as copy, pytest.raises(InvalidError, match="no log has lost"):
        copy.plan_repair(copy.fsck("t"), log="rebuild-log")


def test_a_state_that_does_not_know_all_that_is_in_sight_is_not_enough(tmp_path: Path) -> None:
    root = given_copy(tmp_path, nothing)
    kept = tmp_path / "kept"
    shutil.copytree(root / "cache", kept)
    with lakebed.connect(root) as copy:
        for first in (5, 6, 7):
            copy.table("t").ingest(rows(first))
    shutil.rmtree(root / "cache")
    shutil.move(kept, root / "cache")
    lose_entries(root, 4, 5, 6)
    with pytest.raises(InvalidError, match="lacks some of the commits"):
        planned(root, "rebuild-log")


def test_entries_that_follow_the_state_are_taken_up(tmp_path: Path) -> None:
    root = given_copy(tmp_path, nothing)
    kept = tmp_path / "kept"
    shutil.copytree(root / "cache", kept)
    with lakebed.connect(root) as copy:
        for first in (5, 6):
            copy.table("t").ingest(rows(first))
    shutil.rmtree(root / "cache")
    shutil.move(kept, root / "cache")
    lose_entries(root, 4, 5)
    repaired(root, "rebuild-log")
    goes_on(root, [1, 2, 3, 4, 5, 6])


def test_a_plain_repair_names_the_ways_that_are_open_and_takes_none(tmp_path: Path) -> None:
    for number, (make, ways) in enumerate([
        (lambda path: given_copy(path, restore_yesterday), ["rebuild-log", "accept-loss"]),
        (lambda path: given_copy(path, delete_the_log), ["rebuild-log"]),
        (gap_without_cache, ["accept-loss"]),
        (other_history, ["accept-loss"]),
    ]):  # fmt: skip
        root = make(tmp_path)
        plan = planned(root)
        assert not [step for step in plan.steps if step.about == "t"]
        why = plan.left[0].why
        named = [way for way in ("rebuild-log", "accept-loss") if f"t --repair --{way}`" in why]
        assert named == ways, number
        shutil.rmtree(root)


@pytest.mark.parametrize("action", ["rebuild-log", "accept-loss"])
@pytest.mark.parametrize("effect", EFFECTS, ids=str)
@pytest.mark.parametrize("is_done", [False, True])
def test_a_repair_that_was_killed_is_finished_by_the_next(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    action: LogRepairAction,
    effect: Effect,
    *,
    is_done: bool,
) -> None:
    root = given_copy(tmp_path, restore_yesterday)
    kill_at(monkeypatch, effect, is_done=is_done)
    with lakebed.connect(root) as copy, pytest.raises(KilledError):
        copy.repair(copy.plan_repair(copy.fsck("t"), log=action))
    monkeypatch.undo()
    with lakebed.connect(root) as copy:
        report = copy.fsck("t")
        if "log-behind" in damage_of(report):
            plan = copy.plan_repair(report, log=action)
            lost = plan.steps[0].lost
            assert lost is not None
            assert len(lost.commits) == (0 if action == "rebuild-log" else 2)
        else:
            plan = copy.plan_repair(report)
        assert not [one.problem for one in copy.repair(plan) if one.problem]
        assert not damage_of(copy.fsck(deep=True))
    goes_on(root, [1, 2, 3, 4] if action == "rebuild-log" else [1, 2])


def kill_at(monkeypatch: pytest.MonkeyPatch, effect: Effect, *, is_done: bool) -> None:
    """End the process before or after an effect."""
    owner, name, times = effect
    real: Callable[..., object] = getattr(owner, name)
    left = [times]

    def killed(*args: object, **named: object) -> object:
        left[0] -= 1
        if left[0]:
            return real(*args, **named)
        if is_done:
            real(*args, **named)
        raise KilledError

    monkeypatch.setattr(owner, name, killed)


def test_a_killed_acceptance_is_no_proof_of_a_tail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = gap_without_cache(tmp_path)
    kill_at(monkeypatch, (Snapshots, "write", 1), is_done=True)
    with lakebed.connect(root) as copy, pytest.raises(KilledError):
        copy.repair(copy.plan_repair(copy.fsck("t"), log="accept-loss"))
    monkeypatch.undo()
    with pytest.raises(InvalidError, match="no cache and no snapshot is ahead"):
        planned(root, "rebuild-log")
    repaired(root, "accept-loss")
    goes_on(root, [1, 2])


def test_nothing_is_repaired_when_somebody_wrote_meanwhile(tmp_path: Path) -> None:
    root = given_copy(tmp_path, restore_yesterday)
    cache = tmp_path / "kept"
    with lakebed.connect(root) as copy:
        plan = copy.plan_repair(copy.fsck("t"), log="accept-loss")
    shutil.move(root / "cache", cache)
    with lakebed.connect(root) as copy:
        copy.table("t").ingest(rows(13))
        copy.table("t").ingest(rows(14))
    shutil.rmtree(root / "cache")
    shutil.move(cache, root / "cache")
    with lakebed.connect(root) as copy:
        before = [path.read_bytes() for path in log_files(root) if path.suffix == ".sqlite"]
        (done,) = copy.repair(plan)
        assert "the table has changed" in done.problem
        assert [p.read_bytes() for p in log_files(root) if p.suffix == ".sqlite"] == before


def test_a_lake_that_does_not_allow_the_entry_yet_stays_as_it_is(tmp_path: Path) -> None:
    root = given_copy(tmp_path, restore_yesterday)
    with lakebed.connect(root) as copy:
        copy._app.inspection.repair()._formats = lambda: Formats(entry=3, state=1)
        (done,) = copy.repair(copy.plan_repair(copy.fsck("t"), log="accept-loss"))
        assert "the lake does not allow this log entry" in done.problem
        assert damage_of(copy.fsck("t")) == ["log-behind"]
    assert not (root / "objects" / "lost").exists()


def test_the_command_shows_its_plan_and_carries_it_out(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.lake = given_copy(tmp_path, restore_yesterday)
    for words in (
        ["fsck", "--repair", "--accept-loss"],
        ["fsck", "t", "--rebuild-log"],
        ["fsck", "t", "--repair", "--rebuild-log", "--accept-loss"],
    ):
        assert shell.refused(*words)[0] == InvalidError.exit_code
    shown = shell.run("fsck", "t", "--repair", "--accept-loss", "--dry-run")
    assert shown.exit_code == CorruptError.exit_code
    assert "lost, as far as known: 2 commits" in shown.output
    assert "2 files of them" in shown.output
    done = shell.run("fsck", "t", "--repair", "--rebuild-log", "--yes")
    assert done.exit_code == 0, done.output
    assert "rebuild-log t: 1 thing done" in done.output
    goes_on(shell.lake, [1, 2, 3, 4])


def test_kept_entries_can_be_read(tmp_path: Path) -> None:
    root = gap_without_cache(tmp_path)
    repaired(root, "accept-loss")
    (path,) = (root / "objects" / "lost").glob("*/*/entries.jsonl")
    lines = path.read_bytes().splitlines()
    entries = [json.loads(line) for line in lines]
    bodies = {entry["number"]: base64.b64decode(entry["body"]) for entry in entries}
    assert list(bodies) == [1, 2, 3, 5]
    assert all(decode_entry(body, number) for number, body in bodies.items())

"""A bulk import makes leaves of those that it fills, in its one commit, or leaves them alone."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.bootstrap.bulk_import import BulkImportApp
from lakebed.bulk_import import merge_and_commit, plan
from lakebed.bulk_import.place_rows import PlacedFile, Placement, PlaceRows
from lakebed.bulk_import.work import BegunImport
from lakebed.errors import GenerationError, UnavailableError
from lakebed.model.files import BOUND_BYTES
from lakebed.model.partitions import ROOT
from lakebed.sorted_files.sorting import stored_runs
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import Split
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.user_jobs import Ingested
from tests.dsl.in_process_cluster import InProcessCluster, OutcomeOf

SCHEMA = lakebed.schema_of(row_keys={"k": "string"}, sort_keys={"n": "int64"})
SETTINGS = {"leaf_rows_max": 600, "shared_file_rows_max": 100}


class Overtaken(PlaceRows):
    """Lets others act when a commit was planned, before it is sent. acts: one for each try."""

    def __init__(self, place: PlaceRows, acts: list[Callable[[], object]]) -> None:
        super().__init__(place._files)
        self._acts = acts

    def placement(
        self, table: OpenTable, begun: BegunImport, files: Sequence[PlacedFile], *, may_split: bool
    ) -> Placement:
        placement = super().placement(table, begun, files, may_split=may_split)
        if self._acts:
            self._acts.pop()()
        return placement


class Place:
    """A lake with a table of one leaf, and files with rows for it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lake"
        self.input = folder / "input"
        self.lake = lakebed.connect(self.path)
        self.table = self.lake.create_table("t", SCHEMA, settings=SETTINGS)
        self.before_commit: list[Callable[[], object]] = []

    def given_keys(self, name: str, keys: list[str], *, files: int = 3) -> Path:
        folder = self.input / name
        folder.mkdir(parents=True)
        for file in range(files):
            mine = keys[file::files]
            rows = pa.table({"k": mine, "n": pa.array(range(len(mine)), pa.int64())})
            pq.write_table(rows, folder / f"{file}.parquet", row_group_size=200)
        return folder

    def when_imported(
        self, *paths: Path, job: str = "j", outcome_of: OutcomeOf = lambda _s, _n: "done"
    ) -> Ingested:
        with BulkImportApp(self.path) as app:
            second = app._service._second
            second._placing = Overtaken(second._placing, self.before_commit)
            return app.run(
                "t",
                list(paths),
                cluster_for=lambda tasks: InProcessCluster(tasks, outcome_of),
                job=job,
            )

    def keys(self) -> list[str]:
        return self.table.query().read_all().column("k").to_pylist()

    def rows_by_leaf(self) -> list[int]:
        """Return the rows of each leaf, in key order; the state knows them exactly."""
        with self.table._opened.head.reading() as state:
            leaves = list(state.tree().leaves())
            held = {leaf: [r for r, _ in state.references(leaf)] for leaf in leaves}
        assert all(r.exact for references in held.values() for r in references)
        return [sum(r.rows for r in held[leaf]) for leaf in leaves]

    def leaves_by_file(self) -> Counter[bytes]:
        with self.table._opened.head.reading() as state:
            return Counter(r.file.name for r in state.all_references())

    def changes(self, number: int) -> list[object]:
        """Return the changes of the entries behind a number, in order."""
        opened = self.table._opened
        with BulkImportApp(self.path) as app:
            log = app._app.logs.open(opened.id)
            return [
                change
                for at, body in log.read_after(number)
                for transaction in decode_entry(body, at).transactions
                for change in transaction.changes
            ]

    def number(self) -> int:
        with self.table._opened.head.reading() as state:
            return state.head().number


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name, small in {"SORT_BYTES": 6_000, "SORT_BYTES_MIN": 6_000}.items():
        monkeypatch.setattr(plan, name, small)
    monkeypatch.setattr(stored_runs, "BLOCK_ROWS", 20)
    return Place(tmp_path)


def skewed(rows: int) -> list[str]:
    """Return keys that differ, in no order: half begin with 0, a quarter with 1, and so on."""
    return [
        f"{(row & -row).bit_length() - 1:02}-{row * 7_919 % rows:06}" for row in range(1, rows + 1)
    ]


def test_a_first_import_grows_the_tree_in_one_commit(place: Place) -> None:
    keys = skewed(6_000)
    before = place.number()
    done = place.when_imported(place.given_keys("a", keys))
    assert place.keys() == sorted(keys)
    rows = place.rows_by_leaf()
    assert len(rows) == 19  # of half of `leaf_rows_max`, and no fewer
    assert max(rows) <= 2 * sum(rows) / len(rows)
    assert max(rows) <= SETTINGS["leaf_rows_max"]
    assert done.number == before + 1
    split, added = place.changes(before)
    assert isinstance(split, Split)
    assert split.partition == ROOT
    assert isinstance(added, AddFiles)


def test_each_new_leaf_has_files_of_its_own(place: Place) -> None:
    place.when_imported(place.given_keys("a", skewed(6_000)))
    assert set(place.leaves_by_file().values()) == {1}
    assert not place.lake.fsck(deep=True).findings


def test_keys_that_begin_alike_for_longer_than_bounds_reach_one_leaf_each(place: Place) -> None:
    keys = ["k" * (BOUND_BYTES + 9) + key for key in skewed(3_000)]
    place.when_imported(place.given_keys("a", keys))
    assert place.keys() == sorted(keys)
    assert len(place.rows_by_leaf()) == 9
    assert set(place.leaves_by_file().values()) == {1}
    with place.table._opened.head.reading() as state:
        for reference in state.all_references():
            assert len(reference.bounds.min) <= BOUND_BYTES
            assert len(reference.bounds.max or b"") <= BOUND_BYTES


def test_leaves_are_made_until_there_are_leaves_min(place: Place) -> None:
    place.table.change_settings(leaves_min=5, leaf_rows_max=1_000_000)
    place.when_imported(place.given_keys("a", skewed(6_000)))
    assert len(place.rows_by_leaf()) == 5
    assert max(place.rows_by_leaf()) <= 2_400


@pytest.mark.parametrize(
    "keys", [[], ["a"] * 10, [f"{n}" for n in range(10)], ["a"] * 3_000], ids=len
)
def test_few_rows_one_key_and_nothing_are_no_split_and_no_failure(
    place: Place, keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_runs, "BLOCK_ROWS", 1)  # each row's key could be a cut
    place.table.change_settings(leaves_min=64)
    assert place.when_imported(place.given_keys("a", keys)).rows == len(keys)
    assert place.keys() == sorted(keys)
    assert len(place.rows_by_leaf()) == 1


def test_few_rows_for_a_large_leaf_leave_it_to_the_schedule(place: Place) -> None:
    place.table.ingest(place.given_keys("a", skewed(700)))
    place.when_imported(place.given_keys("b", skewed(100)))
    assert len(place.rows_by_leaf()) == 1


def test_rows_that_a_leaf_holds_count_and_are_shared_out_by_their_samples(place: Place) -> None:
    low = [f"a{n:05}" for n in range(550)]
    place.table.ingest(place.given_keys("low", low))
    high = [f"b{n:05}" for n in range(1_100)]
    place.when_imported(place.given_keys("high", high))
    assert place.keys() == low + high
    with place.table._opened.head.reading() as state:
        leaves = list(state.tree().leaves())
        rows = [sum(r.rows for r, _ in state.references(leaf)) for leaf in leaves]
    assert len(rows) == 5
    assert max(rows) <= 450
    assert not place.lake.fsck(deep=True).findings


def test_a_commit_that_meets_another_split_of_its_leaves_is_planned_again(place: Place) -> None:
    first, second = skewed(500), skewed(3_000)
    place.when_imported(place.given_keys("a", first), job="first")
    before = place.number()

    def split() -> None:
        place.table.change_settings(leaf_rows_max=250)
        place.lake.run(["t"])
        place.table.change_settings(leaf_rows_max=600)

    place.before_commit = [split]
    place.when_imported(place.given_keys("b", second), job="second")
    assert place.keys() == sorted(first + second)
    by_others, *_, added = [c for c in place.changes(before) if isinstance(c, Split | AddFiles)]
    assert isinstance(by_others, Split)
    assert isinstance(added, AddFiles)
    with place.table._opened.head.reading() as state:
        assert max(f.rows for f in state.leaf_figures()) <= 600
    assert not place.lake.fsck(deep=True).findings


def test_a_refusal_that_no_split_made_is_no_reason_to_plan_again(place: Place) -> None:
    place.before_commit = [place.table.clear]
    with pytest.raises(GenerationError):
        place.when_imported(place.given_keys("a", skewed(3_000)))
    assert not place.keys()


def split_when(stage: str, act: Callable[[], object]) -> OutcomeOf:
    """Act once, when the first task of a stage has run."""
    done: list[bool] = []

    def outcome_of(at: str, _number: int) -> str:
        if at == stage and not done:
            done.append(True)
            act()
        return "done"

    return outcome_of


@pytest.mark.parametrize("stage", ["sort", "merge"])
def test_a_leaf_that_was_split_meanwhile_is_planned_again(place: Place, stage: str) -> None:
    first, second = skewed(500), skewed(3_000)
    place.when_imported(place.given_keys("a", first), job="first")
    assert len(place.rows_by_leaf()) == 1

    def split() -> None:
        place.table.change_settings(leaf_rows_max=250)
        place.lake.run(["t"])
        place.table.change_settings(leaf_rows_max=600)

    place.when_imported(
        place.given_keys("b", second), job="second", outcome_of=split_when(stage, split)
    )
    assert place.keys() == sorted(first + second)
    with place.table._opened.head.reading() as state:
        figures = state.leaf_figures()
    assert len(figures) > 9
    assert max(f.rows for f in figures) <= 1_000
    assert not place.lake.fsck(deep=True).findings


@pytest.mark.parametrize("stage", ["sort", "merge"])
def test_two_imports_at_once_end_right(place: Place, stage: str) -> None:
    one, other = skewed(3_000), [f"{key}+" for key in skewed(3_000)]
    inputs = place.given_keys("one", one), place.given_keys("other", other)
    place.when_imported(
        inputs[0],
        job="one",
        outcome_of=split_when(stage, lambda: place.when_imported(inputs[1], job="other")),
    )
    assert place.keys() == sorted(one + other)
    with place.table._opened.head.reading() as state:
        rows = [f.rows for f in state.leaf_figures()]
    assert len(rows) >= 15, rows
    assert max(rows) <= 2 * sum(rows) / len(rows)
    assert not place.lake.fsck(deep=True).findings


def test_an_import_whose_leaves_are_always_split_by_others_comes_in_without_splits(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_and_commit, "SPLIT_TRIES", 1)
    given = place.given_keys("a", keys := skewed(3_000))
    place.table.ingest(place.given_keys("b", held := skewed(500)))

    def split() -> None:
        place.table.change_settings(leaf_rows_max=490)
        place.lake.run(["t"])

    place.before_commit = [split]
    place.when_imported(given)
    assert place.keys() == sorted(keys + held)
    with place.table._opened.head.reading() as state:
        assert len(state.leaf_figures()) == 2
    with place.table._opened.head.reading() as state:
        assert all(len(r.bounds.max or b"") <= BOUND_BYTES for r in state.all_references())


@pytest.mark.parametrize("stage", ["sort", "merge"])
def test_what_is_killed_between_stages_splits_nothing_and_runs_again(
    place: Place, stage: str
) -> None:
    given = place.given_keys("a", keys := skewed(3_000))
    with pytest.raises(UnavailableError):
        place.when_imported(given, outcome_of=lambda at, _: "given up" if at == stage else "done")
    assert len(place.rows_by_leaf()) == 1
    assert not place.keys()
    place.when_imported(given)
    assert place.keys() == sorted(keys)
    assert len(place.rows_by_leaf()) == 9


def test_a_table_that_was_cleared_before_files_are_written_is_told(place: Place) -> None:
    given = place.given_keys("a", skewed(3_000))
    with pytest.raises(GenerationError):
        place.when_imported(given, outcome_of=split_when("sort", place.table.clear))
    assert not [path for path in place.path.rglob("files/*") if path.is_file()]


def test_rows_that_become_one_count_once(tmp_path: Path, place: Place) -> None:
    schema = lakebed.schema_of(row_keys={"k": "string"}, values={"n": "int64"})
    processing = lakebed.Processing(latest=lakebed.Latest("n"))
    place.lake.drop_table("t")
    place.table = place.lake.create_table("t", schema, settings=SETTINGS, processing=processing)
    folders = [place.given_keys(f"{copy}", skewed(1_000), files=1) for copy in range(8)]
    assert place.when_imported(*folders).rows == 1_000
    assert len(place.rows_by_leaf()) == 3  # as 1,000 rows deserve, not 8,000
    assert place.keys() == sorted(skewed(1_000))
    assert not place.lake.fsck(deep=True).findings

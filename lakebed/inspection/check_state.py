"""Checks whether one state agrees with itself: tree, references, claims, garbage, numbers."""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.errors import CorruptError
from lakebed.inspection.findings import Fact, Finding, finding
from lakebed.model.feeds.positions import decode_position
from lakebed.model.files import FileReference, StoredFile
from lakebed.model.names import FileName, TableName, base_of
from lakebed.model.partitions import PartitionTree
from lakebed.statestore.table_state.feed_records import all_positions, wrong_feed_records
from lakebed.statestore.table_state.figures import (
    claims_by_job,
    claims_without_job,
    garbage_with_references,
    numbers_beyond,
)
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.table_state.window_records import wrong_windows


def check_state(state: TableState, table: TableName, **where: Fact) -> Iterator[Finding]:
    """Yield what is wrong inside a state. where: more facts for each finding."""

    def found(code: str, **facts: Fact) -> Finding:
        return finding(code, table=table, **where, **facts)

    tree: PartitionTree | None = None
    try:
        tree = state.tree()
    except (AssertionError, KeyError, IndexError) as error:
        yield found("tree-broken", problem=str(error))
    if tree is not None:
        if tree.root != state.head().root:
            yield found("tree-broken", problem="the head names another root")
        for code, facts in _reference_problems(state, tree):
            yield found(code, **facts)
    for file, partition in claims_without_job(state):
        yield found("claim-without-job", file=file.hex(), partition=partition)
    for job, claims in claims_by_job(state):
        if not claims:
            yield found("job-without-claim", job=job)
    for file in garbage_with_references(state):
        yield found("garbage-referenced", file=file.hex())
    for what, number in numbers_beyond(state):
        yield found("number-impossible", what=what, number=number)
    for code, facts in _feed_problems(state):
        yield found(code, **facts)


def _feed_problems(state: TableState) -> Iterator[tuple[str, dict[str, Fact]]]:
    for name, value in all_positions(state):
        try:
            decode_position(value)
        except CorruptError as error:
            yield "position-damaged", {"position": name, "problem": str(error)}
    for what in wrong_feed_records(state):
        yield "ledger-wrong", {"what": what}
    for what in wrong_windows(state):
        yield "windows-wrong", {"what": what}


def _reference_problems(
    state: TableState, tree: PartitionTree
) -> Iterator[tuple[str, dict[str, Fact]]]:
    head = state.head()
    files: dict[FileName, StoredFile] = {}
    for reference in state.all_references():
        file, partition = reference.file, reference.partition
        facts: dict[str, Fact] = {"file": file.name.hex(), "partition": partition}
        node = tree.nodes.get(partition)
        if node is None or not node.is_leaf:
            yield "reference-not-on-leaf", facts
        elif not tree.key_range(partition).overlaps(reference.bounds.as_range()):
            yield "reference-outside", facts
        if files.setdefault(file.name, file) != file:
            yield "reference-contradicts", facts
        if not _is_possible(reference) or base_of(file.name) > head.number:
            yield "reference-impossible", facts


def _is_possible(reference: FileReference) -> bool:
    file = reference.file
    rows_fit = reference.rows > 0 if reference.exact else reference.rows >= 0
    return rows_fit and 0 <= file.tail_offset < file.size

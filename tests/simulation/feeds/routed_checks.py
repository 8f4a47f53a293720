"""What must be true at the end of the tables of a route, of their quarantine and their ledgers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from lakebed.feeds.operating.position_admin import positions_in
from lakebed.landing.quarantine_source import KeptRange, kept_ranges
from lakebed.model.names import ConnectionId
from lakebed.statestore.open_table import OpenTable
from tests.simulation.feeds.fed_auditor import FedAuditor, Taken
from tests.simulation.feeds.fed_checks import check_ledger, counts, ids_in, records_of
from tests.simulation.feeds.fed_rows import is_filtered
from tests.simulation.feeds.model_source import ModelSource, RawRecord
from tests.simulation.machine import Machine
from tests.simulation.violation import FED_LEDGER, FED_ROUTE, FED_ROWS, Violation

if TYPE_CHECKING:
    from tests.simulation.feeds.fed_world import FedWorld
    from tests.simulation.feeds.routed_world import Lane, RoutedWorld


class _LaneView:
    """A table of a route, as the checkers of feeds see a world."""

    def __init__(self, source: ModelSource, connection: ConnectionId, auditor: FedAuditor) -> None:
        self.source = source
        self.connection = connection
        self.fed_auditor = auditor

    def records_of(self, taken: Taken) -> list[RawRecord]:
        """Return the records of a range, whatever has become of them in the source."""
        return self.source.between(taken.split, taken.begin, taken.end)


def check_lane(world: RoutedWorld, lane: Lane, machine: Machine, table: OpenTable) -> None:
    """Each record that belongs to a table is there or in its quarantine, once, and none that
    belongs to another one is there."""
    auditor = world.auditor_of_lane(lane)
    view = cast("FedWorld", _LaneView(world.source, lane.connection, auditor))
    rows, bad = ids_in(machine, table), _quarantined(lane, machine, table)
    twice = [id_ for id_, count in (rows + bad).items() if count > 1]
    if twice:
        raise Violation(FED_ROWS, f"records {twice[:9]} of {lane.name} are there twice")
    cleared, taken = max(auditor.cleared_at, default=0), set[int]()
    for one in auditor.taken:
        if one.is_gap:
            taken |= _kept_of_gap(view, lane, machine, one)
            continue
        for position, id_ in records_of(view, one):
            taken.add(id_)
            owner = world.route.lane_of(id_)
            if id_ in rows and owner != lane.number:
                raise Violation(FED_ROUTE, f"{lane.name} has record {id_}, of table {owner}")
            may_lack = one.number <= cleared or (owner is not None and is_filtered(position))
            is_due = owner is None or owner == lane.number
            if is_due and not may_lack and id_ not in rows and id_ not in bad:
                raise Violation(FED_ROWS, f"record {id_} of {lane.name} is missing")
    if early := rows.keys() - taken:
        raise Violation(FED_ROWS, f"rows {sorted(early)[:9]} are there, and no position is")
    check_ledger(view, table, bad.keys() & taken, rows.keys() if not cleared else None)


def check_apart(world: RoutedWorld, machine: Machine) -> None:
    """No record is in two tables."""
    all_rows = Counter[int]()
    for lane in world.lanes:
        all_rows.update(ids_in(machine, machine.catalog.find(lane.name)))
    twice = [id_ for id_, count in all_rows.items() if count > 1]
    if twice:
        raise Violation(FED_ROUTE, f"records {twice[:9]} are in two tables")


def _quarantined(lane: Lane, machine: Machine, table: OpenTable) -> Counter[int]:
    """Return the ids of the records that a table's quarantine keeps still."""
    kept = kept_ranges(positions_in(table, lane.connection))
    rows = _of(lane, machine)
    return Counter(row[3] for row in rows if counts(kept.get(row[1], KeptRange(0)), row[2]))


def _kept_of_gap(view: FedWorld, lane: Lane, machine: Machine, gap: Taken) -> set[int]:
    """Return the records of a gap that the table's quarantine had: see `fed_checks.kept_of_gap`."""
    in_quarantine = {row[3] for row in _of(lane, machine)}
    kept = {id_ for _, id_ in records_of(view, gap) if id_ in in_quarantine}
    if len(kept) != gap.read:
        story = f"entry {gap.number} counts {gap.read} records of a gap, {len(kept)} are kept"
        raise Violation(FED_LEDGER, story)
    return kept


def _of(lane: Lane, machine: Machine) -> list[tuple[Any, ...]]:
    found = machine.query.run(machine.catalog.find("quarantine"))
    return [row for batch in found for row in batch if row[0] == lane.connection]

"""What must be true at the end of a table that a feed fills, its quarantine and its ledger."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from lakebed.feeds.operating.feed_status import replayed
from lakebed.feeds.operating.position_admin import positions_in
from lakebed.landing.quarantine_source import KeptRange, kept_ranges
from lakebed.model.feeds.replays import replay_of
from lakebed.model.feeds.tallies import Tally
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import connection_of, ledger_of, positions_of
from tests.simulation.feeds.fed_auditor import Taken
from tests.simulation.feeds.fed_rows import is_filtered
from tests.simulation.machine import Machine
from tests.simulation.violation import ENDS, FED_LEDGER, FED_ROWS, Violation

if TYPE_CHECKING:
    from tests.simulation.feeds.fed_world import FedWorld


def check_fed(world: FedWorld, machine: Machine, table: OpenTable) -> None:
    """Compare a table and its quarantine with all that the source ever gave."""
    rows = ids_in(machine, table)
    bad = quarantined_ids(world, machine, table)
    twice = [id_ for id_, count in (rows + bad).items() if count > 1]
    if twice:
        raise Violation(FED_ROWS, f"records {twice[:9]} are there twice")
    cleared = max(world.fed_auditor.cleared_at, default=0)
    taken = set[int]()
    back = {
        id_
        for one in world.fed_auditor.from_quarantine
        if one.number > cleared
        for _, id_ in records_of(world, one)
    }
    for one in world.fed_auditor.taken:
        if one.is_gap:
            taken |= kept_of_gap(world, machine, one)
            continue
        missing = list[int]()
        for position, id_ in records_of(world, one):
            taken.add(id_)
            if not is_filtered(position) and id_ not in rows and id_ not in bad:
                missing.append(id_)
            if one.number <= cleared and id_ in rows and id_ not in back:
                raise Violation(FED_ROWS, f"record {id_} is back, and was cleared")
        if one.number > cleared and len(missing) != one.left_out:
            story = f"entry {one.number} left out {one.left_out} records, {missing[:9]} are missing"
            raise Violation(FED_ROWS, story)
    early = rows.keys() - taken
    if early:
        raise Violation(FED_ROWS, f"rows {sorted(early)[:9]} are there, and no position is")
    check_ledger(world, table, bad.keys() & taken, rows.keys() if not cleared else None)


def kept_of_gap(world: FedWorld, machine: Machine, gap: Taken) -> set[int]:
    """Return the records of a gap that the quarantine had when the source lost them: a worker died
    between quarantine and table. The entry that passes the gap counts them."""
    in_quarantine = ids_in(machine, machine.catalog.find("quarantine"))
    kept = {id_ for _, id_ in records_of(world, gap) if id_ in in_quarantine}
    if len(kept) != gap.read:
        story = f"entry {gap.number} counts {gap.read} records of a gap, {len(kept)} are kept"
        raise Violation(FED_LEDGER, story)
    return kept


def check_ledger(world: FedWorld, table: OpenTable, bad: set[int], stored: set[int] | None) -> None:
    """The ledger says of each source split what became of the source's own records; and nothing is
    left to take. stored: None: the table was cleared."""
    with table.head.reading() as state:
        known = connection_of(state, world.connection)
        if known is None:
            return
        sums = Counter[str]()
        total = Tally()
        for split, _, tally in ledger_of(state, known):
            if replay_of(split) is None:
                sums[split] += tally.read
                total = total.plus(tally)
            else:
                total = total.plus(replayed(tally))
        at = {name: position for name, position, _ in positions_of(state, world.connection)}
    read = Counter[str]()
    for one in world.fed_auditor.taken:
        read[one.split] += one.read if one.is_gap else len(records_of(world, one))
    if read - sums or sums - read:
        raise Violation(FED_LEDGER, f"the source gave {dict(read)}, the ledger says {dict(sums)}")
    if total.quarantined != len(bad):
        story = f"{total.quarantined} are counted as quarantined, {len(bad)} are there"
        raise Violation(FED_LEDGER, story)
    if stored is not None and total.stored != len(stored):
        raise Violation(FED_LEDGER, f"{total.stored} are counted, {len(stored)} rows are there")
    for split in world.source.topics.values():
        last = split.offsets[-1] if split.kept < len(split.offsets) else None
        if last is not None and (split.name not in at or at[split.name].next != last + 1):
            raise Violation(ENDS, f"{split.name} has records that were never taken")


def records_of(world: FedWorld, taken: Taken) -> list[tuple[int, int]]:
    """Return the records of a range, whatever has become of them in the source."""
    return world.records_of(taken)


def quarantined_ids(world: FedWorld, machine: Machine, table: OpenTable) -> Counter[int]:
    """Return the ids of the records in quarantine, without those that a replay has taken."""
    kept = kept_ranges(positions_in(table, world.connection))
    quarantine = machine.catalog.find("quarantine")
    rows: list[tuple[Any, ...]] = [row for batch in machine.query.run(quarantine) for row in batch]
    return Counter(row[3] for row in rows if counts(kept.get(row[1], KeptRange(0)), row[2]))


def counts(kept: KeptRange, position: int) -> bool:
    """Whether a row of the quarantine is of a record that no replay has taken since."""
    return kept.begin <= position and (kept.end is None or position < kept.end)


def ids_in(machine: Machine, table: OpenTable) -> Counter[int]:
    """Return the ids of the records that a table has."""
    rows: list[tuple[Any, ...]] = [row for batch in machine.query.run(table) for row in batch]
    return Counter(row[3] for row in rows)

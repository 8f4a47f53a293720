"""Makes the tables of a lake those that files declare, a step at a time.

Each step is one commit of a log or one change of a name, so a process that dies between two leaves
tables that the next one goes on with. There is no transaction over several tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from lakebed.errors import (
    ConflictError,
    InvalidError,
    LakebedError,
    TableExistsError,
    TableMissingError,
    UnknownOutcomeError,
)
from lakebed.model.names import TableId, TableName, TransactionNumber
from lakebed.observe import events
from lakebed.ports.installed_steps import InstalledSteps
from lakebed.ports.table_registry import TableEntry
from lakebed.statestore.log_entries.table_changes import (
    ChangeProcessing,
    ChangeSchema,
    ChangeSettings,
)
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.planned_transaction import planned
from lakebed.statestore.table_state.figures import FileFigures, file_figures
from lakebed.statestore.table_state.state import TableState
from lakebed.tables.catalog import TableCatalog
from lakebed.tables.check_new_table import check_new_table
from lakebed.tables.check_steps import check_iterator, check_strategy
from lakebed.tables.declarations import Declaration, naming
from lakebed.tables.declared import plan_tables, tables_to_open
from lakebed.tables.plan_steps import (
    Change,
    FoundLake,
    FoundTable,
    Loss,
    Removal,
    TablesPlan,
    TableStep,
)

TRIES_MAX = 10
"""A plan that another process overtakes is made anew; so often, then it is refused."""
OVERTAKEN = (ConflictError, TableExistsError, TableMissingError, UnknownOutcomeError)


class ApplyTables:
    """Plans and does it. steps: of users' packages, that work on the tables."""

    def __init__(self, *, catalog: TableCatalog, steps: InstalledSteps) -> None:
        self._catalog = catalog
        self._steps = steps

    def plan(self, declared: Sequence[Declaration], *, remove: Removal | None = None) -> TablesPlan:
        """Return what `run` would do, with what would be lost. Changes nothing.

        Raises:
            InvalidError: a table that cannot be as declared. CorruptError: one cannot be read.
        """
        _, plan = self._planned(declared, remove)
        figures = {id_: self._figures(id_) for id_ in {loss.id for loss in plan.losses}}
        steps = (
            msgspec.structs.replace(
                step, losses=tuple(_with_figures(loss, figures[loss.id]) for loss in step.losses)
            )
            for step in plan.steps
        )
        return msgspec.structs.replace(plan, steps=tuple(steps))

    def run(
        self,
        declared: Sequence[Declaration],
        *,
        remove: Removal | None = None,
        losses: Sequence[Loss] = (),
        on_step: Callable[[TableStep], None] = lambda _: None,
    ) -> TablesPlan:
        """Do it. Returns the steps that were done; none, where all is as declared.

        losses: what may be removed for good, as a plan told it.
        on_step: called with each step that is done.

        Raises:
            InvalidError: a table that cannot be as declared, or something would be lost that
                `losses` does not name; nothing was changed but what steps before it did.
            ConflictError, TableExistsError, TableMissingError: other processes change the same
                tables all the time. UnavailableError, UnknownOutcomeError: apply it again.
        """
        done: list[TableStep] = []
        first: TablesPlan | None = None
        failed: TableStep | None = None
        failure: LakebedError | None = None
        for _ in range(TRIES_MAX):
            found, plan = self._planned(declared, remove)
            _check_losses(plan, losses)
            first = first or plan
            if isinstance(failure, UnknownOutcomeError) and failed and failed not in plan.steps:
                done.append(failed)  # it landed
            made: dict[TableName, TableId] = {}
            for step in plan.steps:
                try:
                    self._do(step, declared, found, made)
                except OVERTAKEN as error:
                    failed, failure = step, error
                    break
                done.append(step)
                on_step(step)
            else:
                return msgspec.structs.replace(first, steps=tuple(done))
        assert failure is not None, "each try ends or fails"
        raise failure

    def _planned(
        self, declared: Sequence[Declaration], remove: Removal | None
    ) -> tuple[FoundLake, TablesPlan]:
        found = self.found(declared)
        plan = plan_tables(declared, found, remove)
        by_name = {one.name: one for one in declared}
        for step in plan.steps:
            if step.table in by_name:
                with naming(file=step.file, table=step.table):
                    self._check(step, by_name[step.table])
        return found, plan

    def found(self, declared: Sequence[Declaration]) -> FoundLake:
        """Return the tables of the lake, and look into those that files name.

        Raises:
            TableMissingError: one is half dropped. CorruptError: one cannot be read.
        """
        failure: TableMissingError | None = None
        for _ in range(TRIES_MAX):
            entries = self._catalog.list()
            wanted = tables_to_open(declared, entries)
            try:
                opened = {entry.id: self._look(entry) for entry in wanted}
            except TableMissingError as error:  # another process drops it
                failure = error
                continue
            return FoundLake(entries=entries, opened=opened)
        assert failure is not None, "each try ends or fails"
        raise failure

    def _look(self, entry: TableEntry) -> FoundTable:
        try:
            with self._catalog.opened(entry).head.reading() as state:
                state.require_table()
                return FoundTable(
                    start=start_of(state),
                    schema=state.schema(),
                    settings=state.settings(),
                    processing=state.processing(),
                    has_files=state.has_files(),
                )
        except LakebedError as error:
            error.facts.setdefault("table", entry.name)
            if isinstance(error, TableMissingError):
                error.hint = f"its drop was begun: end it by `lakebed table drop {entry.name}`"
            raise

    def _check(self, step: TableStep, declared: Declaration) -> None:
        """Refuse steps of users' packages that are not where they are to work."""
        if step.action == "watch":
            self._catalog.watchable.check(step.watch)
        if step.action == "create":
            check_new_table(declared.schema, declared.settings, declared.processing, self._steps)
        for change in step.changes:
            if isinstance(change, ChangeSettings):
                check_strategy(change.changes, self._steps)
            if isinstance(change, ChangeProcessing):
                check_iterator(declared.processing, declared.schema, self._steps)

    def _do(
        self,
        step: TableStep,
        declared: Sequence[Declaration],
        found: FoundLake,
        made: dict[TableName, TableId],
    ) -> None:
        name, id_ = step.table, step.id or made.get(step.table)
        match step.action:
            case "rename":
                assert step.before is not None, "a rename has a former name"
                self._catalog.rename(step.before, name, id_=id_)
            case "create":
                (one,) = (one for one in declared if one.name == name)
                made[name] = self._created(one).id
            case "adopt":
                assert id_ is not None, "a table that is adopted is there"
                self._catalog.adopt(name, id_)
            case "change":
                assert id_ is not None, "a table that changes is there"
                self._commit(name, id_, step.changes, found.opened[id_])
            case "watch":
                self._catalog.watch(name, step.watch, id_=id_, alone=False)
            case "online" | "offline":
                self._catalog.set_online(name, online=step.action == "online", id_=id_)
            case "drop":
                self._catalog.drop(name, id_=id_)

    def _created(self, declared: Declaration) -> OpenTable:
        return self._catalog.create(
            declared.name,
            declared.schema,
            split_points=declared.split_points,
            settings=declared.settings,
            processing=declared.processing,
            declared=True,
        )

    def _commit(
        self, name: TableName, id_: TableId, changes: Sequence[Change], there: FoundTable
    ) -> None:
        """Change a table in one commit, if it is still what the plan was made on."""

        def require(state: TableState) -> None:
            if state.head().number == there.start.base:
                return
            if (state.schema(), state.settings(), state.processing()) != there.definition:
                hint = "look what it is now, then apply again"
                raise ConflictError("the table was changed meanwhile", table=name, hint=hint)

        table = self._catalog.opened(self._catalog.entry(name, id_=id_))
        number = table.head.commit(planned(table.own(there.start, *changes), require))
        _log_changes(table, number, changes)

    def _figures(self, id_: TableId) -> FileFigures | None:
        """Return what a table holds; None: it cannot be read, as it is broken or in quarantine."""
        try:
            table = self._catalog.find_id(id_)
            if table is None:
                return None
            with table.head.reading() as state:
                return file_figures(state)
        except LakebedError:
            return None


def _check_losses(plan: TablesPlan, allowed: Sequence[Loss]) -> None:
    known = {loss.what for loss in allowed}
    lost = [loss for loss in plan.losses if loss.what not in known]
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        what = f"field {lost[0].field!r} of table {lost[0].table}"
        raise InvalidError(
            "what is stored would be lost, without consent",
            what=(what if lost[0].field else f"table {lost[0].table}") + more,
            hint="`lakebed diff` shows all of it; `lakebed apply` asks, or takes --yes",
        )


def _with_figures(loss: Loss, figures: FileFigures | None) -> Loss:
    if figures is None:
        return loss
    return msgspec.structs.replace(loss, rows=figures.rows, size=figures.size)


def _log_changes(table: OpenTable, number: TransactionNumber, changes: Sequence[Change]) -> None:
    for change in changes:
        match change:
            case ChangeSchema():
                count = len(change.changes)
                events.emit(
                    events.FIELDS_CHANGED, table=table.name, number=number, fields_count=count
                )
            case ChangeSettings():
                names = [*change.changes]
                events.emit(
                    events.SETTINGS_CHANGED, table=table.name, number=number, settings=names
                )
            case ChangeProcessing():
                events.emit(events.PROCESSING_CHANGED, table=table.name, number=number)

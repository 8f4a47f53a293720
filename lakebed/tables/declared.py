"""Plans the steps that make the tables of a lake those that files declare, from descriptions of
both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from lakebed.errors import InvalidError, TableExistsError, did_you_mean
from lakebed.model.changes.field_changes import FieldChange
from lakebed.model.names import TableName
from lakebed.ports.table_registry import TableEntry
from lakebed.statestore.log_entries.table_changes import ChangeSchema
from lakebed.tables.declarations import Declaration, naming, refuse_together
from lakebed.tables.declared_changes import (
    change_lines,
    declared_processing,
    processing_text,
    table_changes,
    watch_line,
)
from lakebed.tables.declared_fields import renames
from lakebed.tables.plan_steps import (
    Action,
    Change,
    FoundLake,
    Loss,
    Removal,
    TablesPlan,
    TableStep,
)
from lakebed.tasks.watched_folders import check_alone


def plan_tables(
    declared: Sequence[Declaration], found: FoundLake, remove: Removal | None = None
) -> TablesPlan:
    """Return how the tables of a lake become those that files declare.

    remove: what becomes of tables that files declared before, and none does now; None: nothing.

    Raises:
        InvalidError: a table that cannot be as declared; the error names each, and its file.
    """
    if remove not in (None, *get_args(Removal)):
        hint = did_you_mean(str(remove), get_args(Removal), what="removal")
        raise InvalidError("not a way to remove tables", remove=remove, hint=hint)
    names = _renamed(declared, found.entries)
    now = {names.get(entry.name, entry.name): entry for entry in found.entries}
    by_name = {one.name: one for one in declared}
    made: list[TableStep] = []
    changes: list[TableStep] = []
    wrong: dict[str, InvalidError] = {}
    of_files = {now[name].id for name in by_name if name in now}
    others = [entry for entry in found.entries if entry.id not in of_files]
    for one in declared:
        try:
            with naming(file=one.file, table=one.name):
                check_alone(one.watch, None, others)  # those of files are as they say in the end
                if one.name not in now:
                    made += _creation(one)
                elif not now[one.name].quarantined:
                    changes += _table_steps(one, now[one.name], found)
        except InvalidError as error:
            wrong[one.name] = error
    refuse_together(wrong, "several tables cannot be as they are declared")
    former = [now[name] for name in sorted(now.keys() - by_name) if now[name].declared]
    renamed = [
        _rename(by_name[new], old, now[new])
        for old, new in names.items()
        if not now[new].quarantined
    ]
    removals = [step for entry in former for step in _removal(entry, remove)]
    aside = {name for name, entry in now.items() if entry.quarantined and name in by_name}
    touched = {step.table for step in (*renamed, *made, *changes)}
    return TablesPlan(
        steps=(*renamed, *made, *changes, *removals),
        unchanged=tuple(one.name for one in declared if one.name not in touched | aside),
        left_alone=() if remove else tuple(entry.name for entry in former),
        quarantined=tuple(sorted(aside)),
    )


def tables_to_open(
    declared: Sequence[Declaration], entries: Sequence[TableEntry]
) -> list[TableEntry]:
    """Return the tables that a plan looks into: not those in quarantine, which cannot be read."""
    names = {name for one in declared for name in (one.name, one.was)}
    return [entry for entry in entries if entry.name in names and not entry.quarantined]


def _renamed(
    declared: Sequence[Declaration], entries: Sequence[TableEntry]
) -> Mapping[TableName, TableName]:
    """Return new names by old ones. Raises: TableExistsError: a new name is another table's."""
    there = {entry.name for entry in entries}
    names = renames({one.name: one.was for one in declared if one.was is not None}, there)
    kept = {one.name for one in declared} | names.keys()
    for one in declared:
        if one.was in there and one.was not in kept:
            raise TableExistsError(
                "the new name is taken by another table",
                file=one.file,
                table=one.name,
                was=one.was,
                hint="both are there: rename or drop one of them, or leave `was` out",
            )
    return {TableName(old): TableName(new) for old, new in names.items()}


def _rename(declared: Declaration, old: TableName, entry: TableEntry) -> TableStep:
    return TableStep(
        action="rename", table=declared.name, file=declared.file, id=entry.id, before=old
    )


def _creation(declared: Declaration) -> Iterator[TableStep]:
    schema, processing = declared.schema, declared.processing
    fields = (f"{f.name}: {f.type}{'?' if f.nullable else ''}" for f in schema.fields)
    details = [f"fields {', '.join(fields)}"]
    details += [f"{name} = {value}" for name, value in declared.settings.items()]
    if processing is not None:
        form = declared_processing(processing, schema)
        details.append(f"processing {processing_text(form)}")
    if declared.split_points:
        details.append(f"{len(declared.split_points) + 1} leaves")
    made = TableStep(
        action="create", table=declared.name, file=declared.file, details=tuple(details)
    )
    yield made
    if declared.watch:
        yield TableStep(
            action="watch",
            table=declared.name,
            file=declared.file,
            watch=declared.watch,
            details=(watch_line("", declared.watch),),
        )
    if not declared.online:
        yield TableStep(action="offline", table=declared.name, file=declared.file)


def _table_steps(declared: Declaration, entry: TableEntry, found: FoundLake) -> Iterator[TableStep]:
    """Yield what makes a table that is there what is declared."""
    there = found.opened[entry.id]

    def step(action: Action, **more: Any) -> TableStep:  # noqa: ANN401 - as a step has them
        name, file = declared.name, declared.file
        return TableStep(action=action, table=name, file=file, id=entry.id, **more)

    if not entry.declared and not declared.adopt:
        hint = "write `adopt = true` to take it over, or declare a table of another name"
        raise TableExistsError("a table of this name exists, and no file made it", hint=hint)
    changes = table_changes(declared, there)
    if not entry.declared:
        _check_types_agree(changes)
        yield step("adopt")
    if changes:
        yield step(
            "change",
            details=tuple(change_lines(changes, there)),
            losses=tuple(_field_losses(declared, entry, changes)),
            changes=changes,
        )
    if entry.watched != declared.watch:
        line = watch_line(entry.watched, declared.watch)
        yield step("watch", watch=declared.watch, details=(line,))
    if entry.online is not declared.online:
        yield step("online" if declared.online else "offline")


def _check_types_agree(changes: Sequence[Change]) -> None:
    """Refuse to adopt a table whose types are others."""
    for one in _field_changes(changes):
        if one.do == "widen":
            hint = "declare the type that the field has: once adopted, it can be widened"
            problem = "a table to adopt has a field of another type"
            raise InvalidError(problem, field=one.name, declared=one.to, hint=hint)


def _field_losses(
    declared: Declaration, entry: TableEntry, changes: Sequence[Change]
) -> Iterator[Loss]:
    for one in _field_changes(changes):
        if one.do == "drop":
            yield Loss(table=declared.name, id=entry.id, field=one.name)


def _field_changes(changes: Sequence[Change]) -> Iterator[FieldChange]:
    for change in changes:
        if isinstance(change, ChangeSchema):
            yield from change.changes


def _removal(entry: TableEntry, remove: Removal | None) -> Iterator[TableStep]:
    if remove == "offline" and entry.online:
        yield TableStep(action="offline", table=entry.name, id=entry.id)
    if remove == "drop":
        loss = Loss(table=entry.name, id=entry.id)
        yield TableStep(action="drop", table=entry.name, id=entry.id, losses=(loss,))

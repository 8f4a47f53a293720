"""Tables that are written down and applied elsewhere are the same tables; what was applied is
applied again without a change."""

import json
import tomllib
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.config.settings import TableSettings
from lakebed.model.names import table_name
from lakebed.model.processing import IteratorUse, Processing
from lakebed.model.schema import Schema, schema_of
from lakebed.tables.change_table import change_fields
from lakebed.tables.declarations import declarations_of
from lakebed.tables.declared_changes import declared_processing
from lakebed.tables.definition import definition_in
from tests.dsl.memory_tables import SOURCE, MemoryTables, Process
from tests.properties import processings, tables

_NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=6
).filter(lambda name: not name.lower().startswith("_lakebed"))
_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "leaf_rows_max": st.integers(2, 1 << 40),
        "compaction_strategy": st.sampled_from(["basic", "size_ratio"]),
        "job_files_max": st.integers(5, 500),
        "value_statistics": st.booleans(),
        "garbage_seconds_min": st.integers(0, 9_000),
    },
)
Made = tuple[Schema, Processing | None, list[Any], dict[str, Any], bool, bool]


@st.composite
def some_tables(draw: st.DrawFn) -> dict[str, Made]:
    """Tables by name: schema, processing, split points, settings, online, watching a folder."""
    found: dict[str, Made] = {}
    for name in draw(st.lists(st.sampled_from("abc"), unique=True, min_size=1)):
        processing = None
        if draw(st.booleans()):
            schema, processing, _ = draw(processings.tables())
            points: list[Any] = []
        else:
            schema = draw(tables.schemas())
            points = draw(tables.split_points(schema))
        flags = draw(st.booleans()), draw(st.booleans())
        found[name] = (schema, processing, points, draw(_SETTINGS), *flags)
    return found


def create(process: Process, made: dict[str, Made]) -> None:
    for name, (schema, processing, points, changes, online, watches) in made.items():
        process.catalog.create(
            name, schema, split_points=points, settings=changes, processing=processing
        )
        if not online:
            process.catalog.set_online(name, online=False)
        if watches:
            process.catalog.watch(name, f"{SOURCE}/{name}")


def definitions(process: Process) -> dict[str, Any]:
    """What a new table is made of, but for the numbers of fields, which differ where some were
    dropped."""
    found = {}
    for entry in process.catalog.list():
        with process.catalog.opened(entry).head.reading() as state:
            text = json.dumps(definition_in(state))
            processing = declared_processing(state.processing(), state.schema())
        form = json.loads(text, object_hook=lambda part: {**part, "number": 0})
        found[entry.name] = (form, processing, entry.online, entry.watched)
    return found


@settings(max_examples=40, deadline=None)
@given(made=some_tables(), data=st.data())
def test_what_is_written_down_makes_the_same_tables_elsewhere(
    made: dict[str, Made], data: st.DataObject
) -> None:
    here = MemoryTables().process()
    create(here, made)
    for name, (schema, processing, *_) in made.items():
        if processing is None and (changes := data.draw(tables.field_changes(schema))):
            asked = {"add": {}, "rename": {}, "drop": (), "widen": {}} | changes
            change_fields(here.catalog.find(name), **asked)
    texts, before, numbers = here.texts(), definitions(here), here.numbers()
    elsewhere = MemoryTables().process()
    elsewhere.apply(texts)
    assert definitions(elsewhere) == before
    assert elsewhere.texts() == texts
    assert elsewhere.apply(texts).steps == ()
    assert {step.action for step in here.apply(texts).steps} == {"adopt"}
    assert here.apply(texts).steps == ()
    assert (here.texts(), here.numbers()) == (texts, numbers)


def can_be_declared(changes: dict[str, Any]) -> bool:
    """Whether a file without former names says it: another field of an old name is no such."""
    return "rename" not in changes and not set(changes.get("add", ())) & set(
        changes.get("drop", ())
    )


@settings(max_examples=40, deadline=None)
@given(first=some_tables(), data=st.data())
def test_whatever_was_applied_is_applied_again_without_a_change(
    first: dict[str, Made], data: st.DataObject
) -> None:
    process, model = MemoryTables().process(), MemoryTables().process()
    create(model, first)
    process.apply(model.texts())
    for name, (schema, processing, *_) in first.items():
        changes = data.draw(tables.field_changes(schema).filter(can_be_declared))
        if processing is None and changes:
            asked = {"add": {}, "rename": {}, "drop": (), "widen": {}} | changes
            change_fields(model.catalog.find(name), **asked)
        if data.draw(st.booleans()):
            model.catalog.set_online(name, online=data.draw(st.booleans()))
    folders = data.draw(st.permutations(["", *first]))  # some exchange theirs
    for name, folder in zip(first, folders, strict=False):
        model.catalog.watch(name, folder and f"{SOURCE}/{folder}", alone=False)
    texts = model.texts()
    process.apply(texts)
    assert process.apply(texts).steps == ()
    assert definitions(process) == definitions(model)


@given(names=st.lists(_NAMES, unique_by=str.lower, min_size=1, max_size=5))
def test_fields_of_any_name_are_written_so_that_they_are_read_again(names: list[str]) -> None:
    process = MemoryTables().process()
    first, *others = names
    schema = schema_of(
        row_keys={first: "string"}, values={name: {"list": "string"} for name in others}
    )
    process.catalog.create("a", schema)
    texts = process.texts()
    (declared,) = declarations_of(texts)
    assert [field.name for field in declared.schema.fields] == names
    assert tomllib.loads(texts["a.toml"])["name"] == table_name("a")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(config=st.dictionaries(st.text(max_size=3), _JSON, max_size=3))
def test_every_configuration_of_an_iterator_is_written_down(config: dict[str, Any]) -> None:
    process = MemoryTables().process()
    processing = Processing(iterator=IteratorUse("mine", config))
    process.catalog.create("a", schema_of(row_keys={"id": "int64"}), processing=processing)
    (declared,) = declarations_of(process.texts())
    assert declared.processing == processing


def test_every_setting_can_be_said() -> None:
    usual = msgspec.to_builtins(TableSettings())
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in usual.items())
    text = f'name = "a"\n[row_keys]\nid = "int64"\n[settings]\n{lines}\n'
    process = MemoryTables().process()
    process.apply({"a.toml": text})
    assert "settings" not in process.texts()["a.toml"]

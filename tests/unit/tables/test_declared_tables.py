"""Files declare tables: what `apply` makes of them."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidError, TableQuarantinedError
from lakebed.tables.plan_steps import TablesPlan
from tests.dsl.memory_tables import MemoryTables

TRIPS = """
name = "trips"
split_points = ["g", "p"]
[row_keys]
id = "string"
[sort_keys]
at = "int64"
[values]
fare = "float32"
day = "date32?"
tags = { list = "string" }
[settings]
leaf_rows_max = 5_000_000
[processing]
filter = "fare > 0"
[processing.age_off]
field = "day"
seconds = 7776000
"""
RIDES = """
name = "rides"
[row_keys]
id = "int64"
[values]
n = "int32?"
"""
BOTH = {"trips.toml": TRIPS, "rides.toml": RIDES}


def said(plan: TablesPlan) -> list[str]:
    return [f"{step.action} {step.table}" for step in plan.steps]


def rides(
    *values: str, head: str = "", rest: str = "", key: str = 'id = "int64"'
) -> dict[str, str]:
    lines = "\n".join(values)
    return {"rides.toml": f'name = "rides"\n{head}\n[row_keys]\n{key}\n[values]\n{lines}\n{rest}'}


def not_applied(lake: lakebed.Lake, files: dict[str, str], **how: object) -> str:
    before = {name: lake.table(name).definition for name in lake.tables()}
    with pytest.raises(InvalidError) as applied:
        lake.apply_tables(files, **how)
    assert {name: lake.table(name).definition for name in lake.tables()} == before
    return str(applied.value)


def refused(lake: lakebed.Lake, files: dict[str, str], **how: object) -> str:
    with pytest.raises(InvalidError) as planned:
        lake.plan_tables(files, **how)
    assert str(planned.value) == not_applied(lake, files, **how)
    return str(planned.value)


def test_tables_are_made_as_files_say(lake: lakebed.Lake) -> None:
    assert said(lake.plan_tables(BOTH)) == ["create rides", "create trips"]
    assert lake.tables() == []
    assert said(lake.apply_tables(BOTH)) == ["create rides", "create trips"]
    trips = lake.table("trips")
    assert trips.schema == lakebed.schema_of(
        row_keys={"id": "string"},
        sort_keys={"at": "int64"},
        values={"fare": "float32", "day": "date32?", "tags": {"list": "string"}},
    )
    assert trips.split_points == ["g", "p"]
    assert trips.settings.leaf_rows_max == 5_000_000
    assert trips.processing is not None
    assert trips.processing.age_off == lakebed.AgeOff("day", 7_776_000)


def test_twice_changes_nothing(lake: lakebed.Lake) -> None:
    lake.apply_tables(BOTH)
    numbers = {name: lake.status(name)[0].number for name in lake.tables()}
    again = lake.apply_tables(BOTH)
    assert (again.steps, again.unchanged) == ((), ("rides", "trips"))
    assert {name: lake.status(name)[0].number for name in lake.tables()} == numbers


def test_fields_settings_and_processing_change_in_one_commit(lake: lakebed.Lake) -> None:
    lake.apply_tables(rides('n = "int32?"', 'old = "string?"'))
    before = lake.status("rides")[0].number
    files = rides(
        'n = "int64?"',
        'day = "date32?"',
        'pairs = { type = { map = ["string", "int64"] }, nullable = true }',
        rest='[settings]\njob_files_max = 20\n[processing]\nage_off = {field="day", seconds=60}\n',
    )
    plan = lake.plan_tables(files)
    (step,) = plan.steps
    assert step.details == (
        "drop old",
        "widen n to int64",
        "add day: date32",
        'add pairs: {"map": ["string", "int64"]}',
        'processing: none -> {"age_off": {"field": "day", "seconds": 60, "unit": null}}',
        "job_files_max: 12 -> 20",
    )
    lake.apply_tables(files, losses=plan.losses)
    assert lake.status("rides")[0].number == before + 1
    table = lake.table("rides")
    assert [f"{f.name} {f.type}" for f in table.schema.values] == [
        "n int64",
        "day date32",
        "pairs map<string, int64>",
    ]
    assert lake.apply_tables(files).steps == ()
    back = rides('n = "int64?"', 'day = "date32?"')
    assert "processing" in str(lake.plan_tables(back).steps)
    lake.apply_tables(back, losses=lake.plan_tables(back).losses)
    assert (table.settings.job_files_max, table.processing) == (12, None)


def test_fields_and_keys_are_renamed(lake: lakebed.Lake) -> None:
    lake.apply_tables(rides('fare = "float64?"', 'n = "int64?"'))
    lake.table("rides").ingest(pa.table({"id": [1], "fare": [2.5], "n": [7]}))
    files = rides(
        'price = { type = "float64?", was = "fare" }',
        'fare = "int64?"',
        'n = "int64?"',
        key='key = { type = "int64", was = "id" }',
    )
    assert lake.plan_tables(files).losses == ()
    assert lake.apply_tables(files).steps[0].details == (
        "rename id to key",
        "rename fare to price",
        "add fare: int64",
    )
    rows = lake.table("rides").query().read_all().to_pylist()
    assert rows == [{"key": 1, "price": 2.5, "fare": None, "n": 7}]
    assert lake.apply_tables(files).steps == ()


@pytest.mark.parametrize(
    ("values", "more", "says"),
    [
        (['n = "int32?"'], {"key": 'id = "string"'}, "a table of another name with these keys"),
        (['n = "int32?"'], {"key": 'id = "int64"\nat = "int64"'}, "the keys of a table"),
        (['n = "int32?"', 'm = "int64"'], {}, "an added field must be nullable"),
        (['n = "string?"'], {}, "it can become int64; or declare a field of another name"),
        (['n = "int32"'], {}, "a field that is nullable stays so"),
        (['n = "int32?"'], {"rest": "[settings]\njob_files_max = 2"}, "size_ratio"),
        (
            ['n = "int32?"'],
            {"rest": '[settings]\ncompaction_strategy = "mine"'},
            "no such strategy",
        ),
        (['n = "int32?"'], {"rest": '[processing]\niterator = {name="x"}'}, "no such iterator"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(
    lake: lakebed.Lake, values: list[str], more: dict[str, str], says: str
) -> None:
    lake.apply_tables(BOTH)
    said = refused(
        lake, {**BOTH, **rides(*values, **more), "new.toml": TRIPS.replace("trips", "new")}
    )
    assert says in said
    assert "rides.toml" in said
    assert lake.tables() == ["rides", "trips"]


def test_a_processing_that_is_not_right_for_rows_is_refused_before_anything_changes(
    lake: lakebed.Lake,
) -> None:
    files = rides('n = "int64?"', rest='[processing]\nfilter = "n > 3"')
    lake.apply_tables(files)
    lake.apply_tables(rides('n = "int64?"', rest='[processing]\nfilter = "n > 2"'))
    lake.table("rides").ingest(pa.table({"id": [1], "n": [7]}))
    said = refused(lake, files | {"trips.toml": TRIPS} | rides('n = "int64?"'))
    assert "a filter can only become stricter" in said


def test_a_field_that_the_old_processing_names_is_dropped_behind_it(lake: lakebed.Lake) -> None:
    lake.apply_tables(rides('a = "date32?"', rest='[processing]\nage_off={field="a", seconds=9}'))
    files = rides('b = "date32?"', rest='[processing]\nage_off={field="b", seconds=9}')
    lake.apply_tables(files, losses=lake.plan_tables(files).losses)
    assert lake.table("rides").processing == lakebed.Processing(age_off=lakebed.AgeOff("b", 9))
    assert lake.apply_tables(files).steps == ()


def test_a_dropped_field_needs_consent(lake: lakebed.Lake) -> None:
    lake.apply_tables(rides('n = "int64?"', 'm = "int64?"'))
    lake.table("rides").ingest(pa.table({"id": [1], "n": [7], "m": [8]}))
    files = rides('n = "int64?"')
    assert "field 'm' of table rides" in not_applied(lake, files)
    (loss,) = lake.plan_tables(files).losses
    assert (loss.table, loss.field, loss.rows) == ("rides", "m", 1)
    lake.table("rides").add_field("more", "int64?")
    assert "field 'more' of table rides" in not_applied(lake, files, losses=[loss])
    lake.table("rides").drop_field("more")
    lake.apply_tables(files, losses=[loss])
    assert [field.name for field in lake.table("rides").schema.values] == ["n"]


def test_a_table_is_renamed_and_its_old_name_may_be_made_anew(lake: lakebed.Lake) -> None:
    lake.apply_tables(rides('n = "int64?"'))
    lake.table("rides").ingest(pa.table({"id": [1], "n": [7]}))
    files = {
        "trips.toml": rides('n = "int64?"', head='was = "rides"')["rides.toml"].replace(
            'name = "rides"', 'name = "trips"'
        ),
        "rides.toml": RIDES,
    }
    assert said(lake.apply_tables(files)) == ["rename trips", "create rides"]
    assert lake.table("trips").query().read_all().num_rows == 1
    assert lake.table("rides").query().read_all().num_rows == 0
    assert lake.apply_tables(files).steps == ()


def test_names_move_up_in_the_order_in_which_they_are_free(lake: lakebed.Lake) -> None:
    def named(name: str, was: str = "") -> str:
        return f'name = "{name}"\n{was}\n[row_keys]\nid = "int64"\n'

    lake.apply_tables({"a.toml": named("a"), "b.toml": named("b")})
    a, b = lake.status("a")[0].id, lake.status("b")[0].id
    files = {"b.toml": named("b", 'was = "a"'), "c.toml": named("c", 'was = "b"')}
    assert said(lake.apply_tables(files)) == ["rename c", "rename b"]
    assert (lake.status("b")[0].id, lake.status("c")[0].id) == (a, b)
    assert lake.apply_tables(files).steps == ()


def test_a_new_name_that_another_table_has_is_refused(lake: lakebed.Lake) -> None:
    lake.apply_tables(BOTH)
    said = refused(lake, {"trips.toml": 'was = "rides"' + TRIPS})
    assert "the new name is taken by another table" in said
    assert "was=rides" in said


def test_a_table_that_no_file_made_is_adopted_only_when_that_is_meant(lake: lakebed.Lake) -> None:
    schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"n": "int32?"})
    lake.create_table("rides", schema)
    said_ = refused(lake, BOTH)
    assert "write `adopt = true`" in said_
    assert lake.tables() == ["rides"]
    wide = rides('n = "int64?"', head="adopt = true")
    assert "a table to adopt has a field of another type" in refused(lake, wide)
    files = rides('n = "int32?"', 'm = "int64?"', head="adopt = true")
    assert said(lake.apply_tables(files)) == ["adopt rides", "change rides"]
    assert lake.apply_tables(files).steps == ()
    assert lake.apply_tables(rides('n = "int32?"', 'm = "int64?"')).steps == ()


def test_online_is_said_too(lake: lakebed.Lake) -> None:
    files = rides('n = "int32?"', head="online = false")
    assert said(lake.apply_tables(files)) == ["create rides", "offline rides"]
    assert lake.table_condition("rides") == "offline"
    assert lake.apply_tables(files).steps == ()
    assert said(lake.apply_tables(rides('n = "int32?"'))) == ["online rides"]
    assert lake.table_condition("rides") == "online"


def test_what_no_file_declares_any_more_is_left_alone_or_removed(lake: lakebed.Lake) -> None:
    lake.create_table("own", lakebed.schema_of(row_keys={"id": "int64"}))
    lake.apply_tables(BOTH)
    lake.table("rides").ingest(pa.table({"id": [1], "n": pa.array([7], pa.int32())}))
    files = {"trips.toml": TRIPS}
    plan = lake.apply_tables(files)
    assert (plan.steps, plan.left_alone) == ((), ("rides",))
    assert said(lake.apply_tables(files, remove="offline")) == ["offline rides"]
    assert lake.apply_tables(files, remove="offline").steps == ()
    assert "table rides" in not_applied(lake, files, remove="drop")
    (loss,) = lake.plan_tables(files, remove="drop").losses
    assert (loss.table, loss.field, loss.rows) == ("rides", "", 1)
    assert loss.size is not None
    assert loss.size > 100
    assert said(lake.apply_tables(files, remove="drop", losses=[loss])) == ["drop rides"]
    assert lake.tables() == ["own", "trips"]
    assert "did you mean 'drop'?" in refused(lake, files, remove="dropp")


def test_a_table_of_the_same_name_made_by_hand_is_not_dropped(lake: lakebed.Lake) -> None:
    lake.apply_tables(BOTH)
    losses = lake.plan_tables({"trips.toml": TRIPS}, remove="drop").losses
    lake.drop_table("rides")
    lake.create_table("rides", lakebed.schema_of(row_keys={"id": "int64"}))
    assert lake.apply_tables({"trips.toml": TRIPS}, remove="drop", losses=losses).steps == ()
    assert lake.tables() == ["rides", "trips"]


def test_a_table_in_quarantine_is_left_alone(lake: lakebed.Lake) -> None:
    lake.apply_tables(BOTH)
    lake.quarantine("rides")
    plan = lake.apply_tables({**BOTH, **rides('n = "int64?"')})
    assert (plan.steps, plan.quarantined, plan.unchanged) == ((), ("rides",), ("trips",))
    moved = 'name = "other"\nwas = "rides"\n[row_keys]\nid = "int64"\n'
    plan = lake.apply_tables({"trips.toml": TRIPS, "other.toml": moved})
    assert (plan.steps, plan.quarantined) == ((), ("other",))
    assert lake.tables() == ["rides", "trips"]
    with pytest.raises(TableQuarantinedError):
        lake.table("rides")


def test_a_backup_knows_what_is_declared(lake: lakebed.Lake, tmp_path: Path) -> None:
    lake.create_table("own", lakebed.schema_of(row_keys={"id": "int64"}))
    lake.apply_tables(BOTH)
    lake.backup(tmp_path / "copy")
    with lakebed.connect(tmp_path / "copy") as copy:
        assert copy.apply_tables({"trips.toml": TRIPS}, remove="offline").steps[0].table == "rides"
        assert copy.table_condition("own") == "online"


def watched(folder: str, name: str = "rides") -> dict[str, str]:
    said = f'watch = "{folder}"' if folder else ""
    return {f"{name}.toml": f'name = "{name}"\n{said}\n[row_keys]\nid = "int64"\n'}


def test_a_declared_folder_is_watched_until_no_file_says_so() -> None:
    process = MemoryTables().process()

    def folders() -> list[str]:
        return [entry.watched for entry in process.catalog.list()]

    assert said(process.apply(watched("s3://landing/a"))) == ["create rides", "watch rides"]
    assert folders() == ["s3://landing/a/"]
    assert process.apply(watched("s3://landing/a/")).steps == ()
    plan = process.apply(watched("s3://landing"))
    assert said(plan) == ["watch rides"]
    assert plan.steps[0].details == ("watch: s3://landing/a/ -> s3://landing/",)
    assert said(process.apply(watched(""))) == ["watch rides"]
    assert folders() == [""]


def test_tables_may_exchange_the_folders_that_they_watch() -> None:
    process = MemoryTables().process()
    a, b = "s3://landing/a/", "s3://landing/b/"
    process.apply(watched(a, "one") | watched(b, "other"))
    process.apply(watched(b, "one") | watched(a, "other"))
    assert [entry.watched for entry in process.catalog.list()] == [b, a]


def test_a_folder_that_cannot_be_watched_is_refused_and_nothing_is_changed() -> None:
    process = MemoryTables().process()
    process.catalog.create("own", lakebed.schema_of(row_keys={"id": "int64"}))
    process.catalog.watch("own", "s3://landing/own")
    for files, problem in (
        (watched("landing"), "not a folder of S3.*file=rides.toml at=watch"),
        (watched("s3://a/", "one") | watched("s3://a", "two"), "two tables watch one folder"),
        (watched("s3://elsewhere/"), "outside the allowed sources.*s3://landing/"),
        (watched("s3://landing/own/"), "another table watches this folder.*table=own"),
    ):
        with pytest.raises(InvalidError, match=problem):
            process.apply(files)
        assert [entry.name for entry in process.catalog.list()] == ["own"]


def test_a_lake_in_a_directory_is_told_of_no_files(lake: lakebed.Lake) -> None:
    assert "a lake in a directory is not told of files" in refused(lake, watched("s3://landing/"))
    assert said(lake.apply_tables(watched(""))) == ["create rides"]

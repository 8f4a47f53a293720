"""fsck and its repairs over a lake on AWS: the damages of the unit tests, and some of AWS's own."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from lakebed.backends.aws import transaction_logs
from lakebed.bootstrap.aws import open_instance
from lakebed.config.deployments.instance_resources import InstanceResources, encode_resources
from lakebed.config.dynamo_tables import LOG_TABLE, REGISTRY_TABLE, TRACKER_TABLE
from lakebed.config.instance import InstanceId, parameter_name
from lakebed.errors import LogRolledBackError
from lakebed.inspection.fsck import FsckReport
from lakebed.lake import Lake
from lakebed.model.paths import snapshot_of
from lakebed.statestore.answers import Retry
from tests.e2e.damageable_aws_lake import DamageableAwsLake
from tests.servers.fixtures import ministack  # noqa: F401 - a fixture
from tests.servers.s3 import BUCKET, S3Server
from tests.unit.inspection.damageable_lakes import DamageableLake
from tests.unit.inspection.damages import (
    DAMAGES,
    Damage,
    a_flipped_bit_in_a_snapshot,
    a_flipped_bit_in_the_log,
    a_name_gone,
    a_scrambled_cache,
    an_old_object,
    flipped,
    rows_spilled,
)
from tests.unit.inspection.lakes import SCHEMA, fill, rows

INSTANCE = InstanceId("damageable")
SMALL_BODY_BYTES = 300
"""Larger bodies of entries go to the object store here, so that some do."""


def a_large_body_gone(lake: DamageableLake, rng: random.Random) -> set[str]:
    assert isinstance(lake, DamageableAwsLake)
    lake.remove(rng.choice(lake.large_bodies()))
    return {"log-damaged"}


def a_flipped_bit_in_a_large_body(lake: DamageableLake, rng: random.Random) -> set[str]:
    assert isinstance(lake, DamageableAwsLake)
    path = rng.choice(lake.large_bodies())
    lake.write(path, flipped(lake.read(path), rng, start=1))
    return {"log-damaged"}


def a_large_body_cut_off(lake: DamageableLake, rng: random.Random) -> set[str]:
    assert isinstance(lake, DamageableAwsLake)
    path = rng.choice(lake.large_bodies())
    body = lake.read(path)
    lake.write(path, body[: rng.randrange(len(body))])
    return {"log-damaged"}


def an_entry_emptied(lake: DamageableLake, rng: random.Random) -> set[str]:
    assert isinstance(lake, DamageableAwsLake)
    lake.empty_entry(rng.choice(lake.entries()[1:])[0])  # the first: as if truncated further
    return {"log-gap"}


DAMAGES_ON_AWS: tuple[tuple[Damage, int], ...] = (
    *DAMAGES,
    (a_large_body_gone, 10),
    (a_flipped_bit_in_a_large_body, 20),
    (a_large_body_cut_off, 10),
    (an_entry_emptied, 10),
)
MORE_OFTEN = 3
"""How often, times as often as in a directory's quick test, each damage is planted."""
MENDED = (
    a_flipped_bit_in_a_snapshot,
    a_scrambled_cache,
    an_old_object,
    rows_spilled,
)


@pytest.fixture(scope="module")
def whole(
    ministack: S3Server,  # noqa: F811 - the fixture
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[DamageableAwsLake]:
    folder = tmp_path_factory.mktemp("damageable")
    resources = InstanceResources(
        instance=INSTANCE,
        bucket=BUCKET,
        prefix=ministack.new_prefix(),
        log_table=ministack.new_table(LOG_TABLE),
        registry_table=ministack.new_table(REGISTRY_TABLE),
        tracker_table=ministack.new_table(TRACKER_TABLE),
    )
    with pytest.MonkeyPatch.context() as patch, closing(ministack.clients()) as clients:
        for name, value in ministack.environment().items():
            patch.setenv(name, value)
        patch.setenv("LAKEBED_CACHE", str(folder / "cache"))
        patch.setattr(transaction_logs, "BODY_BYTES_MAX", SMALL_BODY_BYTES)
        text = encode_resources(resources)
        clients.ssm.put_parameter(
            Name=parameter_name(INSTANCE), Value=text, Type="String", Overwrite=True
        )
        with Lake(open_instance(INSTANCE)) as lake:
            fill(lake)
        here = folder / "cache" / INSTANCE
        yield DamageableAwsLake(
            resources,
            ministack,
            clients,
            states=here / "states",
            spill=here / "spill",
            saved=folder / "saved",
        )


@pytest.fixture
def damageable(whole: DamageableAwsLake) -> Iterator[DamageableAwsLake]:
    yield whole
    whole.restore()


def newest_snapshot(lake: DamageableAwsLake) -> int:
    return max(found[0] for path in lake.paths("snapshots/") if (found := snapshot_of(path)))


def fsck() -> FsckReport:
    with Lake(open_instance(INSTANCE)) as lake:
        return lake.fsck(deep=True)


def test_a_clean_lake_has_no_finding(damageable: DamageableAwsLake) -> None:
    assert damageable.large_bodies()
    assert len(damageable.paths("snapshots/")) == 2
    assert fsck().findings == ()
    damageable.drop_cache()
    assert fsck().findings == ()


@pytest.mark.parametrize(
    ("damage", "_times"), DAMAGES_ON_AWS, ids=lambda d: getattr(d, "__name__", "")
)
def test_every_kind_of_damage_is_found(
    damageable: DamageableAwsLake, damage: Damage, _times: int
) -> None:
    check_found(damageable, damage, 0)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("damage", "times"), DAMAGES_ON_AWS, ids=lambda d: getattr(d, "__name__", "")
)
def test_all_of_a_thousand_damages_are_found(
    damageable: DamageableAwsLake, damage: Damage, times: int
) -> None:
    for seed in range(1, MORE_OFTEN * times + 1):
        check_found(damageable, damage, seed)
        damageable.restore()


def test_damages_are_many() -> None:
    assert MORE_OFTEN * sum(times for _, times in DAMAGES_ON_AWS) >= 1_000


def check_found(damageable: DamageableAwsLake, damage: Damage, seed: int) -> None:
    wanted = damage(damageable, random.Random(seed))
    found = {finding.code for finding in fsck().findings}
    assert found & wanted, f"seed {seed}: {found} instead of {wanted}"


@pytest.mark.parametrize("damage", MENDED)
def test_what_is_mended_is_clean_afterwards(damageable: DamageableAwsLake, damage: Damage) -> None:
    damage(damageable, random.Random(1))
    with Lake(open_instance(INSTANCE)) as lake:
        report = lake.fsck(deep=True)
        done = lake.repair(lake.plan_repair(report))
        assert done
        assert not [one.problem for one in done if one.problem]
    assert fsck().findings == ()


def test_a_table_whose_name_was_lost_gets_another(damageable: DamageableAwsLake) -> None:
    a_name_gone(damageable, random.Random(1))
    with Lake(open_instance(INSTANCE)) as lake:
        (done,) = lake.repair(lake.plan_repair(lake.fsck()))
        assert not done.problem
        (name,) = lake.tables()
        assert name.startswith("recovered-")
        assert lake.table(name).query().read_all().num_rows
        assert lake._app.catalog.sweep_nameless() == 0


def test_a_damaged_log_is_left_as_it_is(damageable: DamageableAwsLake) -> None:
    a_flipped_bit_in_the_log(damageable, random.Random(1))
    an_old_object(damageable, random.Random(1))
    with Lake(open_instance(INSTANCE)) as lake:
        plan = lake.plan_repair(lake.fsck())
    assert plan.steps == ()
    assert {one.code for one in plan.left} >= {"log-damaged"}


def test_a_mark_of_truncation_that_was_lost_does_no_harm(damageable: DamageableAwsLake) -> None:
    damageable.drop_mark()
    damageable.drop_cache()
    assert not fsck().is_damaged


def test_log_and_states_of_a_lake_on_aws_can_be_looked_into(damageable: DamageableAwsLake) -> None:
    oldest, newest = damageable.entries()[0][0], damageable.entries()[-1][0]
    with Lake(open_instance(INSTANCE)) as lake:
        table = lake.table("t")
        listing = table.log()
        assert listing.oldest == oldest
        assert [one.number for one in listing.entries] == [*range(oldest, newest + 1)]
        with table._opened.head.reading() as state:
            assert table.state().digest == state.digest().hex()
        assert table.state(number=oldest).number == oldest
        assert table.write_snapshot() == newest
        assert lake.fsck(deep=True).findings == ()


@pytest.mark.parametrize("lost", [1, 3])
def test_a_log_that_was_set_back_is_noticed_by_the_next_commit_and_stays_as_it_is(
    damageable: DamageableAwsLake, lost: int
) -> None:
    """By a process that has the table open, and by the next one, which has its cache."""
    newest = damageable.entries()[-1][0]
    with Lake(open_instance(INSTANCE)) as lake:
        table = lake.table("t")
        damageable.set_back(newest - lost)
        left = damageable.items()
        for _ in range(2):
            with pytest.raises(LogRolledBackError, match="lakebed fsck") as error:
                table.ingest(rows(9, 20))
            assert error.value.facts["log_ends"] == newest - lost
        with pytest.raises(LogRolledBackError):
            table.query().read_all()
    with Lake(open_instance(INSTANCE)) as lake, pytest.raises(LogRolledBackError):
        lake.table("t").ingest(rows(9, 20))
    assert damageable.items() == left
    (found,) = [one for one in fsck().findings if one.severity == "damage"]
    assert (found.code, found.facts) == (
        "log-behind",
        {"table": "t", "ends": newest - lost, "heard_of": newest},
    )
    assert damageable.items() == left


def test_a_log_that_was_set_back_is_noticed_without_a_cache_by_a_newer_snapshot(
    damageable: DamageableAwsLake,
) -> None:
    newest = newest_snapshot(damageable)
    damageable.set_back(newest - 1)
    damageable.drop_cache()
    left = damageable.items()
    for _ in range(2):
        with Lake(open_instance(INSTANCE)) as lake:
            with pytest.raises(LogRolledBackError) as error:
                lake.table("t").ingest(rows(9, 20))
            assert error.value.facts == {"entry": newest, "log_ends": newest - 1}
    assert damageable.items() == left
    codes = {one.code for one in fsck().findings if one.severity == "damage"}
    assert codes == {"log-behind"}


def test_a_log_that_was_set_back_to_behind_all_that_is_known_goes_on(
    damageable: DamageableAwsLake,
) -> None:
    """Without a cache, behind the newest snapshot, nothing knows that there was more."""
    newest = newest_snapshot(damageable)
    damageable.set_back(newest)
    damageable.drop_cache()
    with Lake(open_instance(INSTANCE)) as lake:
        assert lake.table("t").ingest(rows(9, 20)).number == newest + 1
    assert not fsck().is_damaged


def test_a_gap_is_closed_by_nobody(damageable: DamageableAwsLake) -> None:
    """Entries are lost in the log's midst, and newer ones are still there."""
    after = newest_snapshot(damageable)
    damageable.set_entry(after + 1, None)
    damageable.drop_cache()
    left = damageable.items()
    with Lake(open_instance(INSTANCE)) as lake:
        table = lake.table("t")
        table._opened.head._retry = Retry(seconds_max=0.1)
        with pytest.raises(LogRolledBackError, match="lakebed fsck"):
            table.ingest(rows(9, 20))
    assert damageable.items() == left
    assert "log-gap" in {one.code for one in fsck().findings}


def test_a_file_that_was_deleted_is_brought_back(
    ministack: S3Server,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """In a bucket that keeps versions, as the stacks make it."""
    for name, value in ministack.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LAKEBED_CACHE", str(tmp_path))
    resources = InstanceResources(
        instance=InstanceId("versions"),
        bucket="versioned-lake-tests",
        log_table=ministack.new_table(LOG_TABLE),
        registry_table=ministack.new_table(REGISTRY_TABLE),
        tracker_table=ministack.new_table(TRACKER_TABLE),
    )
    with closing(ministack.clients()) as clients:
        clients.s3.create_bucket(Bucket=resources.bucket)
        clients.s3.put_bucket_versioning(
            Bucket=resources.bucket, VersioningConfiguration={"Status": "Enabled"}
        )
        clients.ssm.put_parameter(
            Name="/lakebed/versions", Value=encode_resources(resources), Type="String"
        )
    with Lake(open_instance("versions")) as lake:
        table = lake.create_table("t", SCHEMA)
        for seed in range(3):
            table.ingest(rows(seed, 20))
        right = table.query().read_all()
        objects = lake._app.objects
        files = [path for path in objects.list("tables/") if path.endswith(".parquet")]
        for _ in range(2):  # deleted twice: two marks
            objects.delete(files[:2])
        report = lake.fsck(deep=True)
        assert [one.code for one in report.findings] == ["file-missing"] * 2
        (done,) = lake.repair(lake.plan_repair(report))
        assert (done.count, done.problem) == (2, "")
        assert lake.fsck(deep=True).findings == ()
        assert lake.table("t").query().read_all() == right
        plan = lake.plan_repair(report)
        lost = msgspec.structs.replace(plan.steps[0], paths=("tables/t/files/never",))
        (done,) = lake.repair(msgspec.structs.replace(plan, steps=(lost,)))
        assert "brought_back=0 wanted=1" in done.problem

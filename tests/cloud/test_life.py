"""An instance's life: paused, resumed, taken down keeping its data, deployed again over them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakebed.backends.system.clock import SystemClock
from lakebed.errors import InvalidError
from localcloud.cloud import LocalCloud
from localcloud.templates.synthesis import synthesize
from tests.cloud.conftest import ROOT
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.dsl.table_rows import SCHEMA, SMALL_LEAVES, rows, same_rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Deploy = Callable[..., Path]
SPLITTING = f"lakebed-{INSTANCE}-splitting"


@contextmanager
def deployed(assembly: Path, folder: Path) -> Iterator[RunningInstance]:
    """One deployment over what earlier ones left in the folder."""
    with LocalCloud(assembly, folder, clock=SystemClock(), kept=True) as cloud:
        instance = RunningInstance(cloud, folder / "cache")
        with instance.led_here():
            yield instance


@pytest.fixture
def paused(tmp_path: Path) -> Path:
    """What is deployed with the setting `paused`."""
    folder = tmp_path / "paused"
    context = {"instance": INSTANCE, "architecture": "machine", "paused": "true"}
    synthesize(ROOT, folder, context)
    return folder


def leaves(instance: RunningInstance, table: str) -> int:
    with instance.lake() as lake:
        return lake.status(table)[0].leaves


def test_a_paused_instance_does_nothing_until_it_is_resumed(
    assembly: Path, paused: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cloud"
    with deployed(assembly, folder) as instance, instance.lake() as lake:
        lake.create_table("worn", SCHEMA, settings=SMALL_LEAVES).ingest(rows(700))
    with deployed(paused, folder) as instance:
        instance.cloud.advance(600)
        assert leaves(instance, "worn") == 1
        with instance.lake() as lake:
            assert same_rows(lake.table("worn"), rows(700))
    with deployed(assembly, folder) as instance:
        instance.cloud.fire()
        assert leaves(instance, "worn") > 1
        with instance.lake() as lake:
            assert same_rows(lake.table("worn"), rows(700))
        assert not instance.cloud.failures


def test_what_a_paused_instance_is_asked_waits(
    assembly: Path, paused: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cloud"
    with deployed(paused, folder) as instance, instance.lake() as lake:
        table = lake.create_table("queued", SCHEMA)
        table.ingest(rows(100), queued=True)
        instance.cloud.advance(600)
        assert table.query().read_all().num_rows == 0
    with deployed(assembly, folder) as instance, instance.lake() as lake:
        instance.cloud.settle()
        assert same_rows(lake.table("queued"), rows(100))


def test_data_outlive_the_instance_and_are_taken_over_again(assembly: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cloud"
    with deployed(assembly, folder) as instance:
        with instance.lake() as lake:
            table = lake.create_table("kept", SCHEMA, settings=SMALL_LEAVES)
            table.ingest(rows(700), job="first")
            instance.cloud.fire(SPLITTING)
        assert instance.cloud.destroy() == []
        with pytest.raises(InvalidError, match="there is no such instance"), instance.lake():
            pass
    with deployed(assembly, folder) as instance, instance.lake() as lake:
        table = lake.table("kept")
        assert same_rows(table, rows(700))
        table.ingest(rows(700), job="first")
        table.ingest(rows(300, seed=1), job="second")
        instance.cloud.fire()
        assert same_rows(table, rows(700), rows(300, seed=1))
        assert not instance.cloud.failures

"""What feeds of a lake in a directory need beside its tables."""

from contextlib import ExitStack
from pathlib import Path

import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.feeds.stores import SECRETS_FOLDER, local_feed_stores
from lakebed.errors import DeniedError
from lakebed.feed_errors import SecretMissingError
from lakebed.ports.leases import WorkerId


def test_secrets_are_read_from_the_environment_first_then_from_private_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as opened:
        secrets = local_feed_stores(tmp_path, opened, VirtualClock()).secrets
        with pytest.raises(SecretMissingError, match="LAKEBED_SECRET_KAFKA"):
            secrets.read("kafka")
        folder = tmp_path / SECRETS_FOLDER
        folder.mkdir()
        (folder / "kafka").write_text("of the file\n")
        (folder / "kafka").chmod(0o644)
        with pytest.raises(DeniedError, match="chmod 600"):
            secrets.read("kafka")
        (folder / "kafka").chmod(0o600)
        assert secrets.read("kafka").reveal() == "of the file"
        monkeypatch.setenv("LAKEBED_SECRET_KAFKA", "of the environment")
        assert secrets.read("kafka").reveal() == "of the environment"


def test_a_lake_that_runs_no_feeds_has_no_files_of_them(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        names = {path.name for path in (tmp_path / "lake").iterdir()}
        assert not names & {"leases.sqlite", "feeds.sqlite"}
        lake._app.feeds.leases.beat(WorkerId("w1"), b"")
    assert (tmp_path / "lake" / "leases.sqlite").exists()

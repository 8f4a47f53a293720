"""Objects in a folder of a user's: who tidies up meets who begins an object."""

from pathlib import Path

import pytest

from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.plain_objects import PlainLocalObjects
from lakebed.backends.memory import VirtualClock


def test_an_object_begins_though_its_folder_was_tidied_away_just_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PlainLocalObjects(tmp_path / "out", VirtualClock())
    begun = LocalObjectStore._unfinished_file
    tidied = []

    def tidied_before(self: LocalObjectStore) -> object:
        if len(tidied) < 2:
            tidied.append(PlainLocalObjects(tmp_path / "out", VirtualClock()).tidy())
        return begun(self)

    monkeypatch.setattr(LocalObjectStore, "_unfinished_file", tidied_before)
    writer = store.create("a")
    writer.write(b"1")
    writer.finish()
    assert len(tidied) == 2
    assert list(store.list("")) == ["a"]

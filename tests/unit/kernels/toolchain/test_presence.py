import importlib
import logging
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from lakebed.kernels.toolchain import presence
from lakebed.observe import events
from lakebed.sorted_files.sorting.engines import COMPILED_ROWS_MIN, PLAIN, engine_for


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(presence.SWITCH, raising=False)
    presence._loads.cache_clear()
    yield
    presence._loads.cache_clear()


def without_numba(monkeypatch: pytest.MonkeyPatch, error: ImportError) -> None:
    usual = importlib.import_module

    def import_module(name: str) -> ModuleType:
        if name == "numba":
            raise error
        return usual(name)

    monkeypatch.setattr(importlib, "import_module", import_module)


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("No module named 'numba'"), ImportError("needs another numpy")]
)
def test_without_numba_the_plain_engine_works_and_the_log_says_so_once(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    error: ImportError,
) -> None:
    without_numba(monkeypatch, error)
    monkeypatch.setenv("LAKEBED_KERNEL_CACHE", str(tmp_path))
    with caplog.at_level(logging.INFO, "lakebed"):
        assert engine_for(COMPILED_ROWS_MIN) is PLAIN
        assert engine_for(COMPILED_ROWS_MIN) is PLAIN
    told = [record for record in caplog.records if record.event == events.KERNELS_ABSENT]
    assert len(told) == 1


def test_numba_is_not_asked_for_when_few_rows_are_ordered(monkeypatch: pytest.MonkeyPatch) -> None:
    without_numba(monkeypatch, ImportError("not to be imported"))
    assert engine_for(COMPILED_ROWS_MIN - 1) is PLAIN
    assert not presence._loads.cache_info().currsize


def test_kernels_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(presence.SWITCH, "off")
    assert engine_for(COMPILED_ROWS_MIN) is PLAIN


def test_many_rows_are_for_the_compiled_engine_where_numba_is_installed() -> None:
    pytest.importorskip("numba")
    assert engine_for(COMPILED_ROWS_MIN) is not PLAIN


def test_kernels_can_be_switched_on_for_small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setenv(presence.SWITCH, "always")
    assert engine_for(1) is not PLAIN

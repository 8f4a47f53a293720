"""Each policy that every lake has, by what can be seen of it: a default that is changed changes
what one of these sees."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lakebed.config.policies import PRESETS, Policy
from tests.unit.feeds.pacing import preset_behaviours as seen
from tests.unit.feeds.pacing.preset_behaviours import Bench, Make

Behaviour = Callable[[Make], str]

FAULT_TOLERANT: dict[Behaviour, str] = {
    seen.a_bad_record: "3 read, 2 stored, 1 quarantined, kept",
    seen.bad_records_in_a_row: "100",
    seen.many_bad_records_of_an_hour: "goes on",
    seen.a_lost_worker: "resumes",
    seen.failures_of_a_source: "10 times, 1-60 s",
    seen.statistics: "5 s",
    seen.congestion: "backpressure",
    seen.workers: "not elastic",
    seen.a_lag: "nothing",
    seen.a_gap: "1 recorded",
    seen.an_unknown_field: "1 read, 1 stored",
    seen.a_value_that_does_not_fit: "1 read, 1 quarantined",
    seen.no_value: "2 read, 2 stored",
    seen.a_late_row: "1 read, 1 stored",
    seen.an_equal_record: "2 read, 2 stored",
    seen.rounds: "size records age idle: 64 MiB, 1,000,000, 10 s, 1 s",
    seen.a_rate: "all",
    seen.a_spool: "none",
}
DIFFERS: dict[str, dict[Behaviour, str]] = {
    "Basic": {
        seen.a_bad_record: "record-refused",
        seen.bad_records_in_a_row: "0",
        seen.a_lost_worker: "worker-lost",
        seen.failures_of_a_source: "0 times",
        seen.statistics: "60 s",
    },
    "Monitored": {
        seen.a_lost_worker: "worker-lost",
        seen.failures_of_a_source: "0 times",
        seen.a_lag: "event at 60 s",
    },
    "FaultTolerant": {},
    "Spill": {seen.congestion: "spill, backpressure", seen.a_spool: "2,048 MiB"},
    "Discard": {seen.congestion: "discard, backpressure, discards 0.1"},
    "Throttle": {seen.congestion: "throttle, backpressure, keeps 0.01"},
    "Elastic": {
        seen.congestion: "elastic, backpressure",
        seen.workers: "1-10",
        seen.a_lag: "event at 60 s, more workers",
    },
    "Strict": {
        seen.a_bad_record: "record-refused",
        seen.a_lag: "event at 60 s",
        seen.a_gap: "position-gone",
        seen.an_unknown_field: "record-refused",
        seen.a_value_that_does_not_fit: "record-refused",
        seen.no_value: "2 read, 1 stored, 1 quarantined",
        seen.a_late_row: "1 read, 1 quarantined",
    },
}
SHOWN_BY: dict[str, tuple[Behaviour, tuple[object, ...]]] = {
    "on_record_error": (seen.a_bad_record, ("fail", "skip", "quarantine")),
    "errors_in_row_max": (seen.bad_records_in_a_row, (3, 99)),
    "on_worker_failure": (seen.a_lost_worker, ("stop", "resume")),
    "restarts_max": (seen.failures_of_a_source, (3, 10)),
    "restart_seconds_min": (seen.failures_of_a_source, (2.0,)),
    "restart_seconds_max": (seen.failures_of_a_source, (30.0,)),
    "statistics_seconds": (seen.statistics, (7.0,)),
    "on_congestion": (seen.congestion, (["throttle"], ["discard"], ["elastic"], ["spill"])),
    "spill_bytes": (seen.a_spool, (1 << 30,)),
    "discard_fraction": (seen.congestion, (0.2,)),
    "throttle_floor": (seen.congestion, (0.02,)),
    "workers_min": (seen.workers, (2,)),
    "workers_max": (seen.workers, (9,)),
    "lag_seconds_max": (seen.a_lag, (30, 90)),
    "on_lag": (seen.a_lag, ("alarm", "elastic", "fail")),
    "gap": (seen.a_gap, ("fail", "record")),
    "schema_column": (seen.an_unknown_field, ("freeze", "discard_field", "discard_record")),
    "schema_type": (
        seen.a_value_that_does_not_fit,
        ("freeze", "discard_field", "discard_record", "quarantine"),
    ),
    "late": (seen.a_late_row, ("accept", "divert", "drop")),
    "nulls": (seen.no_value, ("write", "ignore", "fail")),
    "errors_fraction_max": (seen.many_bad_records_of_an_hour, (0.5,)),
    "dedupe": (seen.an_equal_record, ("adjacent",)),
    "rate_records_max": (seen.a_rate, (100,)),
    "rotate_bytes": (seen.rounds, (1 << 20,)),
    "rotate_records": (seen.rounds, (7,)),
    "rotate_seconds": (seen.rounds, (7.0,)),
    "rotate_idle_seconds": (seen.rounds, (7.0,)),
    "rotate_at_minutes": (seen.rounds, (True,)),
}
"""By which behaviour a parameter is seen, and other values of it."""
ONE_VALUE = {"schema_table"}
SEEN_IN_OTHER_TESTS = {"idle_seconds", "dedupe_field", "once_seconds"}
"""In `test_event_windows.py`: of event time, which has rules of its own. In `test_once_values.py`,
on a clock of its own."""


def maker(folder: Path, preset: str, **own: object) -> Make:
    """Return what makes a bench of a policy that extends a preset. own: changes that stay."""
    count = itertools.count()

    def make(*, more: str = "", keys: str = "id", **changes: object) -> Bench:
        lines = [f"{name} = {json.dumps(value)}" for name, value in {**changes, **own}.items()]
        return Bench(folder / str(next(count)), preset, "\n".join(lines), more, keys)

    return make


@pytest.mark.parametrize("behaviour", FAULT_TOLERANT, ids=lambda one: one.__name__)
@pytest.mark.parametrize("preset", DIFFERS)
def test_a_preset_does_what_its_page_says(
    preset: str, behaviour: Behaviour, tmp_path: Path
) -> None:
    expected = DIFFERS[preset].get(behaviour, FAULT_TOLERANT[behaviour])
    assert behaviour(maker(tmp_path, preset)) == expected


@pytest.mark.parametrize("parameter", sorted({p for of in PRESETS.values() for p in of}))
def test_a_default_that_is_changed_is_seen(parameter: str, tmp_path: Path) -> None:
    if parameter in ONE_VALUE:
        return
    behaviour, values = SHOWN_BY[parameter]
    for preset, parameters in PRESETS.items():
        if parameter not in parameters:
            continue
        expected = DIFFERS[preset].get(behaviour, FAULT_TOLERANT[behaviour])
        default = parameters[parameter]
        for value in values:
            if value != (list(default) if isinstance(default, tuple) else default):
                folder = tmp_path / preset / str(values.index(value))
                found = behaviour(maker(folder, preset, **{parameter: value}))
                assert found != expected, (preset, parameter, value)


@pytest.mark.parametrize("parameter", SHOWN_BY)
def test_a_default_of_all_that_is_changed_is_seen(parameter: str, tmp_path: Path) -> None:
    needs: dict[str, dict[str, object]] = {
        "spill_bytes": {"on_congestion": ["spill"]},
        "discard_fraction": {"on_congestion": ["discard"]},
        "throttle_floor": {"on_congestion": ["throttle"]},
        "workers_min": {"on_congestion": ["elastic"]},
        "workers_max": {"on_congestion": ["elastic"]},
        "on_lag": {"lag_seconds_max": 60},
    }
    beside = needs.get(parameter, {})
    behaviour, values = SHOWN_BY[parameter]
    before = behaviour(maker(tmp_path / "before", "FaultTolerant", **beside))
    default = getattr(Policy(), parameter)
    for index, value in enumerate(values):
        if value != default:
            changed = {**beside, parameter: value}
            found = behaviour(maker(tmp_path / str(index), "FaultTolerant", **changed))
            assert found != before, (parameter, value)


def test_each_parameter_is_seen_or_said_to_be_missing() -> None:
    known = SHOWN_BY.keys() | ONE_VALUE | SEEN_IN_OTHER_TESTS
    assert known == set(Policy.__struct_fields__)
    assert DIFFERS.keys() == PRESETS.keys()

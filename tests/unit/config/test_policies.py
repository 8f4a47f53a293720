"""Policies: eight presets with exactly their defaults, and what users make of them."""

from typing import Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

from lakebed.config.policies import DEFAULT_POLICY, PRESETS, Policy
from lakebed.config.policy_definitions import (
    EXTENDS_MAX,
    PolicyDefinition,
    policy_definition,
    policy_of,
)
from lakebed.errors import InvalidError

FAULT_TOLERANT = {
    "on_record_error": "quarantine",
    "errors_in_row_max": 100,
    "errors_fraction_max": 1.0,
    "on_worker_failure": "resume",
    "restarts_max": 10,
    "restart_seconds_min": 1.0,
    "restart_seconds_max": 60.0,
    "on_congestion": ["backpressure"],
    "lag_seconds_max": 0,
    "gap": "record",
    "schema_table": "freeze",
    "schema_column": "discard_field",
    "schema_type": "quarantine",
    "late": "accept",
    "nulls": "write",
    "dedupe": "none",
    "rotate_bytes": 64 << 20,
    "rotate_records": 1_000_000,
    "rotate_seconds": 10.0,
    "rate_records_max": 0,
    "statistics_seconds": 5.0,
}
DIFFERENCES = {
    "Basic": {
        "on_record_error": "fail",
        "errors_in_row_max": 0,
        "on_worker_failure": "stop",
        "restarts_max": 0,
        "statistics_seconds": 60.0,
    },
    "Monitored": {"on_worker_failure": "stop", "restarts_max": 0, "lag_seconds_max": 60},
    "FaultTolerant": {},
    "Spill": {"on_congestion": ["spill", "backpressure"]},
    "Discard": {"on_congestion": ["discard", "backpressure"]},
    "Throttle": {"on_congestion": ["throttle", "backpressure"]},
    "Elastic": {
        "on_congestion": ["elastic", "backpressure"],
        "lag_seconds_max": 60,
        "on_lag": "elastic",
    },
    "Strict": {
        "on_record_error": "fail",
        "gap": "fail",
        "schema_column": "freeze",
        "schema_type": "freeze",
        "late": "divert",
        "nulls": "fail",
        "lag_seconds_max": 60,
    },
}
RUNGS = {
    "spill_bytes": 2 << 30,
    "discard_fraction": 0.1,
    "throttle_floor": 0.01,
    "workers_min": 1,
    "workers_max": 10,
}


def values(policy: Policy) -> dict[str, object]:
    found: dict[str, object] = msgspec.json.decode(msgspec.json.encode(policy))
    return found


def test_the_default_is_fault_tolerant_with_the_documented_parameters() -> None:
    assert DEFAULT_POLICY == "FaultTolerant"
    found = values(policy_of("FaultTolerant", {}))
    assert {name: found[name] for name in FAULT_TOLERANT} == FAULT_TOLERANT
    assert found == values(Policy())


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_preset_differs_from_it_in_exactly_this(name: str) -> None:
    default, found = values(Policy()), values(policy_of(name, {}))
    different = {key: value for key, value in found.items() if value != default[key]}
    assert different == DIFFERENCES[name]
    assert {key: found[key] for key in RUNGS} == RUNGS


def test_there_are_no_other_presets() -> None:
    assert set(PRESETS) == set(DIFFERENCES)


def test_a_policy_has_what_it_extends_but_for_its_changes() -> None:
    careful = policy_definition("Careful", {"extends": "Strict", "schema": {"type": "quarantine"}})
    more = policy_definition("More", {"extends": "Careful", "nulls": "ignore", "on_lag": "fail"})
    found = policy_of("More", {"Careful": careful, "More": more})
    wanted = values(policy_of("Strict", {})) | {
        "schema_type": "quarantine",
        "nulls": "ignore",
        "on_lag": "fail",
    }
    assert values(found) == wanted


@pytest.mark.parametrize("field", [one.name for one in msgspec.structs.fields(Policy)])
def test_what_a_parameter_says_names_each_word_that_it_may_be(field: str) -> None:
    hint = get_type_hints(Policy, include_extras=True)[field]
    allowed, meta = get_args(hint)
    words = get_args(allowed) if get_origin(allowed) is Literal else ()
    assert [word for word in words if f"`{word}`" not in meta.description] == []


def test_one_word_is_for_columns_and_types_alike() -> None:
    one = policy_definition("P", {"schema": "freeze"})
    assert one == PolicyDefinition(
        name="P", changes={"schema_column": "freeze", "schema_type": "freeze"}
    )


def test_a_policy_that_is_not_there_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidError, match="did you mean 'Strict'"):
        policy_of("Strickt", {}, at="connection.c.policy")
    one = policy_definition("P", {"extends": "FaultTolerent"})
    with pytest.raises(InvalidError, match=r"at=policy\.P\.extends.*did you mean 'FaultTolerant'"):
        policy_of("P", {"P": one})


@pytest.mark.parametrize("size", [1, 2, 5])
def test_policies_that_extend_each_other_in_a_circle_are_refused(size: int) -> None:
    known = {
        f"P{n}": PolicyDefinition(name=f"P{n}", extends=f"P{(n + 1) % size}") for n in range(size)
    }
    outside = known | {"Out": PolicyDefinition(name="Out", extends="P0")}
    for name in ("P0", "Out"):
        with pytest.raises(InvalidError, match=r"extends itself.*P0 -> .*P0"):
            policy_of(name, outside)


def test_a_chain_has_an_end() -> None:
    known = {
        f"P{n}": PolicyDefinition(name=f"P{n}", extends=f"P{n + 1}") for n in range(EXTENDS_MAX + 5)
    }
    with pytest.raises(InvalidError, match="too long"):
        policy_of("P0", known)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"workers_min": 11}, "workers_min.*at most workers_max"),
        ({"restart_seconds_min": 100}, "restart_seconds_min"),
        ({"on_congestion": ["spill", "spill"]}, "named twice.*on_congestion"),
        ({"dedupe": "window"}, "dedupe_field"),
        ({"dedupe_field": "id"}, "dedupe_field"),
    ],
)
def test_parameters_that_do_not_fit_together_are_refused(
    changes: dict[str, object], says: str
) -> None:
    with pytest.raises(InvalidError, match=says):
        policy_of("P", {"P": policy_definition("P", changes)})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"on_congestion": []}, "on_congestion.*a list of `backpressure`"),
        ({"on_congestion": ["wait"]}, "on_congestion.*`throttle`"),
        ({"errors_fraction_max": 1.5}, "0 to 1"),
        ({"throttle_floor": 0}, "above 0"),
        ({"rotate_at_minutes": 1}, "`true`, `false`"),
        ({"lag_seconds_max": "60"}, "0 to 31622400"),
        ({"lag_second_max": 60}, "did you mean 'lag_seconds_max'"),
    ],
)
def test_what_a_parameter_may_not_be_is_answered_with_what_it_may(
    changes: dict[str, object], says: str
) -> None:
    with pytest.raises(InvalidError, match=says):
        policy_definition("P", changes)

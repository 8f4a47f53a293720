import pytest

from lakebed.config.environments import (
    FunctionEnvironment,
    TableWorkEnvironment,
    TriggerEnvironment,
    environment_of,
    variables_named,
    variables_of,
)
from lakebed.errors import InvalidError

TRIGGER = TriggerEnvironment(
    instance="dev", work="garbage", registry_table="names", queue_url="https://queue"
)


def test_a_function_reads_what_the_stack_wrote() -> None:
    variables = variables_of(TRIGGER)
    assert variables == {
        "LAKEBED_INSTANCE": "dev",
        "LAKEBED_WORK": "garbage",
        "LAKEBED_REGISTRY_TABLE": "names",
        "LAKEBED_QUEUE_URL": "https://queue",
    }
    assert set(variables) == variables_named(TriggerEnvironment)
    assert environment_of(TriggerEnvironment, {**variables, "PATH": "/bin"}) == TRIGGER


@pytest.mark.parametrize("kind", [TriggerEnvironment, TableWorkEnvironment])
def test_variables_that_are_missing_are_named(kind: type[FunctionEnvironment]) -> None:
    with pytest.raises(InvalidError, match=r"LAKEBED_REGISTRY_TABLE.*deploy the instance again"):
        environment_of(kind, {"LAKEBED_INSTANCE": "dev", "LAKEBED_WORK": "garbage"})

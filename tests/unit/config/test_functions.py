import pytest

from lakebed.config.functions import full_disk_hint, states_bytes_max
from lakebed.config.instance import instance_settings
from lakebed.errors import InvalidError


@pytest.mark.parametrize("mib", [512, 513, 10_240])
def test_half_of_the_disk_that_is_set_keeps_states(mib: int) -> None:
    found = instance_settings({"function_disk_mib": str(mib)})
    assert found.function_disk_mib == mib
    assert states_bytes_max(found.function_disk_mib) == mib * 1_024 * 1_024 // 2


@pytest.mark.parametrize("mib", ["511", "10241", "0", "-512", "512.5", "half"])
def test_a_disk_that_lambda_does_not_give_is_refused(mib: str) -> None:
    with pytest.raises(InvalidError, match="not a value for the setting"):
        instance_settings({"function_disk_mib": mib})


def test_a_full_disk_is_told_with_the_setting_that_helps() -> None:
    assert "512 MiB: deploy with a larger `function_disk_mib`, at most 10240" in full_disk_hint(512)
    assert "several tables" in full_disk_hint(10_240)

import pytest

from lakebed.errors import NewerFormatError, ReleaseSkippedError
from lakebed.model.formats import OLDEST, Formats
from lakebed.model.releases import BEFORE, RELEASES, THIS
from lakebed.upgrades.check_deployment import CheckDeployment
from lakebed.upgrades.judge_deployment import refuse_deployment

NEWER = "99.0.0"
ABOVE = Formats(entry=THIS.formats.entry + 1, state=THIS.formats.state)


def never_asked() -> Formats | None:
    raise AssertionError("a registry that may not be there yet is not read")


@pytest.mark.parametrize("deployed", [None, "", "of my own", BEFORE.name, THIS.name])
def test_what_this_release_follows_may_be_deployed_over(deployed: str | None) -> None:
    refuse_deployment(deployed, never_asked)


def test_a_skipped_release_is_refused_with_what_to_deploy_first() -> None:
    oldest, second = RELEASES[0].name, RELEASES[1].name
    with pytest.raises(ReleaseSkippedError) as refused:
        refuse_deployment(oldest, never_asked)
    assert refused.value.facts["found"] == oldest
    assert refused.value.facts["this"] == THIS.name
    assert (refused.value.hint or "").startswith(f"deploy {second} first")


@pytest.mark.parametrize("allowed", [None, OLDEST, BEFORE.formats, THIS.formats])
def test_this_release_may_be_deployed_again_until_a_newer_one_is_finished(
    allowed: Formats | None,
) -> None:
    refuse_deployment(NEWER, lambda: allowed)


def test_afterwards_it_may_not() -> None:
    with pytest.raises(NewerFormatError, match=f"its upgrade is finished.*deploy {NEWER}"):
        refuse_deployment(NEWER, lambda: ABOVE)
    check = CheckDeployment(deployed=lambda: NEWER, allowed=lambda: ABOVE)
    with pytest.raises(NewerFormatError):
        check.run()

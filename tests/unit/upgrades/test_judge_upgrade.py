"""What may be done next: by the gate, what is deployed, and what processes say."""

import itertools

import pytest

from lakebed.errors import (
    InvalidError,
    NewerFormatError,
    OlderProcessError,
    ReleaseSkippedError,
    UnavailableError,
)
from lakebed.model.formats import NEWEST, OLDEST, Formats, at_least
from lakebed.model.names import Micros
from lakebed.model.releases import BEFORE, RELEASES, THIS, order_of, release_allowed
from lakebed.ports.processes import ProcessReport
from lakebed.upgrades.judge_upgrade import (
    UpgradeStatus,
    is_older,
    plan_of,
    refuse_newer,
    refuse_older,
    refuse_skipped,
    status_of,
)

SIX_O_CLOCK = 1_700_028_000_000_000
READS = {"entry": NEWEST.entry, "state": NEWEST.state}
SKIPPED = RELEASES[-3]


def process(release: str, *, reads: dict[str, int] | None = None, at: int = 0) -> ProcessReport:
    return ProcessReport(
        process=f"p-{release}-{at}",
        program=f"ingest task of {release}",
        release=release,
        reads=READS if reads is None else reads,
        started=Micros(SIX_O_CLOCK),
        at=Micros(SIX_O_CLOCK + at),
    )


def status(
    *releases: str, allowed: Formats | None = NEWEST, deployed: str | None = None
) -> UpgradeStatus:
    return status_of(allowed, [process(release) for release in releases], deployed)


def test_releases_are_in_order_and_each_form_only_rises() -> None:
    orders = [order_of(one.name) for one in RELEASES]
    assert orders == sorted(set(orders))
    for before, after in itertools.pairwise(RELEASES):
        assert at_least(after.formats, before.formats)
    assert RELEASES[0].formats == OLDEST
    assert THIS.formats == NEWEST


def test_releases_are_compared_by_their_numbers() -> None:
    assert order_of("0.9.0") < order_of("0.10.0") < order_of("0.10.1") < order_of("1.0")
    for unknown in ("", "main", "0.4.0rc1", "v1"):
        assert order_of(unknown) < order_of("0.0.1")


def test_a_gate_stands_at_the_newest_release_of_which_all_is_allowed() -> None:
    for one in RELEASES:
        assert release_allowed(one.formats) == one
    half = Formats(entry=NEWEST.entry, state=BEFORE.formats.state)
    assert release_allowed(half) == BEFORE
    assert release_allowed(Formats(entry=99, state=99)) == THIS
    assert status(allowed=None).gate == "0.1.0"


@pytest.mark.parametrize(
    ("release", "reads", "older"),
    [
        (THIS.name, READS, False),
        ("99.0", READS | {"of a newer release": 1}, False),
        (THIS.name, READS | {"entry": NEWEST.entry - 1}, True),
        (THIS.name, {}, True),
        (BEFORE.name, READS, True),
        ("", {}, True),
        ("", READS, True),
    ],
)
def test_a_process_is_older_by_its_release_or_by_what_it_reads(
    release: str, reads: dict[str, int], older: bool
) -> None:
    assert is_older(process(release, reads=reads)) is older


def test_a_plan_says_what_is_next_until_nothing_is() -> None:
    begin = plan_of(status(BEFORE.name, "", allowed=BEFORE.formats, deployed=BEFORE.name)).steps
    assert [step.split()[0] for step in begin] == ["deploy", "wait", "`lakebed"]
    assert f"{BEFORE.name} may be deployed again" in begin[0]
    assert "until 2 of older" in begin[1]
    assert "entry 6, state 4" in begin[2]
    assert f"{BEFORE.name} cannot open" in begin[2]
    deployed = plan_of(status(BEFORE.name, allowed=BEFORE.formats, deployed=THIS.name)).steps
    assert deployed == [begin[1].replace("2 of", "1 of"), begin[2]]
    assert plan_of(status(THIS.name, deployed=THIS.name)).steps == []
    assert plan_of(status(THIS.name)).steps == []


def test_finish_is_refused_while_an_older_process_may_live() -> None:
    with pytest.raises(OlderProcessError) as caught:
        refuse_older(status(THIS.name, BEFORE.name))
    assert isinstance(caught.value, UnavailableError), "the same again, later"
    assert caught.value.code() == "older-process"
    assert caught.value.facts == {
        "process": f"ingest task of {BEFORE.name}",
        "release": BEFORE.name,
        "this": THIS.name,
        "processes": 1,
    }
    assert caught.value.hint == "end it, then finish"
    refuse_older(status(THIS.name, "99.0"))


def test_on_aws_it_is_said_how_long_to_wait_for_who_is_silent() -> None:
    older = [process(BEFORE.name, at=0), process("", at=60_000_000)]
    with pytest.raises(OlderProcessError) as caught:
        refuse_older(status_of(NEWEST, older, THIS.name))
    assert caught.value.facts["release"] == "does not say", "the oldest is named"
    assert caught.value.facts["processes"] == 2
    assert "until 2023-11-15T07:01:00Z" in (caught.value.hint or "")
    assert "lakebed upgrade status" in (caught.value.hint or "")


@pytest.mark.parametrize("deployed", ["", BEFORE.name])
def test_finish_is_refused_where_an_older_release_is_deployed(deployed: str) -> None:
    with pytest.raises(OlderProcessError, match="deployed") as caught:
        refuse_older(status(THIS.name, deployed=deployed))
    assert caught.value.facts["release"] == (deployed or "does not say")
    assert "cdk deploy" in (caught.value.hint or "")


def test_a_skipped_release_is_refused_with_the_one_to_go_by() -> None:
    for found in (
        status(BEFORE.name, SKIPPED.name),
        status(deployed=SKIPPED.name),
    ):
        with pytest.raises(ReleaseSkippedError) as caught:
            refuse_skipped(found)
        assert isinstance(caught.value, InvalidError)
        assert caught.value.code() == "release-skipped"
        assert caught.value.facts["found"] == SKIPPED.name
        assert BEFORE.name in (caught.value.hint or "")
        with pytest.raises(ReleaseSkippedError):
            plan_of(found)
    refuse_skipped(status(BEFORE.name, "", "99.0", deployed=""))


def test_a_program_that_is_older_than_the_lake_is_refused() -> None:
    newer = Formats(entry=NEWEST.entry + 1, state=NEWEST.state)
    for found in (status(deployed="99.0"), status(allowed=newer)):
        for refuse in (refuse_newer, plan_of):
            with pytest.raises(NewerFormatError) as caught:
                refuse(found)
            assert caught.value.facts["this"] == THIS.name
            assert caught.value.hint == "upgrade this installation of lakebed"
    refuse_newer(status(deployed=""))

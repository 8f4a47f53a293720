"""What may be asked of a feed as it stands, and what follows."""

import pytest

from lakebed.errors import InvalidError
from lakebed.feeds.lifecycle import ALLOWED, WANTED, Action, Standing, standing_of
from lakebed.model.feeds.definitions import FeedFailure
from tests.unit.feeds.definition_stories import Definitions, RacedRegistry

ACTIONS: tuple[Action, ...] = ("start", "stop", "suspend", "resume")
DOCUMENTED = {
    ("stopped", "start"): "running",
    ("suspended", "start"): "running",
    ("failed", "start"): "running",
    ("running", "stop"): "stopped",
    ("suspended", "stop"): "stopped",
    ("failed", "stop"): "stopped",
    ("running", "suspend"): "suspended",
    ("suspended", "resume"): "running",
}


def standing(definitions: Definitions) -> str:
    return standing_of(definitions.known, "orders").standing


def given(wanted: Standing) -> Definitions:
    definitions = Definitions()
    definitions.apply()
    if wanted != "stopped":
        definitions.lifecycle.run("start", "orders")
    if wanted == "suspended":
        definitions.lifecycle.run("suspend", "orders")
    if wanted == "failed":
        version = definitions.known.entry("feed", "orders").definition.version
        definitions.true.note_failure(
            "feed", "orders", FeedFailure("denied", "the broker refuses", version)
        )
    assert standing(definitions) == wanted
    return definitions


@pytest.mark.parametrize("before", ALLOWED)
@pytest.mark.parametrize("action", ACTIONS)
def test_exactly_the_documented_transitions_are_allowed(before: Standing, action: Action) -> None:
    definitions = given(before)
    after = DOCUMENTED.get((before, action))
    if after is not None:
        found = definitions.lifecycle.run(action, "orders")
        assert (found.standing, found.wanted, found.failed) == (after, after, {})
        assert standing(definitions) == after
        return
    known = definitions.known
    allowed = [of for (stands, of) in DOCUMENTED if stands == before]
    with pytest.raises(InvalidError, match=f"a feed that is {before} cannot {action}") as raised:
        definitions.lifecycle.run(action, "orders")
    assert all(one in str(raised.value.hint) for one in allowed)
    assert definitions.known == known


def test_the_tables_of_the_code_say_no_more() -> None:
    said = {(stands, action): WANTED[action] for stands, of in ALLOWED.items() for action in of}
    assert said == DOCUMENTED


def test_a_failed_connection_fails_its_feed_until_it_is_started() -> None:
    definitions = given("running")
    version = definitions.known.entry("connection", "eu").definition.version
    definitions.true.note_failure("connection", "eu", FeedFailure("corrupt", "bytes", version))
    found = standing_of(definitions.known, "orders")
    assert (found.standing, found.failed) == ("failed", {"connection.eu": "corrupt: bytes"})
    definitions.lifecycle.run("start", "orders")
    assert standing_of(definitions.known, "orders").failed == {}


def test_a_failure_is_of_all_that_rows_are_made_by_so_a_mended_policy_ends_it() -> None:
    """A policy came after the connection that names it: its version is the failure's."""
    definitions = Definitions()
    definitions.apply()
    definitions.apply('[policy.Careful]\nextends = "Strict"\nerrors_in_row_max = 7')
    definitions.lifecycle.run("start", "orders")
    version = definitions.known.connection("eu").version
    assert version > definitions.known.entry("connection", "eu").definition.version
    failure = FeedFailure("invalid", "bad records", version)
    definitions.true.note_failure("connection", "eu", failure)
    assert definitions.known.connection("eu").failed == failure
    assert standing(definitions) == "failed"
    definitions.apply('[policy.Careful]\nextends = "Strict"\nerrors_in_row_max = 9')
    assert standing(definitions) == "running"
    definitions.true.note_failure("connection", "eu", failure)
    assert standing(definitions) == "running", "what comes late is of an older version"


def test_a_failure_of_an_older_definition_is_none() -> None:
    definitions = given("failed")
    definitions.apply('[feed.orders]\nfiles = "other"\ndecoder = { format = "json" }')
    assert standing(definitions) == "running"


def test_a_feed_that_is_not_there_is_answered_with_the_nearest() -> None:
    definitions = given("stopped")
    with pytest.raises(InvalidError, match="did you mean 'orders'"):
        definitions.lifecycle.run("start", "order")


def test_a_feed_that_changes_under_ones_hands_is_looked_at_again() -> None:
    registry = RacedRegistry()
    definitions = Definitions(registry)
    definitions.true = registry
    definitions.apply()
    version = definitions.known.entry("feed", "orders").definition.version
    registry.others = [
        lambda: registry.note_failure("feed", "orders", FeedFailure("denied", "no", version))
    ]
    assert definitions.lifecycle.run("start", "orders").standing == "running"
    assert standing_of(definitions.known, "orders").failed == {}
    registry.others = [lambda: definitions.lifecycle.run("stop", "orders")]
    with pytest.raises(InvalidError, match="a feed that is stopped cannot suspend"):
        definitions.lifecycle.run("suspend", "orders")

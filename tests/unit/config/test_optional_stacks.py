import msgspec
import pytest

from lakebed.config.deployments.instance_resources import (
    InstanceResources,
    decode_resources,
    encode_resources,
)
from lakebed.config.deployments.optional_stacks import (
    ALWAYS,
    NEEDS,
    OPTIONAL_STACKS,
    STACK_NAMES,
    left_out_of,
    stacks_of,
)
from lakebed.config.instance import InstanceId, InstanceSettings, instance_settings
from lakebed.errors import InvalidError

USUAL = frozenset(
    {"batching", "bulk-import", "dashboard", "ingest", "networking", "people", "query"}
)
ASKED_FOR = {stack.name for stack in OPTIONAL_STACKS if stack.asked_for}
FEEDS = instance_settings({"feed_workers_max": 1, "feed_push": True})


def test_nothing_is_left_out_by_itself_but_what_settings_must_ask_for() -> None:
    assert stacks_of(InstanceSettings(), []) == USUAL
    assert stacks_of(FEEDS, []) == USUAL | {"feeds", "feed-push"}
    assert set(STACK_NAMES) == USUAL | ASKED_FOR
    assert stacks_of(instance_settings({"feed_take": True}), []) == USUAL | {"feeds"}


def test_what_is_left_out_is_not_there() -> None:
    without = ["query", "bulk-import", "feeds", "query"]
    assert stacks_of(InstanceSettings(), without) == USUAL - {"query", "bulk-import"}


@pytest.mark.parametrize(
    ("without", "says"),
    [
        (["ingset"], r"no such stack to leave out \(stack='ingset'\): did you mean 'ingest'"),
        (["nothing-like-it"], "known stacks: batching, bulk-import"),
        (["\x1b[2J"], r"stack='\\x1b\[2J'"),
        (["state"], r"each instance has this stack \(stack=state\): leave it in"),
        (["compaction"], "set compaction_tasks_max=0 to have it without tasks"),
    ],
)
def test_a_name_that_cannot_be_left_out_is_refused(without: list[str], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        stacks_of(InstanceSettings(), without)


def test_a_stack_that_others_need_is_refused_with_their_names() -> None:
    settings = instance_settings({"feed_workers_max": 1})
    with pytest.raises(InvalidError) as refused:
        stacks_of(settings, ["networking"])
    facts, hint = refused.value.facts, refused.value.hint or ""
    assert facts == {"stack": "networking", "needed_by": "ingest, compaction, feeds"}
    assert hint == (
        "take 'networking' out of `without`, or: leave `ingest` out, too; set"
        " compaction_tasks_max=0; set feed_workers_max=0"
    )
    with pytest.raises(InvalidError, match="needed_by=compaction"):
        stacks_of(InstanceSettings(), ["networking", "ingest", "batching"])
    with pytest.raises(InvalidError, match=r"stack=ingest needed_by=batching.*`batching` out"):
        stacks_of(InstanceSettings(), ["ingest"])
    without_tasks = instance_settings({"compaction_tasks_max": 0, "feed_take": True})
    there = stacks_of(without_tasks, ["networking", "ingest", "batching"])
    assert there == {"bulk-import", "query", "dashboard", "feeds", "people"}


def test_a_stack_is_not_left_out_and_asked_for() -> None:
    with pytest.raises(InvalidError, match=r"stack=feeds settings=feed_workers_max.*the settings"):
        stacks_of(FEEDS, ["feeds"])
    with pytest.raises(InvalidError, match="stack=feed-push settings=feed_push"):
        stacks_of(FEEDS, ["feed-push"])


def test_needs_name_stacks_that_there_are() -> None:
    assert not set(ALWAYS) & set(STACK_NAMES)
    assert {need.of for need in NEEDS} <= set(STACK_NAMES)
    assert {need.by for need in NEEDS} <= {*ALWAYS, *STACK_NAMES}
    for stack in OPTIONAL_STACKS:
        assert set(stack.asked_for) <= set(InstanceSettings.__struct_fields__)


def test_who_wants_what_is_not_there_hears_what_to_do() -> None:
    left_out = left_out_of("dev", USUAL - {"ingest"})
    left_out.refuse("query")
    left_out.refuse_queue("query")
    left_out.refuse_queue("commits")
    left_out.refuse_queue("no such queue")
    with pytest.raises(InvalidError) as refused:
        left_out.refuse_queue("ingest")
    assert refused.value.message == "this instance was deployed without ingest"
    assert refused.value.facts == {"instance": "dev"}
    assert refused.value.hint == (
        "ingest from a process of yours: `lakebed ingest`, `Table.ingest`; or take 'ingest' out of"
        " `without`, and deploy again"
    )
    with pytest.raises(InvalidError, match="or set `feed_workers_max` or `feed_take`, and deploy"):
        left_out.refuse("feeds")


def test_a_parameter_says_which_stacks_there_are() -> None:
    resources = InstanceResources(
        instance=InstanceId("dev"),
        bucket="data",
        log_table="log",
        registry_table="registry",
        tracker_table="tracker",
        stacks=("ingest", "query"),
    )
    found = decode_resources(encode_resources(resources), InstanceId("dev"))
    assert found == resources
    assert found.left_out().names == set(STACK_NAMES) - {"ingest", "query"}
    older = msgspec.structs.replace(found, stacks=msgspec.UNSET)
    assert '"stacks"' not in encode_resources(older)
    assert older.left_out().names == frozenset()

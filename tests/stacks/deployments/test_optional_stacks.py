"""An instance may do without some stacks: what is left neither misses nor names them."""

import json
import random
import re
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lakebed.config.accounts.quotas import FARGATE_VCPUS, NETWORKS, SPARK_VCPUS
from lakebed.config.deployments.instance_resources import InstanceResources, decode_resources
from lakebed.config.deployments.optional_stacks import OPTIONAL_STACKS, STACK_NAMES
from lakebed.config.instance import InstanceId
from lakebed.config.job_queues import ALL_QUEUES
from lakebed.errors import InvalidError
from lakebed.observe.metrics import METRICS
from tests.golden import FOLDER
from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.test_templates import resources

ALWAYS = {
    "address",
    "alarms",
    "committer",
    "compaction",
    "dashboard",
    "data",
    "garbage",
    "release",
    "snapshots",
    "splitting",
    "state",
}
"""Templates that each instance has. That of the dashboard holds alarms, too."""
TEMPLATE_OF = {
    "bulk-import": "import",
    "feed-push": "push",
    "job-events": "events",
    "spark-clusters": "clusters",
}
"""As tests call a template: the end of its stack's name."""
NEEDED = (
    ("ingest", "networking"),
    ("batching", "ingest"),
    ("spark-clusters", "networking"),
    ("spark-clusters", "bulk-import"),
)
SMALL = ["history", "job-events", "people", "tables"]
"""No other stack changes with these, so they are drawn: all choices would take hours."""
DRAWN = 6
DECLARED = Path(__file__).parent / "declared"
SOME = 20
PSEUDO = {"AWS::AccountId": "1", "AWS::Region": "r", "AWS::URLSuffix": "x", "AWS::Partition": "aws"}


class Subset(NamedTuple):
    """An instance's optional stacks, and what it is deployed with to have them."""

    there: frozenset[str]
    settings: dict[str, object]


def is_whole(there: frozenset[str]) -> bool:
    """Whether these go without all others."""
    return all(need in there for stack, need in NEEDED if stack in there)


def subset_of(there: frozenset[str]) -> Subset:
    """Return what an instance is deployed with to have these, and no others."""
    asked_for = {stack.name for stack in OPTIONAL_STACKS if stack.asked_for}
    settings: dict[str, object] = {
        "without": sorted(set(STACK_NAMES) - there - asked_for),
        "feed_push": "feed-push" in there,
        "feed_take": "feeds" in there,
        "history_days": 30 if "history" in there else 0,
        "job_events": "job-events" in there,
        "spark_clusters": "spark-clusters" in there,
        "tables": str(DECLARED) if "tables" in there else "",
    }
    if "networking" in there:
        settings |= {"feed_workers_max": int("feeds" in there)}
    else:
        settings |= {"compaction_tasks_max": 0}
    return Subset(there, settings)


def subsets() -> Iterator[list[Subset]]:
    """Yield, for each choice of the stacks that do most, several choices of the rest."""
    most = [name for name in STACK_NAMES if name not in SMALL]
    rng = random.Random(0)
    for chosen in product((True, False), repeat=len(most)):
        core = frozenset(name for name, is_in in zip(most, chosen, strict=True) if is_in)
        drawn = [rng.sample(SMALL, rng.randint(1, len(SMALL) - 1)) for _ in range(DRAWN)]
        found = dict.fromkeys(core.union(small) for small in ([], SMALL, *drawn))
        if is_whole(core):
            yield [subset_of(there) for there in found if is_whole(there)]


def some_of(every: list[Subset]) -> list[Subset]:
    """Return some, all and nothing among them, in which each two stacks are there, missing, and
    there without each other."""
    ends = [one for one in every if len(one.there) in {0, len(STACK_NAMES)}]
    left, found = [one for one in every if one not in ends], list(ends)
    pairs = {subset.there: pairs_in(subset) for subset in every}
    seen = set[frozenset[tuple[str, bool]]]().union(*(pairs[subset.there] for subset in found))
    while len(found) < SOME:
        best = max(left, key=lambda subset: len(pairs[subset.there] - seen))
        seen |= pairs[best.there]
        left.remove(best)
        found.append(best)
    return found


def pairs_in(subset: Subset) -> set[frozenset[tuple[str, bool]]]:
    facts = [(name, name in subset.there) for name in STACK_NAMES]
    return {frozenset(pair) for pair in combinations(facts, 2)}


CHOICES = list(subsets())
EVERY = [choices[number % len(choices)] for number, choices in enumerate(CHOICES)]
SHOWN = some_of([subset for choices in CHOICES for subset in choices])


def called(subset: Subset) -> str:
    return "+".join(sorted(subset.there)) or "nothing"


def template_of(stack: str) -> str:
    return TEMPLATE_OF.get(stack, stack)


def texts_in(value: object) -> Iterator[str]:
    """Yield each text of a template, what is joined as one."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, dict):
        if list(value) == ["Fn::Join"]:
            parts = value["Fn::Join"][1]
            yield "".join(p if isinstance(p, str) else joined(p) for p in parts)
        else:
            for item in value.values():
                yield from texts_in(item)


def joined(part: dict[str, Any]) -> str:
    return PSEUDO.get(str(part.get("Ref")), json.dumps(part))


def imports_in(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from imports_in(item)
    elif isinstance(value, dict):
        if "Fn::ImportValue" in value:
            yield str(value["Fn::ImportValue"])
        for item in value.values():
            yield from imports_in(item)


def exports_of(templates: Templates) -> set[str]:
    outputs = [o for template in templates.values() for o in template.get("Outputs", {}).values()]
    return {output["Export"]["Name"] for output in outputs if "Export" in output}


def parameter_of(templates: Templates) -> InstanceResources:
    (parameter,) = resources(templates, "AWS::SSM::Parameter")
    (text,) = texts_in(parameter["Properties"]["Value"])
    return decode_resources(text, InstanceId("dev"))


def check(synthesize: Synthesize, subset: Subset) -> None:
    """Synthesize an instance, which cdk-nag looks at, and look at it."""
    there, settings = subset
    templates = synthesize(**settings)
    optional = {template_of(name) for name in there}
    assert set(templates) == ALWAYS | optional

    found = parameter_of(templates)
    assert found.stacks == tuple(sorted(there))
    absent = {kind for stack in OPTIONAL_STACKS if stack.name not in there for kind in stack.queues}
    kinds = {shape.kind for shape in ALL_QUEUES} - absent
    assert set(found.queues) == kinds
    made = {q["Properties"]["QueueName"] for q in resources(templates, "AWS::SQS::Queue")}
    assert made == {f"lakebed-dev-{kind}{end}.fifo" for kind in kinds for end in ("", "-dead")}

    for text in {text for template in templates.values() for text in texts_in(template)}:
        for name in re.findall(r"lakebed-dev-[a-z-]+\.fifo", text):
            assert name in made, "a queue that there is not"
    assert set(imports_in(list(templates.values()))) <= exports_of(templates)
    tasks = resources(templates, "AWS::ECS::TaskDefinition")
    assert bool(tasks) == ("networking" in there)
    assert bool(resources(templates, "AWS::CloudWatch::Dashboard")) == ("dashboard" in there)
    alarms = {a["Properties"]["AlarmName"] for a in resources(templates, "AWS::CloudWatch::Alarm")}
    told = {f"lakebed-dev-{m.name.replace('_', '-')}" for m in METRICS if m.alarm is not None}
    assert told <= alarms, "alarms stay, dashboard or not"


@pytest.mark.parametrize("subset", SHOWN, ids=called)
def test_some_subsets_are_whole_instances(synthesize: Synthesize, subset: Subset) -> None:
    check(synthesize, subset)


@pytest.mark.slow
@pytest.mark.parametrize("subset", [s for s in EVERY if s not in SHOWN], ids=called)
def test_all_others_are_whole_instances_too(synthesize: Synthesize, subset: Subset) -> None:
    check(synthesize, subset)


@pytest.mark.slow
@pytest.mark.parametrize("small", SMALL)
def test_a_small_stack_changes_no_other_but_the_one_that_names_all(
    synthesize: Synthesize, small: str
) -> None:
    """So subsets of the others, each with some of these, stand for all subsets (decision 0059)."""
    most = frozenset(STACK_NAMES) - set(SMALL)
    for core in (most, frozenset(need for stack, need in NEEDED if stack == small)):
        assert is_whole(core)
        without = synthesize(**subset_of(core).settings)
        with_it = synthesize(**subset_of(core | {small}).settings)
        assert with_it.keys() - without.keys() == {template_of(small)}
        changed = {name for name, one in without.items() if with_it[name] != one}
        assert changed == {"address"}


def test_some_show_each_two_stacks_with_and_without_each_other() -> None:
    possible = set().union(*(pairs_in(one) for choices in CHOICES for one in choices))
    assert set().union(*(pairs_in(subset) for subset in SHOWN)) == possible
    assert len(EVERY) == 176
    assert {s.there for s in SHOWN} >= {frozenset(STACK_NAMES), frozenset()}


def test_only_ids_of_a_network_are_imported(templates: Templates) -> None:
    found = set(imports_in(list(templates.values())))
    assert {name.partition(":")[0] for name in found} == {"lakebed-dev-networking"}
    assert not [name for name in found if "Cluster" in name]


def test_what_the_release_before_imports_is_exported_still(templates: Templates) -> None:
    """Else no stack that exports could be deployed over it: CloudFormation lets nothing go that
    another stack imports, and stacks are deployed one after the other."""
    before = set((FOLDER / "exports-0.3.0.txt").read_text("utf-8").split())
    assert exports_of(templates) >= before


def test_exports_do_not_depend_on_who_imports_them(
    synthesize: Synthesize, templates: Templates
) -> None:
    """Else a stack that is left out would have to be deleted before others can be deployed."""
    less = synthesize(without="batching,ingest,query,bulk-import,dashboard,people")
    assert exports_of(less) == {
        name
        for name in exports_of(templates)
        if name.partition(":")[0].removeprefix("lakebed-dev-") in less
    }


def test_stacks_wait_for_what_they_know_by_name(synthesize: Synthesize, tmp_path: Path) -> None:
    synthesize(tmp_path, feed_take="true")
    artifacts = json.loads((tmp_path / "manifest.json").read_text("utf-8"))["artifacts"]
    names = {
        id_: one["properties"]["stackName"].removeprefix("lakebed-dev-")
        for id_, one in artifacts.items()
        if one["type"] == "aws:cloudformation:stack"
    }
    waits = {
        name: {names[one] for one in artifacts[id_]["dependencies"] if one in names}
        for id_, name in names.items()
    }
    assert waits["release"] == set()
    assert waits["data"] == waits["state"] == {"release"}
    assert waits["query"] == waits["alarms"] == {"release", "data", "state"}
    before = {"release", "data", "state", "committer", "networking"}
    assert waits["compaction"] == before
    assert waits["ingest"] == waits["feeds"] == before | {"compaction"}
    assert waits["address"] == set(names.values()) - {"address"}


def test_an_instance_asks_for_no_quota_of_what_it_does_not_have(synthesize: Synthesize) -> None:
    without = "batching,ingest,networking,bulk-import"
    quotas = parameter_of(synthesize(without=without, compaction_tasks_max="0")).quotas
    assert not {q.code for q in (FARGATE_VCPUS, NETWORKS, SPARK_VCPUS)} & quotas.keys()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"without": "networking"}, "needed_by=ingest, compaction"),
        (
            {"without": "networking,batching,ingest"},
            "needed_by=compaction.*compaction_tasks_max=0",
        ),
        ({"without": "compaction"}, "each instance has this stack"),
        ({"without": "ingset"}, "did you mean 'ingest'"),
        ({"without": "feeds", "feed_take": "true"}, "settings=feed_take"),
    ],
)
def test_what_does_not_go_is_refused_before_anything_is_made(
    synthesize: Synthesize, settings: dict[str, object], says: str
) -> None:
    with pytest.raises(InvalidError, match=says):
        synthesize(**settings)

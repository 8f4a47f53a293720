"""MiniStack in a process of its own, mended where it differs from AWS, with a shifted clock.

Run by `shifted_time`. It obeys lines of JSON on its standard input, and answers each with one line;
when its input ends, it ends. What is mended, and why, is in docs/design/localcloud.md.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from ministack import app
from ministack.core import iam_actions, iam_evaluator, persistence, responses, sigv4
from ministack.services import dynamodb, lambda_svc, sqs

SINGLE_FORMS = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}
"""AWS permits a batch to a role that may do the single thing; MiniStack asks for the batch's
name."""
PUT_CONCURRENCY = "lambda:PutFunctionConcurrency"
"""MiniStack's name for all requests for a function's reserved runs, looks and deletes, too."""
EQUALS = re.compile(r"([#\w.-]+)\s*=\s*(:\w+)")
"""A part of the condition of a query: a name and a value."""
ASSUMED = ":assumed-role/"
"""A part of the ARN of a session of a role."""


def main() -> None:
    """Serve until the standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what MiniStack prints is no answer
    clock = sys.modules["shifted_time"]
    _mend_permissions()
    _mend_calls()
    _mend_urls()
    tasks = _loaded(Path(__file__).with_name("emulator_tasks.py"))
    tasks.install()
    _mend_writes()
    _mend_items()
    spark = _loaded(Path(__file__).with_name("emulator_spark.py"))
    spark.install()
    _loaded(Path(__file__).with_name("emulator_events.py")).install()
    emr = _loaded(Path(__file__).with_name("emulator_emr.py"))
    emr.install()
    _mend_roles(spark.application_arns)
    requests = _loaded(Path(__file__).with_name("emulator_requests.py")).RequestCounts()
    judgements = Judgements()
    commands: dict[str, Callable[[dict[str, Any]], object]] = {
        "shift": lambda given: clock.shift(given["seconds"]),
        "queues": lambda _: _queues(),
        "note_judgements": lambda _: judgements.begin(),
        "judgements": lambda _: judgements.notes(),
        "requests": lambda _: requests.by_role(),
        "task_ended": lambda given: tasks.ended(given["arn"], given["code"]),
        "spark_runs": lambda _: spark.waiting(),
        "set_spark_run_state": lambda given: spark.set_state(**given),
        "spark_steps": lambda _: emr.CLUSTERS.waiting(),
        "set_spark_step": lambda given: emr.CLUSTERS.set_step(**given),
        "end_spark_cluster": lambda given: emr.CLUSTERS.end(**given),
    }
    threading.Thread(target=_obey, args=(commands, answers), daemon=True).start()
    sys.argv = ["ministack"]
    app.main()


def _loaded(path: Path) -> ModuleType:
    """Return a module by its path: here is no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, f"there is {path}"
    assert spec.loader is not None, f"{path} is a module"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Judgements:
    """The uses of permissions since `begin`. They are noted by role and by the index of a statement
    among the role's own. What a role may do is judged again without each statement that allows it.

    used: the actions that a statement allowed. needed: the first action and resource that would
    have been denied without it.
    """

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], set[str]] = {}
        self._needed: dict[tuple[str, int], tuple[str, str]] = {}
        self._begun = False

    def begin(self) -> None:
        """Note what is judged from now on. Again does nothing."""
        if self._begun:
            return
        self._begun = True
        judge = iam_evaluator.evaluate

        def noted(ctx: Any, policies: Any, *limits: Any) -> Any:  # noqa: ANN401 - MiniStack's
            found = judge(ctx, policies, *limits)
            if found.decision == "Allow" and ASSUMED in ctx.principal_arn:
                self._note(ctx, [s for policy in policies for s in policy], judge)
            return found

        iam_evaluator.evaluate = noted

    def notes(self) -> list[dict[str, Any]]:
        """Return the notes: `role`, `statement`, `used`, `needed`."""
        return [
            {
                "role": role,
                "statement": index,
                "used": sorted(used),
                "needed": self._needed.get((role, index)),
            }
            for (role, index), used in sorted(self._used.items())
        ]

    def _note(self, ctx: Any, statements: list[Any], judge: Any) -> None:  # noqa: ANN401 - the same
        role = ctx.principal_arn.partition(ASSUMED)[2].partition("/")[0]
        for index, statement in enumerate(statements):
            if judge(ctx, [[statement]]).decision != "Allow":
                continue
            self._used.setdefault((role, index), set()).add(ctx.action)
            if (role, index) in self._needed:
                continue
            others = statements[:index] + statements[index + 1 :]
            if judge(ctx, [others]).decision != "Allow":
                self._needed[role, index] = ctx.action, ctx.resource_arn


def _mend_permissions() -> None:
    """Judge batches, and runs that a function reserves, as AWS does; take signatures of any time,
    as some clients' clocks are real."""
    judged = iam_actions.extract_iam_action

    def action(*args: Any) -> str | None:  # noqa: ANN401 - MiniStack's, passed on
        found: str | None = judged(*args)
        if found == PUT_CONCURRENCY:  # of MiniStack, whatever is done with it
            return found.replace("Put", args[1].title())
        return SINGLE_FORMS.get(found, found) if found else found

    iam_actions.extract_iam_action = action
    sigv4.request_time_failure = lambda *_, **__: None


def _mend_writes() -> None:
    """Tell policies of buckets whether a request makes an object, and on which condition."""
    context_of = iam_actions.s3_service_context

    def context(
        action: str,
        query: dict[str, Any] | None,
        path: str = "",
        headers: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        found: dict[str, Any] = context_of(action, query, path, headers)
        if action != "s3:PutObject":
            return found
        asked = query or {}
        begins, sends_part = "uploads" in asked, "partNumber" in asked
        found["s3:ObjectCreationOperation"] = "false" if begins or sends_part else "true"
        condition = (headers or {}).get("if-none-match")
        return found | ({"s3:if-none-match": condition} if condition else {})

    iam_actions.s3_service_context = context


def _mend_items() -> None:
    """Tell policies of tables the partitions whose items a request is about."""
    context_of = iam_actions.dynamodb_service_context

    def context(body: bytes) -> dict[str, Any]:
        found: dict[str, Any] = context_of(body)
        try:
            request = json.loads(body or b"{}")
        except ValueError:  # it is refused by what answers it
            return found
        keys = sorted(set(_leading_keys(request)))
        return found | ({"dynamodb:LeadingKeys": keys} if keys else {})

    iam_actions.dynamodb_service_context = context


def _leading_keys(request: dict[str, Any]) -> Iterator[str]:
    """Yield the partitions that a request of DynamoDB names."""
    yield from _keys_in(request.get("TableName", ""), request)
    for entry in request.get("TransactItems", []):
        for change in entry.values():
            yield from _keys_in(change.get("TableName", ""), change)
    for table, asked in request.get("RequestItems", {}).items():
        for key in asked.get("Keys", []) if isinstance(asked, dict) else []:
            yield from _keys_in(table, {"Key": key})
        for write in asked if isinstance(asked, list) else []:
            for change in write.values():
                yield from _keys_in(table, change)


def _keys_in(table: str, request: dict[str, Any]) -> Iterator[str]:
    """Yield the partition of an item or a key, or of a query."""
    known = dynamodb._tables.get(table)  # noqa: SLF001 - no public member has it
    name = known["pk_name"] if known else None
    for member in ("Key", "Item"):
        if name in request.get(member, {}):
            yield from map(str, request[member][name].values())
    names = request.get("ExpressionAttributeNames", {})
    for word, value in EQUALS.findall(request.get("KeyConditionExpression", "")):
        if names.get(word, word) == name:
            yield from map(str, request["ExpressionAttributeValues"][value].values())


def _mend_roles(application_arns: Callable[[], list[str]]) -> None:
    """Give the runner a role if the service could have it that the runner stands in for: each tells
    for whom it asks. application_arns: of EMR Serverless."""
    judged = iam_evaluator.evaluate_trust_policy

    def evaluate(
        trust: Any,  # noqa: ANN401 - MiniStack's, passed on
        caller: str,
        context: Any = None,  # noqa: ANN401 - the same
    ) -> bool:
        if context is None or not caller.endswith(":root"):
            return bool(judged(trust, caller, context))
        account, region = responses.get_account_id(), responses.get_region()
        sources = ["", f"arn:aws:ecs:{region}:{account}:task/one", *application_arns()]
        for source in sources:
            condition_keys = {"aws:sourceaccount": account, "aws:sourcearn": source}
            context.service_context |= condition_keys if source else {}
            if judged(trust, caller, context):
                return True
        return False

    iam_evaluator.evaluate_trust_policy = evaluate


def _mend_calls() -> None:
    """Tell what the runner's functions raise as AWS does, and not as a fault of a server."""
    handed_on = lambda_svc._execute_function_proxy  # noqa: SLF001 - nothing else knows of the error

    def execute(*args: Any) -> dict[str, Any]:  # noqa: ANN401 - MiniStack's, passed on
        result: dict[str, Any] = handed_on(*args)
        if result.get("error"):
            return result
        failed = result["body"]["error"]
        return {"body": failed, "error": True} if failed else {"body": result["body"]["value"]}

    lambda_svc._execute_function_proxy = execute  # noqa: SLF001 - the same


def _mend_urls() -> None:
    """Ask who calls a function by its URL for both permissions that AWS asks for."""
    judged = iam_evaluator.enforce
    by_url = {"lambda:InvokedViaFunctionUrl": "true"}

    def enforce(key: str, action: str, *given: Any, **more: Any) -> Any:  # noqa: ANN401 - as above
        denied = judged(key, action, *given, **more)
        if action != "lambda:InvokeFunctionUrl" or denied:
            return denied
        return judged(key, "lambda:InvokeFunction", *given, **(more | {"service_context": by_url}))

    iam_evaluator.enforce = enforce


def _queues() -> dict[str, dict[str, float]]:
    """Return of each queue by name how many messages can be received, how many are in hand or wait
    to be received again, when the first of these comes back, and the age of the oldest: SQS reports
    some of these to CloudWatch only, and some not at all."""
    now = time.time()
    found = {}
    for queue in list(sqs._queues._data.values()):  # noqa: SLF001 - no public member has it
        messages = list(queue["messages"])
        hidden = [m["visible_at"] - now for m in messages if m["visible_at"] > now]
        ages = [now - message["sent_at"] for message in messages]
        found[queue["name"]] = {
            "visible": len(messages) - len(hidden),
            "hidden": len(hidden),
            "back_seconds": min(hidden, default=0.0),
            "age_seconds": max(ages, default=0.0),
        }
    return found


def _obey(commands: dict[str, Callable[[dict[str, Any]], object]], answers: TextIO) -> None:
    """Answer commands until there are no more. One that fails ends the process: who asks would wait
    for its answer for ever."""
    for line in sys.stdin:
        given = json.loads(line)
        try:
            answer = commands[given.pop("do")](given)
        except Exception:  # noqa: BLE001 - whatever it was, the process ends
            traceback.print_exc()
            os._exit(1)
        answers.write(json.dumps({"answer": answer}) + "\n")
        answers.flush()
    if persistence.PERSIST_STATE:
        saved = app._build_persistence_save_dict()  # noqa: SLF001 - as at its own end
        persistence.save_all(saved)
    os._exit(0)  # its own end waits for all connections, for up to a minute


if __name__ == "__main__":
    main()

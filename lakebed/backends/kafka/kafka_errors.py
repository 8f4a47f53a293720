"""Translates errors of librdkafka into ours. What is not known counts as no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.errors import DeniedError, InvalidError, LakebedError, UnavailableError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

DENIED = {
    "_AUTHENTICATION",
    "_SSL",
    "CLUSTER_AUTHORIZATION_FAILED",
    "DELEGATION_TOKEN_EXPIRED",
    "GROUP_AUTHORIZATION_FAILED",
    "SASL_AUTHENTICATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
}
UNKNOWN_TOPIC = {"UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PART"}
"""As brokers say it. librdkafka says the like on its own when it has not heard of any broker."""
GONE = {"_AUTO_OFFSET_RESET", "_LOG_TRUNCATION", "_NO_OFFSET", "OFFSET_OUT_OF_RANGE"}
INVALID = {
    *UNKNOWN_TOPIC,
    "ILLEGAL_SASL_STATE",
    "INVALID_CONFIG",
    "TOPIC_EXCEPTION",
    "UNSUPPORTED_SASL_MECHANISM",
    "_INVALID_ARG",
    "_UNSUPPORTED_FEATURE",
    "UNSUPPORTED_VERSION",
}
ENOUGH = {"GROUP_AUTHORIZATION_FAILED", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}
"""Errors that concern the offsets of a group, which no record waits for."""


def translated(error: KafkaError, problem: str, **facts: object) -> LakebedError:
    """Return the error of ours. problem: what it says, without secrets."""
    name = error.name()
    facts = {"code": name, "problem": problem, **facts}
    hint: str | None = None
    if name in DENIED:
        hint = "look at `security` of this source, at certificates, and at the broker's ACLs"
        return DeniedError("Kafka refuses us", hint=hint, **facts)
    if name in UNKNOWN_TOPIC:
        return InvalidError("Kafka does not know the topic", hint="look at `topics`", **facts)
    if name in INVALID:
        return InvalidError("Kafka does not do that", hint=hint, **facts)
    return UnavailableError("Kafka does not answer", hint="try again", **facts)

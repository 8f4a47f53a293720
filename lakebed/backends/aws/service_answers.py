"""Reads from an exception of boto3 whether a request was done, was refused, or may be either.

boto3's own retries are off (`clients.py`), so an exception is about one try. Throttling is refused
before anything is done. Other answers of a broken server count as none: DynamoDB says of its 500
and 503 that the write may have been done. Messages hold account and key ids, so nothing but codes
and the name of a permission leaves here.
"""

from __future__ import annotations

import re

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProxyConnectionError,
)
from botocore.exceptions import (
    ConnectionError as AmazonConnectionError,
)
from botocore.parsers import ResponseParserError

from lakebed.backends.aws.answers import Language, Meaning, RequestFailure


class UnprocessedError(Exception):
    """Some items of a request for many were not done; the same, or only those, may be asked for
    again. boto3 does not raise it: who reads the answer does."""


BOTO_ERRORS = (BotoCoreError, ClientError, ResponseParserError, UnprocessedError)
"""All that boto3 raises when a request fails, and the one above."""

_REFUSED_CODES = {
    "BadDigest",  # the bytes were damaged on their way
    "ConditionalRequestConflict",  # another request for the key runs: S3 says to try again
    "InvalidPart",  # an earlier try of a part came after the one that was answered
    "LimitExceededException",
    "OperationAborted",
    "OverLimit",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "RequestTimeTooSkewed",
    "RequestTimeout",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingError",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionConflict",  # another transaction holds the item
    "TransactionConflictException",
    "TransactionInProgressException",  # an earlier try of the same request runs
}
_DENIED_CODES = {
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_BY_CODE = {
    **dict.fromkeys(_REFUSED_CODES, Meaning.REFUSED),
    **dict.fromkeys(_DENIED_CODES, Meaning.DENIED),
    "ConditionalCheckFailed": Meaning.UNMET,
    "ConditionalCheckFailedException": Meaning.UNMET,
    "PreconditionFailed": Meaning.EXISTS,  # our only condition at S3 is that a key is free
    "ImageNotFoundException": Meaning.MISSING,
    "NoSuchBucketPolicy": Meaning.MISSING,
    "NoSuchKey": Meaning.MISSING,
    "NoSuchLifecycleConfiguration": Meaning.MISSING,
    "NoSuchPublicAccessBlockConfiguration": Meaning.MISSING,
    "NoSuchResourceException": Meaning.MISSING,  # a quota
    "NoSuchUpload": Meaning.MISSING,
    "NotFound": Meaning.MISSING,  # a topic
    "ParameterNotFound": Meaning.MISSING,
    "ParameterVersionNotFound": Meaning.MISSING,
    "RepositoryNotFoundException": Meaning.MISSING,
    "ClusterNotFoundException": Meaning.NO_RESOURCE,
    "NoSuchBucket": Meaning.NO_RESOURCE,
    "ResourceNotFoundException": Meaning.NO_RESOURCE,
    "QueueDoesNotExist": Meaning.NO_RESOURCE,
    "NonExistentQueue": Meaning.NO_RESOURCE,
}
_UNSENT = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError)
_UNANSWERED = (AmazonConnectionError, HTTPClientError, ResponseParserError)
_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)
_PERMISSION = re.compile(r"not authorized to perform: ([\w-]+:\w+)")
_CANCELLED = "TransactionCanceledException"


def answer_of(error: Exception) -> RequestFailure:
    """Return what an exception out of `BOTO_ERRORS` means."""
    if isinstance(error, ClientError):
        return _answer_of_service(error)
    return RequestFailure(_meaning_of_failure(error), type(error).__name__)


AMAZON_TABLE = Language("table", BOTO_ERRORS, answer_of)
AMAZON_QUEUE = Language("queue", BOTO_ERRORS, answer_of)
AMAZON_PARAMETER = Language("parameter", BOTO_ERRORS, answer_of)
AMAZON_CLUSTER = Language("cluster", BOTO_ERRORS, answer_of)
AMAZON_SPARK = Language("application of EMR Serverless", BOTO_ERRORS, answer_of)
AMAZON_STACK = Language("stack", BOTO_ERRORS, answer_of)
AMAZON_EMR = Language("cluster of EMR", BOTO_ERRORS, answer_of)
AMAZON_NETWORK = Language("network", BOTO_ERRORS, answer_of)
AMAZON_ACCOUNT = Language("account in region", BOTO_ERRORS, answer_of)
AMAZON_SECRET = Language("secret", BOTO_ERRORS, answer_of)
AMAZON_SCHEMA = Language("schema of Glue", BOTO_ERRORS, answer_of)
AMAZON_EVENTS = Language("bus of EventBridge", BOTO_ERRORS, answer_of)
AMAZON_BUCKET = Language("bucket", BOTO_ERRORS, answer_of)
AMAZON_FUNCTION = Language("function", BOTO_ERRORS, answer_of)
AMAZON_PART = Language("part of the instance", BOTO_ERRORS, answer_of)


def _answer_of_service(error: ClientError) -> RequestFailure:
    details = error.response.get("Error", {})
    code = str(details.get("Code", "")).rpartition(".")[2]  # SQS puts its name before some
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    permission = _PERMISSION.search(str(details.get("Message", "")))
    why = " ".join(str(part) for part in (status or None, code) if part)
    if code == _CANCELLED:
        codes = [reason.get("Code", "") for reason in error.response.get("CancellationReasons", ())]
        why = " ".join([why, *sorted(set(codes) - {"None"})])
        unmet = (at for at, code in enumerate(codes) if _BY_CODE.get(code) is Meaning.UNMET)
        return RequestFailure(_meaning_of_cancelled(codes), why, unmet=tuple(unmet))
    name = permission[1] if permission else ""
    return RequestFailure(_meaning_of_code(code, status), why, name)


def _meaning_of_cancelled(codes: list[str]) -> Meaning:
    """Return why a transaction was cancelled, which did nothing. An unmet condition outweighs a
    conflict: it was read."""
    meanings = {_meaning_of_code(code, 400) for code in codes}
    for meaning in (Meaning.UNMET, Meaning.REFUSED):
        if meaning in meanings:
            return meaning
    return Meaning.INVALID


def _meaning_of_code(code: str, status: int) -> Meaning:
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status == 429:
        return Meaning.REFUSED
    if status in {401, 403}:
        return Meaning.DENIED
    return Meaning.INVALID if 300 <= status < 500 else Meaning.UNANSWERED


def _meaning_of_failure(error: Exception) -> Meaning:
    if isinstance(error, UnprocessedError):
        return Meaning.REFUSED
    if isinstance(error, _NO_CREDENTIALS):
        return Meaning.NO_CREDENTIALS
    if isinstance(error, _UNSENT):
        return Meaning.UNREACHABLE
    if isinstance(error, _UNANSWERED):
        return Meaning.UNANSWERED
    return Meaning.INVALID  # what boto3 refuses before it sends anything: no region, a wrong type

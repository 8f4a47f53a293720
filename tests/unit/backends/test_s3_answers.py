"""What exceptions of obstore mean, from the texts of its version 0.12."""

import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PermissionDeniedError

from lakebed.backends.aws.answers import Meaning, RequestFailure
from lakebed.backends.aws.s3_answers import answer_of

KEY_ID = "AKIA" + "EXAMPLE"
STATUS = (
    "Generic S3 error ... RetryErrorImpl {{ inner: Status {{ status: {0}, body: Some({1}) }} }}"
)
HTTP = "error sending request ... inner: Http( HttpError {{ kind: {0}, source: ... }} )"


def status(number: int, code: str = "") -> GenericError:
    body = f"<Error><Code>{code}</Code><AWSAccessKeyId>{KEY_ID}</AWSAccessKeyId></Error>"
    return GenericError(STATUS.format(number, body if code else "-"))


CASES = [
    (status(503, "SlowDown"), Meaning.REFUSED),
    (status(503), Meaning.REFUSED),
    (status(429), Meaning.REFUSED),
    (status(400, "BadDigest"), Meaning.REFUSED),
    (status(403, "RequestTimeTooSkewed"), Meaning.REFUSED),
    (status(500, "InternalError"), Meaning.UNANSWERED),
    (status(200, "InternalError"), Meaning.UNANSWERED),
    (status(502), Meaning.UNANSWERED),
    (status(504), Meaning.UNANSWERED),
    (status(416, "InvalidRange"), Meaning.SHORT),
    (status(404, "NoSuchBucket"), Meaning.NO_RESOURCE),
    (status(404), Meaning.MISSING),
    (status(403), Meaning.DENIED),
    (status(400, "ExpiredToken"), Meaning.DENIED),
    (status(400, "KeyTooLongError"), Meaning.INVALID),
    (GenericError("... inner: BareRedirect, ..."), Meaning.INVALID),
    (GenericError(HTTP.format("Connect")), Meaning.UNREACHABLE),
    (GenericError(HTTP.format("Timeout")), Meaning.UNANSWERED),
    (GenericError(HTTP.format("Request")), Meaning.UNANSWERED),
    (GenericError("words that nobody knows"), Meaning.UNANSWERED),
    (OSError("words that nobody knows"), Meaning.UNANSWERED),
    (AlreadyExistsError("words that nobody knows"), Meaning.EXISTS),
    (AlreadyExistsError(str(status(412, "PreconditionFailed"))), Meaning.EXISTS),
    (AlreadyExistsError(str(status(409, "ConditionalRequestConflict"))), Meaning.REFUSED),
    (FileNotFoundError("words that nobody knows"), Meaning.MISSING),
    (PermissionDeniedError("words that nobody knows"), Meaning.DENIED),
    (ValueError("a range"), Meaning.INVALID),
    (
        GenericError("Error performing PUT http://169.254.169.254/latest/api/token"),
        Meaning.NO_CREDENTIALS,
    ),
]


@pytest.mark.parametrize(("error", "meaning"), CASES)
def test_an_answer_is_understood_or_counts_as_none(error: Exception, meaning: Meaning) -> None:
    answer = answer_of(error)
    assert answer.meaning is meaning
    assert KEY_ID not in answer.why


def test_an_answer_says_status_code_and_kind() -> None:
    assert answer_of(status(503, "SlowDown")) == RequestFailure(Meaning.REFUSED, "503 SlowDown")
    assert answer_of(GenericError(HTTP.format("Timeout"))).why == "Timeout"
    assert answer_of(GenericError("other")).why == "GenericError"

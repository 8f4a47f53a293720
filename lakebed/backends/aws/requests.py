"""Sending a request again while that is safe, and saying truthfully how it ended."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NoReturn, TypeVar

import msgspec

from lakebed.backends.aws.answers import Language, Meaning, RequestFailure
from lakebed.errors import (
    ConflictError,
    CorruptError,
    DeniedError,
    InvalidError,
    ObjectExistsError,
    ObjectMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.observe import usage
from lakebed.observe.usage import Counter
from lakebed.ports.clock import Clock

T = TypeVar("T")

UNSENT = (Meaning.UNREACHABLE, Meaning.NO_CREDENTIALS)
"""Failures of requests that no store has seen, and that cost nothing."""


class ConditionError(ConflictError):
    """A write came with a condition that does not hold, perhaps since an earlier try of its own.

    What is done: nothing was written by the last try. What you can do: read, then decide.

    unmet: positions of the writes, among several, whose condition does not hold.
    """

    unmet: tuple[int, ...] = ()


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """The retry policy of a request: how long it is repeated. Waits double up to a bound, each
    times a random share."""

    tries_max: int = 8
    seconds_max: float = 30.0
    first_wait_seconds: float = 0.1
    wait_seconds_max: float = 5.0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a request to the store.

    needs: the permissions.
    writes: others may see its effect.
    once: a try without an answer is the last; what it did is for the caller to find out.
    counter: as which each try is counted that was sent; None: who sends it counts it, as clients of
        boto3 do.
    sent: how many requests of the store's one try is.
    """

    what: str
    needs: str
    path: str = ""
    writes: bool = False
    once: bool = False
    counter: Counter | None = None
    sent: int = 1


class Requests:
    """Runs requests that may be repeated: reads, deletions, and writes that never overwrite.

    resource: the name of the bucket, table or queue that they go to.
    """

    def __init__(
        self,
        language: Language,
        resource: str,
        *,
        clock: Clock,
        rng: random.Random,
        patience: Patience,
    ) -> None:
        self._language = language
        self._resource = resource
        self._clock = clock
        self._rng = rng
        self._patience = patience

    def run(self, request: Request, call: Callable[[], T]) -> T:
        """Return what `call` returns. The outcome is the weakest of its tries (protocol H2).

        Raises:
            ObjectExistsError: the path is taken, perhaps by an earlier try.
            ConditionError: as the write's condition does not hold, perhaps by an earlier try.
            ObjectMissingError, CorruptError: not there; shorter than what was asked for.
            UnavailableError: no try was done by the store.
            UnknownOutcomeError: of a write: a try had no answer, so it may be done.
            DeniedError: the credentials do not permit it, or are not valid.
            InvalidError: no such resource, or nothing that could ever work.
        """
        patience = self._patience
        end = self._clock.monotonic() + patience.seconds_max
        in_doubt = False
        for attempt in range(patience.tries_max):
            try:
                found = call()
            except self._language.errors as error:
                answer = self._language.answer_of(error)
            else:
                _count(request)
                return found
            if answer.meaning not in UNSENT:
                _count(request)
            unanswered = answer.meaning is Meaning.UNANSWERED
            in_doubt = in_doubt or (request.writes and unanswered)
            wait = min(patience.first_wait_seconds * 2**attempt, patience.wait_seconds_max)
            wait *= self._rng.random()
            last = attempt + 1 == patience.tries_max or self._clock.monotonic() + wait > end
            if last or not answer.meaning.may_pass or (unanswered and request.once):
                self._refuse(request, answer, in_doubt=in_doubt)
            self._clock.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _refuse(self, request: Request, answer: RequestFailure, *, in_doubt: bool) -> NoReturn:
        """Raise what an answer means. The chain ends here: clients' texts hold key ids."""
        noun = self._language.noun
        facts = {"why": answer.why, noun: self._resource, "doing": request.what}
        if request.path:
            facts["path"] = request.path
        if answer.meaning is Meaning.EXISTS:
            raise ObjectExistsError(request.path) from None
        if answer.meaning is Meaning.UNMET:
            unmet = ConditionError("a write's condition does not hold", hint=None, **facts)
            unmet.unmet = answer.unmet
            raise unmet from None
        if in_doubt:
            raise UnknownOutcomeError("a write has no answer", hint=None, **facts) from None
        match answer.meaning:
            case Meaning.MISSING:
                raise ObjectMissingError(request.path) from None
            case Meaning.SHORT:
                raise CorruptError("object is shorter", hint=None, **facts) from None
            case Meaning.NO_RESOURCE:
                hint = f"name a {noun} that exists, or make it first"
                raise InvalidError(f"there is no such {noun}", hint=hint, **facts) from None
            case Meaning.DENIED:
                needs = answer.permission or request.needs
                hint = (
                    f"the credentials must be valid, permit {needs} there, and the clock be right"
                )
                facts["permission"] = needs
                raise DeniedError("the store refuses the credentials", hint=hint, **facts) from None
            case Meaning.INVALID:
                hint = f"are {noun}, region and endpoint right?"
                raise InvalidError("the store refuses the request", hint=hint, **facts) from None
            case Meaning.NO_CREDENTIALS:
                hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give it a role"
                raise UnavailableError("found no credentials", hint=hint, **facts) from None
            case Meaning.UNREACHABLE:
                hint = "is AWS_ENDPOINT_URL right, and the network up?"
                raise UnavailableError("cannot reach the store", hint=hint, **facts) from None
            case _:
                raise UnavailableError("the store is busy", hint=None, **facts) from None


def _count(request: Request) -> None:
    if request.counter is not None:
        usage.count(request.counter, request.sent)

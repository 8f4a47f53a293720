"""Errors of feeds, by what the catcher should do next, as in `lakebed.errors`."""

from __future__ import annotations

from lakebed.errors import ConflictError, FencedError, InvalidError


class PositionMovedError(ConflictError):
    """The source split was taken on since this batch of it was read, or an operator moved it.

    What is done: nothing was written, and this batch never will be. What you can do: nothing; the
    worker forgets the batch and goes on at the position that is committed.
    """


class OwnerFencedError(FencedError):
    """The source split has a newer owner: another worker has taken it over.

    What is done: nothing was written. What you can do: nothing; the worker gives the source split
    up, and its new owner goes on at the position that is committed.
    """


class DefinitionMovedError(ConflictError):
    """The rows were made by an older definition of the connection than the table knows.

    What is done: nothing was written. What you can do: nothing; the worker makes the rows anew, as
    the newer definition says.
    """


class ItemsTakenError(ConflictError):
    """Some items of the batch, such as messages of a queue, are in the table already.

    What is done: nothing was written. What you can do: nothing; the worker drops those items and
    sends the others again.
    """


class WindowSealedError(ConflictError):
    """A window of event time was sealed since rows were made for it, and the policy does not accept
    late rows.

    What is done: nothing was written, and this batch never will be. What you can do: nothing; the
    worker stages the batch again, with these rows as late ones.
    """


class TooManyWindowsError(InvalidError):
    """The rows of one commit lie in more windows of event time than it may count.

    What is done: nothing was written. What you can do: nothing where records come one by one: the
    worker reads half as many, and commits those. Where one object, or one message, holds that many,
    use longer windows.
    """


class InvalidKeyError(InvalidError):
    """The key of a row is null, or too long.

    What is done: no row of the request was taken in. What you can do: leave such rows out, or make
    the field a value; keep long text as a value, beside a shorter key such as its digest.
    """


class RowsRefusedError(InvalidError):
    """The table refuses the rows of a round as a whole, for what they are.

    What is done: nothing was written. What you can do: nothing where records come one by one: the
    worker reads half as many, down to the record to blame, which is dealt with as the policy says
    of one that is no row. Where rows of a landing table, or of one object, are refused, the feed
    stops: mend the table, or the source.
    """

    def __init__(self, error: InvalidError, *, takes_others: bool | None) -> None:
        """error: of the table. takes_others: whether it took some row of the round alone; None: it
        was not tried."""
        super().__init__(error.message, hint=error.hint, **error.facts)
        self.table_error = error
        self.takes_others = takes_others


class PositionGoneError(InvalidError):
    """The source no longer has the records behind the position: its retention or a truncation took
    them before they were read.

    What is done: nothing was written. What you can do: the records are lost in the source. Let the
    feed go on behind the gap, which is then recorded (policy `gap = "record"`), or reset the
    position.
    """

    def __init__(self, message: str, *, first: int, end: int, **facts: object) -> None:
        """first: the position that was wanted. end: the first one that the source has."""
        hint = "let the policy record gaps, or reset the position"
        super().__init__(message, wanted=first, oldest=end, hint=hint, **facts)
        self.first = first
        self.end = end


class DefinitionChangedError(ConflictError):
    """Another process changed, dropped or created a definition, or started or stopped what it
    defines, since it was read.

    What is done: nothing was changed by this call. What you can do: run the same command again; it
    reads the definitions anew.
    """


class SecretMissingError(InvalidError):
    """A definition names a secret that is not where secrets are looked for.

    What is done: nothing; the feed does not begin. What you can do: store the secret under that
    name: in the environment, in a file that only its owner may read, or in Secrets Manager.
    """


class RecordRefusedError(InvalidError):
    """A record of a source is no row of the table, and the policy of the connection stops there.

    What is done: what came before the record is committed or read again; the record and what
    follows it stay unread. What you can do: mend the definition or the table, or let the policy
    quarantine such records (`on_record_error = "quarantine"`), then start the connection again.
    """


class TooManyBadError(InvalidError):
    """Too many records of this hour of log time can be no rows: a greater share than the policy's
    `errors_fraction_max` allows.

    What is done: what came before is committed, and the connection stops. What you can do: look at
    the quarantine table, mend the source or the definition, and start the feed again: it goes on
    until the next bad record of that hour, or longer if the policy allows more.
    """


class WorkerLostError(InvalidError):
    """A worker that took records of the connection was lost, and the policy says that it stops then
    (`on_worker_failure = "stop"`).

    What is done: what was committed stays; the connection stops. What you can do: look why the
    worker ended, and start the feed again.
    """


class FeedLaggingError(InvalidError):
    """The connection has been behind its source for longer than `lag_seconds_max`, and the policy
    says that it stops then (`on_lag = "fail"`).

    What is done: what was committed stays; the connection stops. What you can do: give it more
    workers, or a policy that allows more, and start the feed again.
    """

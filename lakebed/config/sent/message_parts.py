"""Parts that several messages of users have, and what all messages are."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from lakebed.errors import InvalidError
from lakebed.model.addresses import NAME_LENGTH_MAX, NAMED_FILES_MAX, check_named_file
from lakebed.model.names import job_id, table_name

VALUE_CHARACTERS_SHOWN = 80
"""Most characters of a refused value that an error shows."""


def validated_by(check: Any) -> AfterValidator:  # noqa: ANN401 - any function of one argument
    """Return a check that says what one of ours says."""

    def checked(value: Any) -> Any:  # noqa: ANN401 - as it came
        try:
            check(value)
        except InvalidError as error:
            raise ValueError(str(error)) from None
        return value

    return AfterValidator(checked)


Id = Annotated[
    str,
    validated_by(job_id),
    Field(
        description="Your name for this request. The same request sent again under it is done"
        " once, and `lakebed jobs TABLE --job ID` shows its outcome. Left out: made from the"
        " message."
    ),
]
Table = Annotated[
    str,
    validated_by(table_name),
    Field(description="The table: 1 to 63 of a-z, 0-9, `_` and `-`, a letter first."),
]
File = Annotated[
    str,
    StringConstraints(min_length=1, max_length=NAME_LENGTH_MAX),
    validated_by(check_named_file),
]
Files = Annotated[
    list[File],
    Field(
        min_length=1,
        max_length=NAMED_FILES_MAX,
        description="Files of Parquet, CSV or JSON lines, as `s3://BUCKET/KEY`. A name that ends"
        " with `/` means all files below it, but for names that begin with `_` or `.`.",
    ),
]


class UserMessage(BaseModel):
    """The base of all messages: closed, checked as a whole, never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    table: Table


class JobMessage(UserMessage):
    """A message that is one request, with an outcome."""

    id: Id | None = None

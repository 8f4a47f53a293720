"""Reads the quotas that an account has, as a deployment says them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lakebed.config.settings import named_in
from lakebed.errors import InvalidError

_QUOTA = r"L-[0-9A-F]{8}=[0-9]{1,7}"

AccountQuotas = Annotated[
    str,
    Meta(
        pattern=rf"\A({_QUOTA}(,{_QUOTA})*)?\Z",
        description="What the account has of quotas of AWS, as `CODE=NUMBER` with commas between:"
        " `L-3032A538=40`. Settings that need more are refused. Of a quota that is not named, those"
        " are warned of that need more than a new account has.",
    ),
]


def quotas_said(setting: str) -> dict[str, int]:
    """Return what the account has of each quota that the setting names, by the quota's code.

    Raises:
        InvalidError: it names one twice.
    """
    said: dict[str, int] = {}
    for item in named_in(setting):
        code, _, number = item.partition("=")
        if code in said:
            hint = "name each quota once"
            raise InvalidError("a quota is named twice", account_quotas=code, hint=hint)
        said[code] = int(number)
    return said

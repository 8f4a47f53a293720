"""Settings of an instance that say which people may do what: who may assume which role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, get_args

from msgspec import Meta

from lakebed.config.settings import check_listed, named_in
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.config.instance import InstanceSettings

PersonRole = Literal["reader", "sender", "writer", "operator", "admin"]
PERSON_ROLES: tuple[PersonRole, ...] = get_args(PersonRole)
PRINCIPALS_MAX = 20
"""A trust policy has 2,048 characters."""
TRUST_CHARACTERS_MAX = 1_700
"""Most characters of these ARNs; the rest is for what stands around them."""

_PRINCIPAL = r"arn:aws[a-z-]*:iam::[0-9]{12}:(root|(user|role)/[A-Za-z0-9_+=.@/-]{1,512})"
_PATTERN = rf"\A({_PRINCIPAL}(,{_PRINCIPAL})*)?\Z"
_WHO = "ARNs of users, roles or whole accounts (`...:root`), with commas between, that may assume"

PeopleReader = Annotated[
    str,
    Meta(
        pattern=_PATTERN,
        description=f"{_WHO} the role `lakebed-INSTANCE-reader`. It asks queries and reads their"
        " results. None: there is no such role; its policy, of the same name, can be attached.",
    ),
]
PeopleDirect = Annotated[
    bool,
    Meta(
        description="Whether readers may also read tables by the library, and so all files of the"
        " lake. `false`: only what the function of queries answers."
    ),
]
PeopleSender = Annotated[
    str,
    Meta(
        pattern=_PATTERN,
        description=f"{_WHO} the role `lakebed-INSTANCE-sender`. It sends messages of ingest and"
        " bulk imports, reads no rows and deletes nothing.",
    ),
]
PeopleWriter = Annotated[
    str,
    Meta(
        pattern=_PATTERN,
        description=f"{_WHO} the role `lakebed-INSTANCE-writer`. It reads tables and ingests rows"
        " by the library, and submits files.",
    ),
]
PeopleOperator = Annotated[
    str,
    Meta(
        pattern=_PATTERN,
        description=f"{_WHO} the role `lakebed-INSTANCE-operator`. It sees status, jobs, tasks and"
        " logs, sends dead letters again, starts tasks and switches schedules, and reads no rows.",
    ),
]
PeopleAdmin = Annotated[
    str,
    Meta(
        pattern=_PATTERN,
        description=f"{_WHO} the role `lakebed-INSTANCE-admin`. It does all that the command"
        " `lakebed` does with an instance, and cannot change what is deployed, nor turn on what"
        " protects stored data.",
    ),
]


def principals_of(settings: InstanceSettings, role: PersonRole) -> list[str]:
    """Return the ARNs that may assume a role."""
    return named_in(getattr(settings, f"people_{role}"))


def check_people(settings: InstanceSettings) -> None:
    """Check that each role can be deployed.

    Raises:
        InvalidError: too many may assume one, one is named twice, or they are of several
            partitions.
    """
    for role in PERSON_ROLES:
        name = f"people_{role}"
        value = getattr(settings, name)
        check_listed(name, value, items_max=PRINCIPALS_MAX)
        if len(value) > TRUST_CHARACTERS_MAX:
            hint = f"at most {TRUST_CHARACTERS_MAX} characters; let them assume one role of yours"
            raise InvalidError("too long for a role's trust policy", setting=name, hint=hint)
        if len({arn.split(":")[1] for arn in named_in(value)}) > 1:
            hint = "a role is assumed within its own partition of AWS"
            raise InvalidError("people of several partitions", setting=name, hint=hint)

"""A process whose wall clock runs ahead of this machine's, by as much as it is told.

Run by its path, with another program and its arguments, in interpreters that know nothing of
Lakebed. The program finds this module in `sys.modules` as `shifted_time`. It changes what `time`
and `datetime` themselves say, so that every library in the process is reached. The time since the
machine was started runs ahead as well. Monotonic clocks go on as they are: waits and timeouts are
real. Compiled code that asks the system by itself is not reached.
"""

from __future__ import annotations

import ctypes
import datetime
import gc
import runpy
import sys
import time
from collections.abc import Callable
from typing import Any

_ahead_ns = 0


def shift(seconds: float) -> None:
    """Run ahead by so many seconds from now on, in place of what was said before."""
    global _ahead_ns  # noqa: PLW0603 - of the whole process, as a clock is
    _ahead_ns = round(seconds * 1_000_000_000)


def install() -> None:
    """Let this process see the shifted clock. To be called once, before other modules are loaded:
    `from time import time` keeps what it got."""
    _replace_functions_of_time()
    members = _members_of(datetime.datetime)
    members["now"] = classmethod(_now)
    members["utcnow"] = classmethod(_utcnow)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))
    shift(86_400)
    day = datetime.datetime.now(datetime.UTC).timestamp() - time.time()
    shift(0)
    if not -1 < day < 1:
        raise RuntimeError("this Python does not let its clock be shifted")


def _replace_functions_of_time() -> None:
    real_ns, gmtime, localtime = time.time_ns, time.gmtime, time.localtime
    strftime, clock_ns = time.strftime, time.clock_gettime_ns
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    here: dict[str, Callable[..., Any]] = {
        "time_ns": lambda: real_ns() + _ahead_ns,
        "time": lambda: (real_ns() + _ahead_ns) / 1_000_000_000,
        "gmtime": lambda seconds=None: gmtime(time.time() if seconds is None else seconds),
        "localtime": lambda seconds=None: localtime(time.time() if seconds is None else seconds),
        "clock_gettime_ns": lambda id_: clock_ns(id_) + (_ahead_ns if id_ == boot else 0),
        "strftime": lambda form, at=None: strftime(form, time.localtime() if at is None else at),
    }
    for name, function in here.items():
        setattr(time, name, function)


def _now(kind: type[datetime.datetime], tz: datetime.tzinfo | None = None) -> datetime.datetime:
    return kind.fromtimestamp(time.time(), tz)


def _utcnow(kind: type[datetime.datetime]) -> datetime.datetime:
    return kind.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)


def _members_of(kind: type) -> dict[str, object]:
    """Return the members of a class that Python keeps read-only: `datetime` is one of them."""
    (members,) = gc.get_referents(kind.__dict__)
    return dict.__ior__(members, {})  # the very same


if __name__ == "__main__":
    sys.modules["shifted_time"] = sys.modules["__main__"]
    install()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")

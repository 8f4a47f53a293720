"""Where a program and those that it started listen: servers of tests serve this machine only.

On Linux, from `/proc`; elsewhere nothing is known, and nothing is said.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
LISTEN = "0A"
TABLES = ("tcp", "tcp6")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def beyond_loopback(pid: int) -> list[str]:
    """Return `ADDRESS PORT` of each socket of a process and its descendants that takes connections
    from other machines."""
    return sorted(
        f"{address} {port}" for address, port in listening(pid) if not _is_loopback(address)
    )


def listening(pid: int) -> set[tuple[Address, int]]:
    """Return address and port of each socket on which a process or a descendant listens."""
    found = set()
    for one in _family(pid):
        sockets = set(_sockets(one))
        for table in TABLES:
            with suppress(OSError):  # it has ended, or this is not Linux
                lines = (PROC / str(one) / "net" / table).read_text().splitlines()[1:]
                found |= {_address(line) for line in lines if _is_open(line, sockets)}
    return found


def _family(pid: int) -> Iterator[int]:
    yield pid
    parents: dict[int, list[int]] = {}
    for stat in PROC.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            # The name, in parentheses, may hold anything.
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(stat.parent.name))
    waiting = parents.get(pid, [])
    while waiting:
        one = waiting.pop()
        yield one
        waiting += parents.get(one, [])


def _sockets(pid: int) -> Iterator[str]:
    """Yield the inodes of a process's sockets."""
    with suppress(OSError):
        for descriptor in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                target = str(descriptor.readlink())
                if target.startswith("socket:["):
                    yield target[8:-1]


def _is_open(line: str, sockets: set[str]) -> bool:
    fields = line.split()
    return fields[3] == LISTEN and fields[9] in sockets


def _address(line: str) -> tuple[Address, int]:
    text, _, port = line.split()[1].partition(":")
    words = struct.unpack(f">{len(text) // 8}I", bytes.fromhex(text))
    return ipaddress.ip_address(struct.pack(f"={len(words)}I", *words)), int(port, 16)


def _is_loopback(address: Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback

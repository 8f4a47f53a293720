"""Finds which file system a path lies on, and whether that one is a network's."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

_NETWORK = """
    9p afpfs afs beegfs ceph cifs coda davfs fuse.ceph-fuse fuse.davfs2 fuse.gcsfuse
    fuse.glusterfs fuse.goofys fuse.rclone fuse.s3fs fuse.s3fs-fuse fuse.sshfs fuse.mount-s3
    fuse.blobfuse fuse.blobfuse2 fuse.juicefs glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2
    orangefs smb2 smb3 smbfs webdav
"""
NETWORK_KINDS = frozenset(_NETWORK.split())
_MACOS_LINE = re.compile(r".* on (?P<path>/.*) \((?P<kind>\w+)[,)].*")
_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mount(msgspec.Struct, frozen=True):
    """A mounted file system.

    path: where.
    kind: such as `ext4` or `nfs4`.
    """

    path: str
    kind: str

    @property
    def is_network(self) -> bool:
        """Return whether its files lie on another machine, where locks and syncs are not to be
        trusted."""
        return self.kind in NETWORK_KINDS


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """Return the mount that holds an absolute path: the longest one, the last of equals."""
    holding = [m for m in mounts if m.path == "/" or f"{path}/".startswith(f"{m.path}/")]
    longest = max((len(m.path) for m in holding), default=0)
    return next((m for m in reversed(holding) if len(m.path) == longest), None)


def mounts_of_this_machine() -> list[Mount]:
    """Return the mount table; empty where there is no way to know it."""
    try:
        if sys.platform == "darwin":
            done = subprocess.run(
                ["/sbin/mount"], capture_output=True, text=True, check=True, timeout=10
            )
            return mounts_from_macos(done.stdout)
        table = Path("/proc/self/mountinfo")
        return mounts_from_linux(table.read_text("utf-8", "surrogateescape"))
    except (OSError, subprocess.SubprocessError):
        return []


def mounts_from_linux(text: str) -> list[Mount]:
    """Return what `/proc/self/mountinfo` says: id parent device root PATH ... - KIND ..."""
    mounts = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if dash and len(fields) > 4:
            path = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), fields[4])
            mounts.append(Mount(path, after.split(" ")[0]))
    return mounts


def mounts_from_macos(text: str) -> list[Mount]:
    """Return what `mount` prints: SOURCE on PATH (KIND, options)."""
    lines = (_MACOS_LINE.fullmatch(line) for line in text.splitlines())
    return [Mount(found["path"], found["kind"]) for found in lines if found]

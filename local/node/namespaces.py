"""Linux namespaces and mounts through the C library (`os.unshare` and `os.setns` came with Python 3.12)."""

import ctypes
import os
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SHARED = 0x100000

_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones. A new pid namespace holds only for children."""
    _call("unshare", ctypes.c_int(flags))


def setns(fd: int, flag: int) -> None:
    """Enter the namespace behind an open `/proc/<pid>/ns/*` file."""
    _call("setns", ctypes.c_int(fd), ctypes.c_int(flag))


def die_with_parent(signal_number: int) -> None:
    """Ask the kernel for `signal_number` at the death of the parent process."""
    _call("prctl", ctypes.c_int(_PR_SET_PDEATHSIG), ctypes.c_ulong(signal_number), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))


def mount(source: str, target: Path | str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2)."""
    _call(
        "mount",
        ctypes.c_char_p(source.encode()),
        ctypes.c_char_p(os.fsencode(target)),
        ctypes.c_char_p(kind.encode() or None),
        ctypes.c_ulong(flags),
        ctypes.c_char_p(data.encode() or None),
        what=f"mount {source} on {target}",
    )


def bind(source: Path | str, target: Path, *, read_only: bool = False) -> None:
    """Show `source` (file or folder) at `target`, which exists."""
    mount(str(source), target, flags=MS_BIND | MS_REC)
    if read_only:
        mount("none", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)


def _call(name: str, *args: object, what: str = "") -> None:
    if getattr(_libc, name)(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what or name}: {os.strerror(code)}")

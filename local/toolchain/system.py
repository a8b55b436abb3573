"""What the machine itself must have: Python versions and Debian packages. Standard library only, since the bootstrap uses it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from local.errors import LocalStackError

TRAINING_PYTHON = (3, 11)
"""The trainer image's Python, whose pods load the training environment's compiled packages."""


@dataclass(frozen=True, kw_only=True)
class SystemPackage:
    """A Debian package, and the file or command that shows that it (or another system's equal) is there."""

    name: str
    probe: str
    purpose: str

    @property
    def present(self) -> bool:
        if self.probe.startswith("/"):
            return Path(self.probe).exists()
        # Debian keeps what only root uses out of an ordinary user's PATH.
        return shutil.which(self.probe, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") is not None


NODE_PACKAGES = (
    SystemPackage(name="runc", probe="runc", purpose="runs the node's containers"),
    SystemPackage(name="containernetworking-plugins", probe="/usr/lib/cni/bridge", purpose="networks of the node's pods"),
    SystemPackage(name="iproute2", probe="ip", purpose="the node's network namespace"),
    SystemPackage(name="iptables", probe="iptables", purpose="kube-proxy's rules"),
    SystemPackage(name="util-linux", probe="unshare", purpose="the node's other namespaces"),
    SystemPackage(name="mount", probe="mount", purpose="the node's volumes"),
    SystemPackage(name="openssl", probe="openssl", purpose="the cluster's certificates"),
    SystemPackage(name="debootstrap", probe="debootstrap", purpose="the trainer image"),
)
"""Needed to run the one-node cluster."""
COMPILER_PACKAGES = (SystemPackage(name="g++", probe="g++", purpose="DeepSpeed's CPU operators"),)
"""Needed to make the training environment."""


def python_with_pip() -> Path:
    """An interpreter that has pip: this one, or the one its virtual environment was made from. Debian's pip is installed where it can be.

    Raises:
        LocalStackError: neither has it, and it can't be installed from here.
    """
    candidates = [sys.executable, getattr(sys, "_base_executable", sys.executable)]
    found = next(filter(_has_pip, candidates), None)
    if found is None and Path(candidates[-1]).resolve().parent == Path("/usr/bin"):
        ensure_packages([SystemPackage(name="python3-pip", probe="/usr/lib/python3/dist-packages/pip", purpose="installs uv")])
        found = next(filter(_has_pip, candidates), None)
    if found is None:
        raise LocalStackError(
            f"{candidates[-1]} has no pip; install it (`{candidates[-1]} -m ensurepip`) or name another one: make PYTHON=..."
        )
    return Path(found)


def _has_pip(python: str) -> bool:
    return subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0


def training_python() -> Path:
    """A Python 3.11 with its header files.

    Raises:
        LocalStackError: there is none on PATH, or only one without headers.
    """
    wanted = ".".join(map(str, TRAINING_PYTHON))
    names = [getattr(sys, "_base_executable", sys.executable), shutil.which(f"python{wanted}"), f"/usr/bin/python{wanted}"]
    bare: list[str] = []
    for name in dict.fromkeys(name for name in names if name and Path(name).exists()):
        script = "import os, sys, sysconfig; print(*sys.version_info[:2], os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
        answer = subprocess.run([name, "-c", script], capture_output=True, text=True, check=False).stdout.split()
        if answer[:2] == [str(part) for part in TRAINING_PYTHON]:
            if answer[2] == "True":
                return Path(name)
            bare.append(name)
    if bare:
        package = SystemPackage(name=f"python{wanted}-dev", probe=f"/usr/include/python{wanted}/Python.h", purpose="headers")
        if not package.present and bare[-1].startswith("/usr/bin"):
            ensure_packages([package])
            return Path(bare[-1])
        raise LocalStackError(f"{bare[0]} has no header files (Python.h), which DeepSpeed's operators need: apt-get install {package.name}")
    raise LocalStackError(f"the training environment needs Python {wanted} (the trainer image's), and no python{wanted} is on PATH")


def missing(packages: Sequence[SystemPackage]) -> list[SystemPackage]:
    """Those of `packages` that the machine lacks."""
    return [package for package in packages if not package.present]


def ensure_packages(packages: Sequence[SystemPackage]) -> list[SystemPackage]:
    """Install what the machine lacks of `packages`, saying so; returns what was installed.

    Raises:
        LocalStackError: packages are missing and this is not root on a Debian; the message holds the command to run.
    """
    lacking = missing(packages)
    if not lacking:
        return []
    names = [package.name for package in lacking]
    command = f"apt-get install -y --no-install-recommends {' '.join(names)}"
    reasons = ", ".join(f"{package.name} ({package.purpose})" for package in lacking)
    apt = shutil.which("apt-get")
    if apt is None:
        raise LocalStackError(f"missing on this machine: {reasons}. Install what your system calls them (on Debian: {command})")
    if os.geteuid() != 0:
        raise LocalStackError(f"missing on this machine: {reasons}. Run: sudo {command}")
    print(f"installing Debian packages: {reasons}", file=sys.stderr, flush=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for words in ([apt, "update", "-qq"], [apt, *command.split()[1:], "-qq"]):
        # Another apt on the machine holds the lock for a while at most; five minutes outwait it.
        words[1:1] = ["-o", "DPkg::Lock::Timeout=300"]
        answer = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        # A package index that can't be refreshed is no error as long as the packages can be had.
        if answer.returncode and "install" in words:
            tail = "\n".join((answer.stdout + answer.stderr).splitlines()[-8:])
            raise LocalStackError(f"`{command}` ended with status {answer.returncode}:\n{tail}")
    left = missing(lacking)
    if left:
        raise LocalStackError(f"`{command}` succeeded, but {', '.join(package.probe for package in left)} is still missing")
    return lacking

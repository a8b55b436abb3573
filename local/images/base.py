"""The Debian base of the images: a minimal bookworm with ssh, Open MPI and Python, made once and kept as a tar.

Its Python is the one that the training environment is made for, which is why the release is fixed.
"""

import fcntl
import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from local.errors import LocalStackError
from local.paths import cache_dir
from local.progress import Progress

RELEASE = "bookworm"
USER, USER_ID, HOME = "trainer", 1000, "/home/trainer"
PACKAGES = (
    # Shell of the webhook's certificate script; openssl makes the certificates.
    "busybox-static",
    "openssl",
    "ca-certificates",
    # DeepSpeed's compiled operators are linked with it.
    "libgomp1",
    "openmpi-bin",
    "openssh-client",
    "openssh-server",
    "procps",
    "python3",
    # torch looks for a compiler through it and warns at every start where it is missing.
    "python3-distutils",
)
MIRROR_VARIABLE = "TRAINYARD_DEBIAN_MIRROR"

# No container reads these. Host keys made at installation would be the same in every image.
_PRUNED = (
    "etc/ssh/ssh_host_*",
    "usr/share/doc/*",
    "usr/share/info/*",
    "usr/share/lintian",
    "usr/share/locale/*",
    "usr/share/man/*",
    "var/cache/apt/*",
    "var/lib/apt/lists/*",
    "var/log/*.log",
)
# Raise it when what is done to the packages changes, so that an older tar isn't taken.
_STEPS_VERSION = 1
_APT = Path("/etc/apt")


def base_key() -> str:
    """Twelve hex digits over everything that decides the base but the mirror's present packages."""
    return hashlib.sha256(repr((RELEASE, PACKAGES, USER, USER_ID, _PRUNED, _STEPS_VERSION)).encode()).hexdigest()[:12]


def ensure_base(progress: Progress) -> Path:
    """The base as an uncompressed tar, made (in about two minutes) where the cache lacks it.

    Raises:
        LocalStackError: no root, no debootstrap, no known mirror, or debootstrap failed (its log is named).
    """
    target = cache_dir() / "images" / f"base-{base_key()}.tar"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "base.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            for remains in target.parent.glob("base-*.rootfs"):
                shutil.rmtree(remains)
            with progress.step("build the Debian base of the images (two minutes, once)"):
                _build(target, progress)
    return target


def find_mirror(sources: Mapping[str, str]) -> str | None:
    """The archive that apt takes the release from. `sources` are apt's files: name -> text."""
    for name, text in sorted(sources.items()):
        for addresses, suites in _stanzas(text) if name.endswith(".sources") else _lines(text):
            fitting = [address for address in addresses if re.match(r"(https?|file)://?", address)]
            if RELEASE in suites and fitting:
                return fitting[0]
    return None


def copy_members(base: Path, names: Iterable[str], target: Path) -> None:
    """Write a tar of `names` (paths without a leading slash) out of the base; a link's target has to be named as well.

    Raises:
        LocalStackError: the base lacks one of them.
    """
    wanted = set(names)
    with tarfile.open(base) as source, tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as result:
        for member in source:
            name = member.name.removeprefix("./")
            if name in wanted:
                wanted.remove(name)
                result.addfile(member, source.extractfile(member) if member.isreg() else None)
    if wanted:
        raise LocalStackError(f"the Debian base {base} lacks {', '.join(sorted(wanted))}: remove it to have it built again")


def _build(target: Path, progress: Progress) -> None:
    debootstrap = shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if debootstrap is None:
        raise LocalStackError("debootstrap is not installed; it makes the trainer's image (Debian: `apt-get install debootstrap`)")
    if os.geteuid() != 0:
        raise LocalStackError(
            "only root can make the trainer's image (debootstrap needs chroot); run as root, or use a cluster of your own"
        )
    root = target.with_name(f"{target.stem}.{os.getpid()}.rootfs")
    partial = target.with_suffix(".partial")
    try:
        # The namespaces take mounts and processes away with them, also when this is killed.
        inside = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
        progress.run([*inside, debootstrap, "--variant=minbase", f"--include={','.join(PACKAGES)}", RELEASE, root, _mirror()])
        progress.run(["chroot", root, "useradd", "--uid", str(USER_ID), "--create-home", "--home-dir", HOME, "--shell", "/bin/bash", USER])
        _prune(root)
        kept_out = [f"--exclude=./{name}/*" for name in ("dev", "proc", "sys", "run")]
        progress.run(["tar", "--create", "--sort=name", "--numeric-owner", *kept_out, "--directory", root, "--file", partial, "."])
        partial.replace(target)
    finally:
        shutil.rmtree(root, ignore_errors=True)
        partial.unlink(missing_ok=True)


def _prune(root: Path) -> None:
    for pattern in _PRUNED:
        for path in root.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _mirror() -> str:
    files = [_APT / "sources.list", *(_APT / "sources.list.d").glob("*")]
    found = os.environ.get(MIRROR_VARIABLE) or find_mirror({path.name: path.read_text() for path in files if path.is_file()})
    if found is None:
        raise LocalStackError(
            f"no source of Debian {RELEASE} in {_APT}, which the trainer's image is made from: set {MIRROR_VARIABLE} to a mirror's URL"
        )
    return found


def _lines(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Addresses and suites of the one-line form: `deb [options] address suite component...`."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[[^\]]*\]\s*)?(\S+)\s+(\S+)", line)
        if match:
            yield [match[1]], [match[2]]


def _stanzas(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Addresses and suites of the deb822 form."""
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        fields = {key.strip().lower(): value.split() for key, _, value in (line.partition(":") for line in lines)}
        if "deb" in fields.get("types", []) and fields.get("enabled") != ["no"]:
            yield fields.get("uris", []), fields.get("suites", [])

"""What boot scripts install by a package manager, Git or S3: drivers without a release, and updates of the whole system."""

import re
from collections.abc import Iterator

_END = re.compile(r"[;|&\n]+")
# What may stand before a command: in a list of cloud-init, under sudo, with variables.
_BEFORE = r"[\s\"'(\-]*(?:(?:sudo|env|exec|nohup|time|then|do|else|if|until|while|!)\s+(?:-\S+\s+)*|\w+=\S*\s+)*(?:/usr/bin/)?"
_MANAGER = re.compile(rf"{_BEFORE}(yum|dnf|apt-get|apt)\s+(.*)")
_CLONE = re.compile(rf"{_BEFORE}git\s+clone\b(?!.*(?:\s-b|\s--branch\b|\s--revision\b))(.*)")
_INSTALLS = frozenset({"install", "reinstall"})
_UPDATES = {
    **dict.fromkeys(("yum", "dnf"), frozenset({"update", "upgrade"})),
    **dict.fromkeys(("apt", "apt-get"), frozenset({"upgrade", "dist-upgrade", "full-upgrade"})),
}
# Drivers of accelerators and EFA. A major version is a branch, and a wildcard takes what is newest;
# more of a version is a release, with a wildcard behind all of its numbers for that of the package.
_DRIVER = re.compile(
    r"(?:aws-neuronx?-[a-z-]*[a-z]|nvidia-driver(?:-[a-z-]*[a-z])?|nvidia-open|cuda-drivers|kmod-nvidia[a-z-]*|nvidia-fabric-?manager"
    r"|efa|efa-[a-z]+|libfabric-aws)"
    r"(?:-[0-9]{1,3}(?:-[a-z-]*[a-z])?)?(?:[=-](?:[0-9]+\.?){0,2}\*)?"
)
_SOURCES = re.compile(r"[/:](?:aws-ofi-nccl|libfabric|gdrcopy|nccl)(?:\.git)?/?[\"']?(?=\s|$)")
_BUCKETS = re.compile(r"s3://ec2-(?:linux-nvidia|amd-linux)-drivers/\S*latest\S*")
_NEWEST = re.compile(r"--releasever[= ]latest\b")
# What settles elsewhere in a script which release is taken.
_SETTLED = re.compile(r"versionlock|/etc/apt/preferences|nvidia-driver-pinning-[0-9]+\.[0-9]")
_GIT, _CHECK_OUT = re.compile(r"\bgit(?=\s)"), re.compile(r"\s(?:checkout|switch|reset)\b")
# One repository alone, instead of those that the system has, is somebody's choice of releases.
_ALL_BUT, _ONE = re.compile(r"--disablerepo[= ][\"']?\*"), re.compile(r"--enable-?repo\b")


def floating(text: str) -> str | None:
    """The first command of a script that takes whichever release is newest."""
    settled, checked_out = bool(_SETTLED.search(text)), _is_checked_out(text)
    return next((command for command in _commands(text) if _floats(command, settled=settled, checked_out=checked_out)), None)


def update(text: str) -> str | None:
    """The first command that updates all packages as far as the image's repositories go, which may be those of one release (AL2023)."""
    return next((command for command in _commands(text) if _updates(command, ("yum", "dnf"))), None)


def _commands(text: str) -> Iterator[str]:
    """The commands of a script, without those in comments."""
    for line in text.replace("\\\n", " ").splitlines():
        if not line.lstrip().startswith("#"):
            yield from (command.strip() for command in _END.split(line))


def _is_checked_out(text: str) -> bool:
    """Whether a script chooses a commit of what it cloned."""
    for line in text.splitlines():
        found = _GIT.search(line)
        if found and _CHECK_OUT.search(line, found.end()):
            return True
    return False


def _floats(command: str, *, settled: bool, checked_out: bool) -> bool:
    if _BUCKETS.search(command) or (_updates(command, ("yum", "dnf")) and _NEWEST.search(command)) or _updates(command, ("apt", "apt-get")):
        return True
    cloned = _CLONE.match(command)
    if cloned and _SOURCES.search(cloned[1]):
        return not checked_out
    _, verb, packages = _managed(command)
    if verb not in _INSTALLS or settled or (_ALL_BUT.search(command) and _ONE.search(command)):
        return False
    return any(map(_DRIVER.fullmatch, packages))


def _updates(command: str, managers: tuple[str, ...]) -> bool:
    manager, verb, packages = _managed(command)
    return manager in managers and verb in _UPDATES[manager] and not packages


def _managed(command: str) -> tuple[str, str, list[str]]:
    """Package manager, what it is to do, and the packages; nothing where the command is another."""
    matched = _MANAGER.match(command)
    words = [word.strip("\"'") for word in _NEWEST.sub("", matched[2]).split() if not word.startswith("-")] if matched else []
    return (matched[1], words[0], words[1:]) if matched and words else ("", "", [])

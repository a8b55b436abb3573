"""Which Pulumi engine and plug-ins are in use: what is installed and recent enough, what was built, or a stand-in of ours."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from local.errors import LocalStackError
from local.paths import REPOSITORY
from local.toolchain.builds import catalogue
from local.toolchain.store import location

Source = Literal["installed", "built", "stand-in", "missing"]
Version = tuple[int, int, int]
NO_VERSION: Version = (0, 0, 0)

STAND_INS = {"pulumi-resource-aws": "local.plugins.aws", "pulumi-resource-eks": "local.plugins.eks"}
"""Plug-ins that can't be built from Go modules -> the Python package that stands in for them on the local stack."""
OWN_FOLDER_MARK = ".trainyard"
"""A file of this name tells that a folder on PATH was put there by `local.toolchain.engine`."""
SELECTABLE = ("pulumi", "pulumi-language-python", "pulumi-resource-kubernetes", *STAND_INS)


@dataclass(frozen=True, kw_only=True)
class ToolStatus:
    """One line of `make status`: what is used for a tool, and why."""

    name: str
    version: str
    """Of what is used; of what would be built where the source is "missing"."""
    source: Source
    path: Path | None
    """The executable, or the folder of an installed plug-in that has none; None for a stand-in and for what is missing."""
    why: str


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    path: Path
    version: Version | None


def choose(name: str) -> ToolStatus:
    """Decide what is used for one of SELECTABLE, without building anything."""
    wanted = required_version(name)
    seen = _candidates(name)
    # The one on PATH goes before plug-in folders; of those the newest is listed first.
    best = next((found for found in seen if found.version and found.version >= (_parse(wanted) or NO_VERSION)), None)
    if best is not None and best.version is not None:
        return ToolStatus(
            name=name, version=_text(best.version), source="installed", path=best.path, why=f"installed, and at least {wanted}"
        )
    reason = "; ".join(_refusal(found, wanted) for found in seen) or "not installed"
    if name in STAND_INS:
        kind = name.removeprefix("pulumi-resource-")
        hint = f"`pulumi plugin install resource {kind} v{wanted}` installs the genuine one"
        return ToolStatus(name=name, version=wanted, source="stand-in", path=None, why=f"{reason}; {hint}")
    built = location(name)
    if built.exists():
        return ToolStatus(name=name, version=wanted, source="built", path=built, why=f"{reason}; built from its Go module")
    return ToolStatus(name=name, version=wanted, source="missing", path=None, why=f"{reason}; built from its Go module when first needed")


def required_version(name: str) -> str:
    """The oldest usable version: what our go.mod pins, or for the stand-ins' models what the Python lock pins.

    Raises:
        LocalStackError: the lock does not pin the plug-in's SDK.
    """
    if name not in STAND_INS:
        return catalogue().builds[name].version
    package = name.replace("pulumi-resource-", "pulumi-")
    match = re.search(rf"^{package}==(\S+)", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)
    if match is None:
        raise LocalStackError(f"requirements.lock pins no {package}, which the version of {name} follows")
    return match[1]


def plugin_home() -> Path:
    """Where the user's own Pulumi keeps plug-ins."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"


def _candidates(name: str) -> list[_Candidate]:
    if name == "pulumi-language-python":
        return _beside_cli(name)
    found = shutil.which(name, path=_path_of_the_user())
    on_path = (
        [_Candidate(path=Path(found), version=_ask_version(Path(found), "version" if name == "pulumi" else "--version"))] if found else []
    )
    return on_path + (_in_plugin_home(name) if name.startswith("pulumi-resource-") else [])


def _path_of_the_user() -> str:
    """PATH without folders of ours, which a command started by one of our commands inherits: what lies there is not installed."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not (Path(folder) / OWN_FOLDER_MARK).exists())


def _beside_cli(name: str) -> list[_Candidate]:
    """The language host that an installed CLI brings: they are released together, so it has the CLI's version."""
    cli = choose("pulumi")
    if cli.source != "installed" or cli.path is None:
        return []
    host = cli.path.resolve().parent / name
    return [_Candidate(path=host, version=_parse(cli.version))] if host.exists() else []


def _in_plugin_home(name: str) -> list[_Candidate]:
    """Installed plug-ins, newest first. A folder beside a `.partial` file is one whose download was cut short."""
    kind = name.removeprefix("pulumi-")
    folders = plugin_home().glob(f"{kind}-v*") if plugin_home().is_dir() else []
    whole = [folder for folder in folders if folder.is_dir() and not folder.with_name(f"{folder.name}.partial").exists()]
    found = [
        _Candidate(path=folder / name if (folder / name).exists() else folder, version=_parse(folder.name.removeprefix(f"{kind}-v")))
        for folder in whole
    ]
    return sorted(found, key=lambda item: item.version or NO_VERSION, reverse=True)


def _ask_version(executable: Path, argument: str) -> Version | None:
    try:
        answer = subprocess.run(
            [executable, argument],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            env=os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _parse(answer.stdout)


def _refusal(found: _Candidate, wanted: str) -> str:
    return f"{found.path} is {_text(found.version) if found.version else 'of unknown version'}, {wanted} is needed"


def _parse(text: str) -> Version | None:
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _text(version: Version) -> str:
    return ".".join(map(str, version))

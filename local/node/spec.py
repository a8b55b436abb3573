"""What a supervisor is told to run: namespaces, mounts and daemons, written to a file by `Node` and read in a fresh process."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Probe:
    """How to see that a daemon is ready. Exactly one of the two is set."""

    url: str = ""
    """`http` or `https` address that answers 200; certificates are not checked, for it is on the node's own addresses."""
    unix: str = ""
    """Path of a unix socket that accepts connections."""

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.unix):
            raise ValueError(f"probe: give either url or unix, not url={self.url!r} and unix={self.unix!r}")


@dataclass(frozen=True, kw_only=True)
class DaemonSpec:
    """One process that the supervisor keeps running."""

    name: str
    argv: tuple[str, ...]
    probe: Probe
    after: tuple[str, ...] = ()
    """Names of daemons that must be ready before this one is started for the first time."""
    env: Mapping[str, str] = field(default_factory=dict)
    stop_seconds: float = 3.0
    """Patience between SIGTERM and SIGKILL."""


@dataclass(frozen=True, kw_only=True)
class SupervisorSpec:
    """Everything a supervisor needs. All paths are the host's, except in the daemons' words, which hold inside."""

    state: str
    copy_id: str
    node_name: str
    host_ip: str
    node_ip: str
    interface: str
    """Name of the host's end of the veth pair."""
    binaries: Mapping[str, str]
    trainer_env: str | None
    daemons: tuple[DaemonSpec, ...]
    inputs: str = ""
    """Digest of the configuration files the daemons read; a difference means they must be started anew."""

    def digest(self) -> str:
        """Equal for two specs that run the same things."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> "SupervisorSpec":
        """Raises OSError or ValueError where `path` holds no spec."""
        data: dict[str, Any] = json.loads(path.read_text())
        try:
            data["daemons"] = tuple(map(_read_daemon, data["daemons"]))
            return cls(**data)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} holds no supervisor spec: {error}") from error


def _read_daemon(data: dict[str, Any]) -> DaemonSpec:
    fields: dict[str, Any] = {**data, "argv": tuple(data["argv"]), "after": tuple(data["after"]), "probe": Probe(**data["probe"])}
    return DaemonSpec(**fields)

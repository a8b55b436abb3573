"""Where the local stack keeps what it builds (shared by all copies of the repository) and what it runs (one folder a copy)."""

import hashlib
import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def cache_dir() -> Path:
    """Build outputs, keyed by version. `TRAINYARD_CACHE` overrides the default `~/.cache/trainyard`."""
    return Path(os.environ.get("TRAINYARD_CACHE") or Path.home() / ".cache" / "trainyard")


def state_dir() -> Path:
    """Running state of this copy of the repository. `TRAINYARD_STATE` overrides the default.

    The path stays short because unix socket paths are limited to 107 bytes.
    """
    override = os.environ.get("TRAINYARD_STATE")
    if override:
        return Path(override).resolve()
    return Path.home() / ".local" / "state" / "trainyard" / copy_id(REPOSITORY)


def copy_id(path: Path) -> str:
    """Eight hex digits that tell two copies of the repository (or two state folders) apart."""
    return hashlib.sha256(str(path).encode()).hexdigest()[:8]

"""The two Pulumi projects, and the configuration a stack of them runs with."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from local.errors import LocalStackError
from local.paths import REPOSITORY, state_dir

LOCAL_STACK = "local"
POLICY_PACK = REPOSITORY / "policy"


@dataclass(frozen=True, kw_only=True)
class Project:
    """One Pulumi program. `title` is how messages call it."""

    name: str
    title: str
    folder: Path

    def config_file(self, stack: str) -> Path:
        """The committed configuration of a stack."""
        return self.folder / f"Pulumi.{stack}.yaml"

    @property
    def policy_config(self) -> Path:
        """Levels of rules and exemptions, for all stacks of the project; there need be none."""
        return self.folder / "policy-config.json"

    def effective_folder(self) -> Path:
        """Where the local stack's configuration stands once what was discovered at start has been added."""
        return state_dir() / "projects" / self.name


PLATFORM = Project(name="trainyard", title="platform", folder=REPOSITORY)
WORKLOADS = Project(name="trainyard-workloads", title="workloads", folder=REPOSITORY / "workloads")


def write_effective_config(project: Project, discovered: Mapping[str, Any]) -> Path:
    """The committed configuration of the local stack with `discovered` merged into it; returns the file.

    What Pulumi itself keeps in the file (the salt of its encryption) survives.
    """
    folder = project.effective_folder()
    folder.mkdir(parents=True, exist_ok=True)
    # `pulumi stack init` writes the salt into the project it runs in: this one, never the committed file.
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": project.name, "runtime": "yaml"}))
    target = folder / f"Pulumi.{LOCAL_STACK}.yaml"
    kept = _load(target) if target.exists() else {}
    committed = _load(project.config_file(LOCAL_STACK))
    settings = merge(committed.get("config") or {}, discovered)
    salt = {key: value for key, value in kept.items() if key != "config"}
    target.write_text(yaml.safe_dump({**salt, "config": settings}, sort_keys=False))
    return target


def read_config(path: Path) -> Mapping[str, Any]:
    """The settings in a stack file. Raises LocalStackError where it is missing or no such file."""
    return _load(path).get("config") or {}


def merge(base: Any, extra: Any) -> Any:
    """`extra` over `base`, mappings key by key; anything else is replaced."""
    if not (isinstance(base, Mapping) and isinstance(extra, Mapping)):
        return extra
    merged = dict(base)
    for key, value in extra.items():
        merged[key] = merge(merged.get(key), value)
    return merged


def _load(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise LocalStackError(f"{path.name} is missing from {path.parent}") from None
    except yaml.YAMLError as error:
        raise LocalStackError(f"{path} is no valid YAML: {error}") from None
    if not isinstance(document, dict):
        raise LocalStackError(f"{path} must hold a mapping with the key `config`")
    return document

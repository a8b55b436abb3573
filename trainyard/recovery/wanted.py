"""A resource that the state lacks, and what AWS or the cluster holds that may be it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The engine writes this in place of a value that only the update will know.
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# Hidden input that lists what the plug-in filled in, such as a name made up by it.
_DEFAULTS = "__defaults"
_MADE_UP_ENDING = re.compile(r"[0-9a-f]{7,26}$")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A resource that a run began to create, or may have."""

    resource: Mapping[str, Any]
    """As the engine writes it: urn, type, inputs, parent, provider, dependencies."""
    pending: bool
    """Whether the state itself says that its creation had begun; otherwise a preview says that it is missing."""

    @property
    def urn(self) -> str:
        """Its URN."""
        return self.resource["urn"]

    @property
    def kind(self) -> str:
        """Its type token."""
        return self.resource["type"]

    @property
    def name(self) -> str:
        """Its logical name."""
        return self.urn.rpartition("::")[2]

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Its checked inputs."""
        return self.resource.get("inputs") or {}

    def known(self, prop: str) -> str | None:
        """An input as text, or None where it is not set, not known yet, or a secret."""
        value = self.inputs.get(prop)
        return None if value is None or value == UNKNOWN or isinstance(value, Mapping | list) else str(value)

    def is_named(self, prop: str, value: str) -> bool:
        """Whether `value` may be its name. A made-up one differs from run to run in its ending, unless the state still holds it."""
        name = self.known(prop)
        if name is None:
            return False
        if self.pending or not self.has_made_up(prop):
            return name == value
        return _without_ending(name) == _without_ending(value) != value

    def has_made_up(self, prop: str) -> bool:
        """Whether the plug-in chose this input."""
        return prop in (self.inputs.get(_DEFAULTS) or ())


@dataclass(frozen=True, kw_only=True)
class Found:
    """A resource that exists. Its id is the one which the state of such a resource holds."""

    id: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """The inputs that tell it from its like, as they really are; a made-up name among them."""
    tags: Mapping[str, str] | None = None
    """None for a kind without tags: it belongs to a resource of ours, which its inputs name."""
    condition: str = ""
    """AWS's word for its condition, where it takes a while to become usable."""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """What the plug-in keeps about it beside what reading it tells."""

    @property
    def settling(self) -> bool:
        """Whether it is still being made."""
        return self.condition.lower() in ("creating", "pending", "updating", "pendingacceptance")

    @property
    def failed(self) -> bool:
        """Whether it will never become usable."""
        return self.condition.lower() in ("failed", "create_failed", "error", "misconfigured", "misconfigured_unavailable")


def is_meant(found: Found, wanted: Wanted, tags: Mapping[str, str]) -> bool:
    """Whether `found` is what `wanted` describes: its distinguishing inputs, and tags that hold at least `tags`."""
    if found.tags is not None:
        expected = {**_texts(wanted.inputs.get("tags")), **_texts(wanted.inputs.get("tagsAll")), **tags}
        if any(found.tags.get(key) != value for key, value in expected.items()):
            return False
    return all(_agrees(wanted, prop, value) for prop, value in found.inputs.items())


def _agrees(wanted: Wanted, prop: str, value: Any) -> bool:
    declared = wanted.inputs.get(prop)
    if declared is None or value is None:
        # Not declared: AWS chose it, so it tells nothing.
        return True
    if isinstance(declared, str) and wanted.has_made_up(prop):
        return wanted.is_named(prop, str(value))
    if isinstance(declared, list) and isinstance(value, list):
        return sorted(map(str, declared)) == sorted(map(str, value))
    return str(declared) == str(value)


def _texts(tags: Any) -> dict[str, str]:
    if not isinstance(tags, Mapping):
        return {}
    return {key: value for key, value in tags.items() if isinstance(value, str) and value != UNKNOWN}


def _without_ending(name: str) -> str:
    return _MADE_UP_ENDING.sub("", name)

"""A stack's state as `pulumi stack export` gives it, and the few changes that a recovery makes to it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from trainyard.recovery.wanted import Found, Wanted

# How the engine writes a value that is not plain, and which kind of it a secret is.
_SIGNATURE, _SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
_PROVIDERS = "pulumi:providers:"
_RELEASE = "kubernetes:helm.sh/v3:Release"


class Deployment:
    """One export. Changes are made in memory; `text` is what `pulumi stack import` takes."""

    def __init__(self, text: str) -> None:
        self.document: dict[str, Any] = json.loads(text)
        self._deployment: dict[str, Any] = self.document.get("deployment") or {}

    @property
    def text(self) -> str:
        """The document as JSON."""
        return json.dumps(self.document)

    @property
    def resources(self) -> list[dict[str, Any]]:
        """Resources, each after those it depends on."""
        return self._deployment.get("resources") or []

    def urns(self) -> set[str]:
        """URNs of what is not on its way out."""
        return {each["urn"] for each in self.resources if not each.get("delete")}

    def ids(self, kind: str) -> set[str]:
        """Ids of one type's resources, those on their way out included."""
        return {each["id"] for each in self.resources if each["type"] == kind and "id" in each}

    def begun(self) -> list[Wanted]:
        """Resources whose creation had begun. Components and providers are not among them: nothing outside the state is made for them."""
        return [Wanted(resource=each, pending=True) for each in self._pending("creating") if _is_real(each)]

    def touched(self) -> set[str]:
        """URNs of resources that were being changed, deleted or read, and are still in the state."""
        return {each["urn"] for kind in ("updating", "deleting", "reading", "importing") for each in self._pending(kind)} & self.urns()

    def has_pending(self) -> bool:
        """Whether any operation was cut short."""
        return bool(self._deployment.get("pending_operations"))

    def adopt(self, wanted: Wanted, found: Found) -> None:
        """Enter an existing resource. Where it was to replace another one, that one is left to be deleted by the next update."""
        inputs = {**wanted.inputs, **{prop: value for prop, value in found.inputs.items() if wanted.has_made_up(prop)}}
        outputs = {name: value for name, value in inputs.items() if not name.startswith("__")} | dict(found.outputs)
        if wanted.kind == _RELEASE:
            # Its provider keeps them there, and takes nothing but a secret.
            outputs["__inputs"] = {_SIGNATURE: _SECRET, "plaintext": json.dumps(inputs)}
        kept = [each for each in self.resources if not (each["urn"] == wanted.urn and each.get("pendingReplacement"))]
        for each in kept:
            if each["urn"] == wanted.urn:
                each["delete"] = True
        made = {key: value for key, value in wanted.resource.items() if key not in ("delete", "pendingReplacement")}
        kept.append({**made, "custom": True, "id": found.id, "inputs": inputs, "outputs": outputs})
        self._deployment["resources"] = kept

    def settle(self) -> None:
        """Forget the operations that were cut short; every one of them has been looked into."""
        self._deployment.pop("pending_operations", None)

    def setting(self, reference: str, prop: str) -> str | None:
        """An input of the provider that a resource refers to (`URN::ID`), from an export that shows secrets."""
        urn, _, identifier = reference.rpartition("::")
        for each in self.resources:
            if each["urn"] == urn and each.get("id") == identifier:
                return _plain((each.get("inputs") or {}).get(prop))
        return None

    def _pending(self, kind: str) -> Iterator[dict[str, Any]]:
        for operation in self._deployment.get("pending_operations") or ():
            if operation["type"] == kind:
                yield operation["resource"]


def planned(preview: Mapping[str, Any]) -> list[Wanted]:
    """What a preview (`--json`) says is missing: in the end nothing but what no run has made yet."""
    steps = [step for step in preview.get("steps") or () if step["op"] in ("create", "create-replacement") and "newState" in step]
    return [Wanted(resource=step["newState"], pending=False) for step in steps if _is_real(step["newState"])]


def _is_real(resource: Mapping[str, Any]) -> bool:
    return bool(resource.get("custom")) and not resource["type"].startswith(_PROVIDERS)


def _plain(value: Any) -> str | None:
    if isinstance(value, Mapping) and _SIGNATURE in value:
        return json.loads(value["plaintext"]) if "plaintext" in value else None
    return value if isinstance(value, str) else None

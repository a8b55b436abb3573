"""Objects of a manifest file, registered one by one, so that a first preview shows them all without a cluster."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import yaml

Object = dict[str, Any]

# What has to exist before the rest: kinds that others are named in, live in or are bound to.
_ORDER = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")


def read_manifest(path: str, change: Callable[[Object], Object]) -> list[Object]:
    """Return the objects of the manifest at `path` in the order they can be made in, each as `change` returns it.

    Raises ValueError where the file holds something that is no Kubernetes object.
    """
    text = Path(path).expanduser().read_text(encoding="utf-8")
    objects = [change(document) for document in yaml.safe_load_all(text) if document]
    for found in objects:
        if not {"apiVersion", "kind"} <= found.keys() or "name" not in found.get("metadata", {}):
            raise ValueError(f"{path} holds a document without apiVersion, kind or metadata.name; it is no Kubernetes manifest")
    return sorted(objects, key=_rank)


def _rank(found: Object) -> int:
    return _ORDER.index(found["kind"]) if found["kind"] in _ORDER else len(_ORDER)


def containers(found: Object) -> Iterator[dict[str, Any]]:
    """Yield the containers of an object with a pod template; nothing for other objects."""
    template = found.get("spec", {}).get("template", {})
    yield from template.get("spec", {}).get("containers", [])


class ManifestObject(pulumi.CustomResource):
    """One object of a manifest, of whatever kind: the SDK has classes for built-in kinds, which take only fields they know."""

    def __init__(self, name: str, found: Object, opts: pulumi.ResourceOptions) -> None:
        super().__init__(type_token(found), name, dict(found), opts)


def type_token(found: Object) -> str:
    """Return the Pulumi type of an object, the same as that of the SDK's class for its kind."""
    api_version = found["apiVersion"]
    group = api_version if "/" in api_version else f"core/{api_version}"
    return f"kubernetes:{group}:{found['kind']}"

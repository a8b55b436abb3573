"""The Kubernetes objects that a resource carries: the same object is judged alike, whichever way it reaches the cluster.

An object arrives typed, as a CustomResource, as a child of a YAML group or of a rendered chart (all of these are resources of
their own), inside a List, in the values of a Helm release, or as text in one of those.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from guardrails.document import DocumentError, read_json, read_yaml
from guardrails.node import Node, Unknown
from guardrails.rule import Resource
from guardrails.secret import is_secret, members
from guardrails.tokens import APPLICATION, CONFIG_MAP, DEEPSPEED, RELEASE

_KUBERNETES = "kubernetes:"
_CARRIERS = frozenset({RELEASE, APPLICATION})
_CARRIED_UNDER = {RELEASE: (("values",),), APPLICATION: (("spec", "source", "helm"), ("spec", "sources"))}
_DEEPSPEED_KEYS = frozenset({"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "zero_optimization"})
_DEEPSPEED_FILE = re.compile(r"(^|[-_.])(ds|deepspeed|zero)([-_.0-9]|$)", re.IGNORECASE)
_OLDER_BUCKET = re.compile(r"(aws:s3/bucket[A-Za-z]*)V2:(Bucket[A-Za-z]*)V2")
# A chart's values are no deeper than this; what is deeper is an attempt to exhaust the stack.
_DEEPEST = 40


def views(resource: Resource) -> list[Resource]:
    """The resource under its canonical type, and every object that it carries."""
    resource = _canonical(resource)
    if not resource.type.startswith(_KUBERNETES):
        return [resource]
    return [resource, *_carried(resource)]


def token(api_version: str, kind: str) -> str:
    """The type token of a Kubernetes object, as the engine would send it."""
    return f"{_KUBERNETES}{'core/v1' if api_version == 'v1' else api_version}:{kind}"


def manifest(value: Any) -> str | None:
    """The type token of a value that is a Kubernetes object, else None."""
    if not isinstance(value, Mapping):
        return None
    version, kind = value.get("apiVersion"), value.get("kind")
    return token(version, kind) if isinstance(version, str) and isinstance(kind, str) and version and kind else None


def deepspeed(value: Any) -> bool:
    """Whether a value is a DeepSpeed configuration."""
    return isinstance(value, Mapping) and not _DEEPSPEED_KEYS.isdisjoint(value)


def objects(node: Node, owner: Resource, *, depth: int = 0) -> Iterator[Resource]:
    """Every Kubernetes object and DeepSpeed configuration in `node`, at any depth, also inside text."""
    if depth > _DEEPEST or isinstance(node.raw, Unknown):
        return
    kind = manifest(node.raw)
    if kind:
        yield from views(_part(owner, kind, node))
    elif isinstance(node.raw, Mapping):
        for _, member in node.entries():
            yield from objects(member, owner, depth=depth + 1)
    elif isinstance(node.raw, list):
        for member in node.elements():
            yield from objects(member, owner, depth=depth + 1)
    elif isinstance(node.raw, str) and "apiVersion" in node.raw and "kind" in node.raw:
        for document in documents(node):
            yield from objects(document, _concealing(owner, node, document.raw), depth=depth + 1)


def documents(node: Node) -> Iterator[Node]:
    """The YAML documents of a text; nothing where it can't be read (a template, say)."""
    try:
        parsed = read_yaml(node.raw)
    except DocumentError:
        return
    for index, document in enumerate(parsed):
        if isinstance(document, Mapping | list):
            yield Node(document, node.path if len(parsed) == 1 else f"{node.path}#{index + 1}", node.owner)


def canonical(kind: str) -> str:
    """The token that rules know, of `kubernetes:v1:Pod`, as a custom resource sends it, or of pulumi-aws's second types of buckets."""
    prefix = f"{_KUBERNETES}v1:"
    if kind.startswith(prefix):
        return f"{_KUBERNETES}core/v1:{kind.removeprefix(prefix)}"
    older = _OLDER_BUCKET.fullmatch(kind)
    return f"{older[1]}:{older[2]}" if older else kind


def _canonical(resource: Resource) -> Resource:
    kind = canonical(resource.type)
    return resource if kind == resource.type else _part(resource, kind, resource.properties)


def _carried(resource: Resource) -> Iterator[Resource]:
    if resource.type in _CARRIERS:
        for keys in _CARRIED_UNDER[resource.type]:
            node = _reach(resource.properties, keys)
            if node is not None:
                yield from objects(node, resource)
    elif resource.type == CONFIG_MAP:
        yield from _configurations(resource)
    elif resource.type.endswith("List"):
        yield from _items(resource)


def _reach(node: Node, keys: tuple[str, ...]) -> Node | None:
    for key in keys:
        if not isinstance(node.raw, Mapping):
            return None
        node = node.at(key)
    return None if isinstance(node.raw, Unknown) else node


def _items(resource: Resource) -> Iterator[Resource]:
    """The items of a List; one that does not say its kind has that of the list."""
    items = _reach(resource.properties, ("items",))
    for item in items.elements() if items else ():
        if isinstance(item.raw, Mapping):
            kind = manifest(item.raw) or resource.type.removesuffix("List")
            yield from views(_part(resource, kind, item))


def _configurations(resource: Resource) -> Iterator[Resource]:
    """DeepSpeed configurations among the files of a ConfigMap; one that can't be known yet by its file's name."""
    data = resource.at("data")
    if not data.known:
        yield _part(resource, DEEPSPEED, data)
        return
    for name, file in data.entries():
        if isinstance(file.raw, Unknown) and _DEEPSPEED_FILE.search(name):
            yield _part(resource, DEEPSPEED, file)
        elif name.endswith((".json", ".yaml", ".yml")) and isinstance(file.raw, str):
            parsed = _parsed(file)
            if deepspeed(parsed):
                yield _part(_concealing(resource, file, parsed), DEEPSPEED, Node(parsed, file.path, file.owner))


def _parsed(file: Node) -> Any:
    try:
        return read_json(file.raw)
    except DocumentError:
        return next((document.raw for document in documents(file)), None)


def _part(owner: Resource, kind: str, node: Node) -> Resource:
    return replace(owner, type=kind, name=_name(owner, node), properties=node)


def _concealing(owner: Resource, text: Node, parsed: Any) -> Resource:
    """The owner of what was read from a text: where the text is a secret, every value and key in it is one."""
    if not owner.secrets or not is_secret(text.raw, owner.secrets):
        return owner
    return replace(owner, secrets=owner.secrets.union(members(parsed, keys=True)), concealed=owner.concealed or text.path)


def _name(owner: Resource, node: Node) -> str:
    """`release/pool` for an object that has a name of its own, which is no secret."""
    metadata = node.raw.get("metadata") if isinstance(node.raw, Mapping) else None
    own = metadata.get("name") if isinstance(metadata, Mapping) else None
    if owner.secrets and is_secret(own, owner.secrets):
        return owner.name
    return f"{owner.name}/{own}" if isinstance(own, str) and own and node is not owner.properties else owner.name

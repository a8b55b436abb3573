"""The Kubernetes objects that a resource carries: the same object is judged alike, whichever way it reaches the cluster.

An object arrives typed, as a CustomResource, as a child of a YAML group or of a rendered chart (all of these are resources of
their own), inside a List, in the values of a Helm release, or as text in one of those.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from guardrails.document import DocumentError, DuplicateError, read_hjson, read_json, read_yaml
from guardrails.facts import load
from guardrails.node import Moved, Node, Unknown
from guardrails.rule import Resource
from guardrails.secret import is_secret, members
from guardrails.template import DEVICES, EFA, POD_TYPES
from guardrails.tokens import (
    APPLICATION,
    APPLICATION_SET,
    CONFIG_MAP,
    DEEPSPEED,
    LIST,
    RAY_CRON_JOB,
    RAY_JOB,
    RELEASE,
    SERVED_BESIDE,
    UNJUDGED,
    UNSEEN,
    UNSERVED,
    VOLCANO_CRON_JOB,
    VOLCANO_JOB,
)

_KUBERNETES = "kubernetes:"
_DEVICES = frozenset({*DEVICES, EFA})
_ASKING = frozenset({"limits", "requests"})
# Keys under which operators have pods, or what these ask for.
_HOLDER = re.compile(r"spec|template|resource|limits|requests|container|replica|pod|worker|job|trainer", re.IGNORECASE)
_REPEATING = frozenset({"NodeClaim", "Workload"})
_NO_KIND = LIST.removesuffix("List")
_CARRIERS = frozenset({RELEASE, APPLICATION})
_CARRIED_UNDER = {RELEASE: (("values",),), APPLICATION: (("spec", "source", "helm"), ("spec", "sources"))}
_SLURM, _SLURM_GROUP = load("slurm"), "slinky.slurm.net"
_ONLY_VERSIONS = {
    ("kubeflow.org", "MPIJob"): "v2beta1",
    **{("batch.volcano.sh", kind): "v1alpha1" for kind in ("Job", "CronJob")},
}
"""Group and kind -> the one version that is served."""
# The first two are DeepSpeed's alone, the others are names of other trainers too.
_OWN_KEYS = frozenset({"zero_optimization", "train_micro_batch_size_per_gpu"})
_DEEPSPEED_KEYS = _OWN_KEYS | {"train_batch_size", "gradient_accumulation_steps"}
_ANY_KEYS = frozenset(load("deepspeed")["topLevel"])
_DEEPSPEED_FILE = re.compile(r"(^|[-_.])(ds|deepspeed|zero)([-_.0-9]|$)", re.IGNORECASE)
_OLDER_BUCKET = re.compile(r"(aws:s3/bucket[A-Za-z]*)V2:(Bucket[A-Za-z]*)V2")
_YAML, _JSON = (".yaml", ".yml"), (".json", ".hjson")
# What is filled in before DeepSpeed reads it may be no JSON yet.
_TEMPLATE = re.compile(r"\$[({A-Za-z_]|\{\{|\{%|<%|@@")
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


def deepspeed(value: Any, name: str = "") -> bool:
    """Whether the content of a file is a DeepSpeed configuration: by a key of its own, or by its name or a key that others have too."""
    return isinstance(value, Mapping) and (not _OWN_KEYS.isdisjoint(value) or _is_mostly_deepspeed(value, name))


def _is_mostly_deepspeed(value: Mapping[str, Any], name: str) -> bool:
    if _DEEPSPEED_KEYS.isdisjoint(value) and not _DEEPSPEED_FILE.search(name):
        return False
    known = len(_ANY_KEYS.intersection(value))
    return known > 0 and 2 * known >= len(value)


def objects(node: Node, owner: Resource, *, depth: int = 0) -> Iterator[Resource]:
    """Every Kubernetes object and DeepSpeed configuration in `node`, at any depth, also inside text."""
    if depth > _DEEPEST or isinstance(node.raw, Unknown):
        return
    kind = manifest(node.raw)
    if kind:
        yield from views(_part(owner, kind, node))
    elif isinstance(node.raw, Mapping):
        for name, member in node.entries():
            found = _configuration(owner, name, member, within_values=True)
            if found is not None:
                yield found
            else:
                yield from objects(member, owner, depth=depth + 1)
    elif isinstance(node.raw, list):
        for member in node.elements():
            yield from objects(member, owner, depth=depth + 1)
    elif isinstance(node.raw, str) and (("apiVersion" in node.raw and "kind" in node.raw) or _mentions(node.raw)):
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
    """The token that rules know, of a core kind as a custom resource sends it, an older version, or pulumi-aws's second bucket."""
    if kind in SERVED_BESIDE:
        return SERVED_BESIDE[kind]
    prefix = f"{_KUBERNETES}v1:"
    if kind.startswith(prefix):
        return f"{_KUBERNETES}core/v1:{kind.removeprefix(prefix)}"
    older = _OLDER_BUCKET.fullmatch(kind)
    return f"{older[1]}:{older[2]}" if older else kind


def is_served(kind: str) -> bool:
    """Whether the operator of a kind's group knows it; true where the group's kinds are not known."""
    group, _, rest = kind.removeprefix(_KUBERNETES).partition("/")
    version, _, name = rest.partition(":")
    # pulumi-kubernetes calls a patch of an object so.
    name = name.removesuffix("Patch")
    if group == _SLURM_GROUP:
        return name in _SLURM["kinds"] and version not in _SLURM["oldVersions"]
    served = _ONLY_VERSIONS.get((group, name), version)
    return version == served


def _canonical(resource: Resource) -> Resource:
    kind = canonical(resource.type)
    if kind == resource.type:
        return resource
    return replace(_part(resource, kind, resource.properties), written=resource.type if resource.type in SERVED_BESIDE else "")


def _carried(resource: Resource) -> Iterator[Resource]:
    if resource.type in _CARRIERS:
        for keys in _CARRIED_UNDER[resource.type]:
            node = _reach(resource.properties, keys)
            if node is not None:
                yield from objects(node, resource)
    elif resource.type == CONFIG_MAP:
        yield from _configurations(resource)
    elif resource.type == VOLCANO_CRON_JOB:
        yield from _cron_job(resource)
    elif resource.type == RAY_CRON_JOB:
        yield _ray_job(resource)
    elif resource.type == APPLICATION_SET:
        yield from _application_set(resource)
    elif resource.type.endswith("List"):
        yield from _items(resource)
    elif not is_served(resource.type):
        # What no controller reads has no pods, whatever it asks for.
        yield replace(_part(resource, UNSERVED, resource.properties), written=resource.type)
    elif _is_custom(resource.type) and resource.type not in POD_TYPES:
        place = _asking(resource.properties)
        if place is not None:
            yield _part(resource, UNJUDGED, place)


def _cron_job(cron: Resource) -> Iterator[Resource]:
    """The job that a Volcano CronJob makes at each of its times."""
    place = _as_far(cron.properties, "spec", "jobTemplate")
    if isinstance(place.raw, Unknown):
        yield _part(cron, VOLCANO_JOB, place)
    elif isinstance(place.raw, Mapping):
        yield _part(cron, VOLCANO_JOB, Node({**place.raw, "metadata": _in_namespace(place, cron)}, place.path, place.owner))


def _ray_job(cron: Resource) -> Resource:
    """The RayJob that a RayCronJob makes at each of its times: it has nothing of its owner's but the namespace."""
    place = _as_far(cron.properties, "spec", "jobTemplate")
    if isinstance(place.raw, Unknown):
        return _part(cron, RAY_JOB, place)
    made = {"metadata": {"namespace": _as_far(cron.properties, "metadata", "namespace").raw}, "spec": place.raw}
    job = _part(cron, RAY_JOB, Moved(made, cron.properties.path, cron.properties.owner, steps=("spec", "jobTemplate")))
    return replace(job, written=cron.type)


def _application_set(owner: Resource) -> Iterator[Resource]:
    """The Application that a set makes for each of its parameters, which stand in it as placeholders."""
    place = _as_far(owner.properties, "spec", "template")
    if isinstance(place.raw, Unknown):
        yield _part(owner, APPLICATION, place)
    elif isinstance(place.raw, Mapping):
        yield from views(_part(owner, APPLICATION, Node({"spec": place.raw.get("spec")}, place.path, place.owner)))


def _in_namespace(template: Node, owner: Resource) -> Any:
    """The metadata of a template's object, which is made in its owner's namespace."""
    own, given = template.raw.get("metadata"), _as_far(owner.properties, "metadata", "namespace")
    return {**own, "namespace": given.raw} if isinstance(own, Mapping) else {"namespace": given.raw} if own is None else own


def _as_far(node: Node, *keys: str) -> Node:
    """The value under `keys`, or the unknown one on the way there."""
    for key in keys:
        if isinstance(node.raw, Unknown):
            break
        node = node.at(key)
    return node


def _is_custom(kind: str) -> bool:
    """Whether the kind is one of an operator's; of those that ask for what others have asked for, and of charts, nothing is made."""
    group, _, rest = kind.removeprefix(_KUBERNETES).partition("/")
    return "." in group and group != "helm.sh" and rest.partition(":")[2] not in _REPEATING


def _asking(node: Node, *, within: str = "", depth: int = 0) -> Node | None:
    """The first place that asks for devices, or that is unknown and may: `limits` or `requests` of a container's or node's resources."""
    if isinstance(node.raw, Unknown):
        return node if _HOLDER.search(within) else None
    if depth > _DEEPEST:
        return None
    hidden: Node | None = None
    for name, member in _members(node):
        if name in _ASKING and within.startswith("resources") and isinstance(member.raw, Mapping) and not _DEVICES.isdisjoint(member.raw):
            return member
        found = _asking(member, within=name or within, depth=depth + 1)
        if found is not None and not isinstance(found.raw, Unknown):
            return found
        hidden = hidden or found
    return hidden


def _members(node: Node) -> list[tuple[str, Node]]:
    """The members of a mapping by name, those of a list without one."""
    if isinstance(node.raw, list):
        return [("", member) for member in node.elements()]
    return [(name, member) for name, member in node.entries() if isinstance(name, str)] if isinstance(node.raw, Mapping) else []


def _reach(node: Node, keys: tuple[str, ...]) -> Node | None:
    for key in keys:
        if not isinstance(node.raw, Mapping):
            return None
        node = node.at(key)
    return None if isinstance(node.raw, Unknown) else node


def _items(resource: Resource) -> Iterator[Resource]:
    """The items of a List; one that does not say its kind has that of the list."""
    items = resource.properties.at("items") if isinstance(resource.properties.raw, Mapping) else resource.properties
    if isinstance(items.raw, Unknown):
        yield _part(resource, UNSEEN, items)
        return
    for item in items.elements():
        kind = manifest(item.raw) or resource.type.removesuffix("List")
        if isinstance(item.raw, Unknown) or (isinstance(item.raw, Mapping) and kind == _NO_KIND):
            yield _part(resource, UNSEEN, item)
        elif isinstance(item.raw, Mapping):
            yield from views(_part(resource, kind, item))


def _configurations(resource: Resource) -> Iterator[Resource]:
    """DeepSpeed configurations among the files of a ConfigMap; one that can't be known yet by its file's name."""
    data = resource.at("data")
    if not data.known:
        yield _part(resource, DEEPSPEED, data)
        return
    for name, file in data.entries():
        found = _configuration(resource, name, file)
        if found is not None:
            yield found


def _configuration(owner: Resource, name: str, node: Node, *, within_values: bool = False) -> Resource | None:
    """The DeepSpeed configuration that a value is; one that can't be known yet by its name, one that can't be read as the text it is.

    `within_values`: a chart may have some of the keys among its own, so only what consists of them for the most part is one.
    """
    raw = node.raw
    if isinstance(raw, Unknown):
        return _part(owner, DEEPSPEED, node) if _DEEPSPEED_FILE.search(name) else None
    if isinstance(raw, str):
        return _text_configuration(owner, name, node)
    is_one = within_values and isinstance(raw, Mapping) and _is_mostly_deepspeed(raw, name)
    return _part(owner, DEEPSPEED, node) if is_one else None


def _text_configuration(owner: Resource, name: str, node: Node) -> Resource | None:
    named = _DEEPSPEED_FILE.search(name) is not None
    if not named and not _mentions(node.raw):
        return None
    try:
        parsed = _parsed(name, node, named=named)
    except DocumentError:
        broken = named and not _TEMPLATE.search(node.raw) and any(key in node.raw for key in _ANY_KEYS)
        return _part(owner, DEEPSPEED, node) if broken else None
    return _part(_concealing(owner, node, parsed), DEEPSPEED, Node(parsed, node.path, node.owner)) if deepspeed(parsed, name) else None


def _parsed(name: str, node: Node, *, named: bool) -> Any:
    """What a file holds; raises DocumentError where it should be JSON and is none."""
    text, suffix = node.raw, name.lower()
    if suffix.endswith(_JSON) or text.lstrip("\ufeff \t\r\n").startswith("{"):
        try:
            return read_json(text, once=True)
        except DuplicateError:
            raise
        except DocumentError:
            if not suffix.endswith(_YAML):
                return read_hjson(text)
    if suffix.endswith(_YAML) or (named and "." not in name):
        return next((document.raw for document in documents(node)), None)
    return None


def _mentions(text: str) -> bool:
    return any(key in text for key in _DEEPSPEED_KEYS)


def _part(owner: Resource, kind: str, node: Node) -> Resource:
    return replace(owner, type=kind, written="", name=_name(owner, node), properties=node)


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

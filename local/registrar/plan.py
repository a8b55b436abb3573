"""What has to change among the Nodes: pure functions of NodeClaims, Nodes and instances."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.node.fake_nodes import FAKE_ANNOTATION
from local.registrar.instance import Instance

Json = dict[str, Any]

INSTANCE_ANNOTATION = "trainyard.local/instance"
"""Id of the instance that a Node was registered for. Nodes without it are none of the registrar's business."""
UNREGISTERED_TAINT = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
"""Every Karpenter node starts with it; Karpenter takes it off when it has written its own labels and taints."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Nodes to create, names of Nodes to delete, and new taint lists by name of Node."""

    create: Sequence[Json]
    delete: Sequence[str]
    taints: Mapping[str, Sequence[Json]]

    @property
    def empty(self) -> bool:
        return not (self.create or self.delete or self.taints)


def plan(claims: Iterable[Json], nodes: Iterable[Json], instances: Iterable[Instance]) -> Plan:
    """Bring Nodes in line with instances.

    A live instance of a launched NodeClaim gets a Node; a Node whose instance has ended goes, as the cloud's node controller does it;
    startup taints of a ready Node go, which on a real one its agents (CSI drivers, device plug-ins) would see to.
    """
    by_id = {instance.id: instance for instance in instances}
    ours = [node for node in nodes if INSTANCE_ANNOTATION in node["metadata"].get("annotations", {})]
    registered = {node["metadata"]["annotations"][INSTANCE_ANNOTATION] for node in ours}
    launched = {instance_id(claim): claim for claim in claims if claim.get("status", {}).get("providerID")}
    return Plan(
        create=[
            node_for(claim, by_id[name])
            for name, claim in launched.items()
            if name in by_id and by_id[name].alive and name not in registered and "deletionTimestamp" not in claim["metadata"]
        ],
        delete=[node["metadata"]["name"] for node in ours if _ended(node, by_id) and "deletionTimestamp" not in node["metadata"]],
        taints=_settled_taints(ours, launched),
    )


def node_for(claim: Json, instance: Instance) -> Json:
    """The Node that a kubelet on `instance` would register, with the resources that Karpenter expects of it."""
    status, spec = claim["status"], claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": instance.node_name,
            "annotations": {FAKE_ANNOTATION: "fake", INSTANCE_ANNOTATION: instance.id},
            "labels": {
                **claim["metadata"].get("labels", {}),
                "kubernetes.io/hostname": instance.node_name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": instance.zone,
                "topology.kubernetes.io/region": instance.region,
            },
        },
        "spec": {
            "providerID": status["providerID"],
            "taints": [UNREGISTERED_TAINT, *spec.get("taints", []), *spec.get("startupTaints", [])],
        },
        "status": {
            "capacity": status.get("capacity", {}),
            "allocatable": status.get("allocatable", {}),
            "addresses": [
                {"type": "InternalIP", "address": instance.private_ip},
                {"type": "InternalDNS", "address": instance.node_name},
                {"type": "Hostname", "address": instance.node_name},
            ],
        },
    }


def instance_id(claim: Json) -> str:
    """The last part of the claim's provider id, aws:///<zone>/<instance>."""
    return claim["status"]["providerID"].rpartition("/")[2]


def _ended(node: Json, by_id: Mapping[str, Instance]) -> bool:
    instance = by_id.get(node["metadata"]["annotations"][INSTANCE_ANNOTATION])
    return instance is None or not instance.alive


def _settled_taints(nodes: Iterable[Json], launched: Mapping[str, Json]) -> dict[str, list[Json]]:
    changed = {}
    for node in nodes:
        claim = launched.get(node["metadata"]["annotations"][INSTANCE_ANNOTATION])
        startup = claim["spec"].get("startupTaints", []) if claim else []
        taints = node["spec"].get("taints", [])
        # Not before Karpenter has seen them: it writes the claim's taints once more when it registers the node.
        if not startup or not _ready(node) or any(taint["key"] == UNREGISTERED_TAINT["key"] for taint in taints):
            continue
        kept = [taint for taint in taints if not any(_same(taint, other) for other in startup)]
        if kept != taints:
            changed[node["metadata"]["name"]] = kept
    return changed


def _ready(node: Json) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def _same(taint: Json, other: Json) -> bool:
    return (taint["key"], taint["effect"]) == (other["key"], other["effect"])

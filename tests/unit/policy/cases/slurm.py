"""Slurm on Kubernetes."""

from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

_KEYS = {"slurmKeyRef": {"name": "slurm-key", "key": "slurm.key"}, "jwtKeyRef": {"name": "jwt", "key": "jwt.key"}}
_CONTROLLER = {"clusterName": "training", "persistence": {"enabled": True}, **_KEYS}
_NODES = {"controllerRef": {"name": "slurm"}, "replicas": 4, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "25%"}}}
MOST = "updateStrategy/rollingUpdate/maxUnavailable"


def nodes(changes: dict[str, Any] | None = None) -> Thing:
    return Thing(type=tokens.NODE_SET, name="gpu", properties={"metadata": {"name": "gpu"}, "spec": b.changed(_NODES, changes or {})})


def controller(changes: dict[str, Any] | None = None, *, name: str = "slurm", namespace: str = "slurm") -> Thing:
    metadata = {"name": name, "namespace": namespace}
    return Thing(
        type=tokens.SLURM_CONTROLLER, name="slurm", properties={"metadata": metadata, "spec": b.changed(_CONTROLLER, changes or {})}
    )


def other(version: str, kind: str) -> Thing:
    return Thing(type=f"kubernetes:{version}:{kind}", name="gpu", properties={"metadata": {"name": "gpu"}, "spec": {"replicas": 4}})


CASES = (
    valid("SLK01", nodes()),
    valid("SLK01", controller()),
    valid("SLK01", other("slinky.slurm.net/v1beta1", "LoginSet")),
    valid("SLK01", other("apps/v1", "StatefulSet")),
    valid("SLK01", other("slinky.slurm.net/v1beta1", "NodeSet"), edge=True),
    invalid("SLK01", other("slinky.slurm.net/v1beta1", "SlurmNodeSet"), says="SlurmNodeSet of slinky.slurm.net/v1beta1", edge=True),
    invalid("SLK01", other("slinky.slurm.net/v1alpha1", "NodeSet"), says="slinky.slurm.net/v1alpha1; allowed: slinky.slurm.net/v1beta1"),
    invalid("SLK01", other("slinky.slurm.net/v1alpha1", "SlurmCluster"), says="SlurmCluster of"),
    invalid("SLK01", other("slurm.schedmd.com/v1", "SlurmCluster"), says="allowed: Controller, NodeSet"),
    invalid("SLK01", other("slinky.slurm.net/v1", "Controller"), says="slinky.slurm.net/v1; allowed"),
    valid("SLK01", other("slinky.slurm.net/v1beta1", "NodeSetPatch")),
    valid("SLK01", other("slinky.slurm.net/v1beta2", "NodeSet"), edge=True),
    valid("SLK01", other("slurm.example.com/v1", "SlurmWorker"), edge=True),
    valid("SLK01", Thing(type="kubernetes:slinky.slurm.net/v1beta1:NodeSetList", properties={"items": [nodes().properties]})),
    invalid("SLK01", other("slinky.slurm.net/v1beta1", "SlurmWorker"), says="kind is SlurmWorker of slinky.slurm.net/v1beta1"),
    invalid("SLK01", other("slinky.slurm.net/v1beta1", "SlurmDatabase"), says="allowed: Controller, NodeSet, Accounting, LoginSet"),
    invalid("SLK01", other("slinky.slurm.net/v1beta2", "GpuPool"), says="GpuPool of slinky.slurm.net/v1beta2"),
    invalid("SLK01", other("slinky.slurm.net/v1beta1", "SlurmNodeSetPatch"), says="SlurmNodeSetPatch of"),
    valid("SLK02", nodes()),
    valid("SLK02", nodes({"scalingMode": "DaemonSet", "replicas": b.DELETE})),
    valid("SLK02", nodes({"ssh": {"enabled": True, "sssdConfRef": {"name": "sssd", "key": "sssd.conf"}}})),
    valid("SLK02", nodes({"oversubscribeNode": False, "updateStrategy": b.DELETE})),
    valid("SLK02", nodes({MOST: 1}), edge=True),
    valid("SLK02", nodes({MOST: "1%"}), edge=True),
    invalid("SLK02", nodes({MOST: 0}), says="maxUnavailable is 0; allowed: at least 1", edge=True),
    invalid("SLK02", nodes({MOST: "0%"}), says="maxUnavailable is 0%", edge=True),
    invalid("SLK02", nodes({"controllerRef": b.DELETE}), says="controllerRef.name is unset"),
    invalid("SLK02", nodes({"scalingMode": "DaemonSet"}), says="replicas is 4; allowed: unset with scalingMode DaemonSet"),
    invalid("SLK02", nodes({"scalingMode": "Deployment"}), says="scalingMode is Deployment"),
    invalid("SLK02", nodes({"ssh": {"enabled": True}}), says="sssdConfRef.name is unset"),
    invalid("SLK02", nodes({"oversubscribeNode": True}), says="oversubscribeNode is true"),
    valid("SLK03", controller()),
    valid("SLK03", controller({"persistence": b.DELETE})),
    valid("SLK03", controller({"external": True, "slurmKeyRef": b.DELETE, "persistence/enabled": False})),
    valid("SLK03", controller({"jwtKeyRef": b.DELETE, "jwtHs256KeyRef": {"name": "jwt"}})),
    valid("SLK03", controller({"clusterName": "a" * 40}), edge=True),
    valid("SLK03", controller({"clusterName": b.DELETE}, name="a" * 20, namespace="b" * 19), edge=True),
    invalid("SLK03", controller({"clusterName": "a" * 41}), says="(41 characters)", edge=True),
    invalid("SLK03", controller({"clusterName": b.DELETE}, name="a" * 20, namespace="b" * 20), says="(41 characters)", edge=True),
    invalid("SLK03", controller({"persistence/enabled": False}), says="persistence.enabled is false"),
    invalid("SLK03", controller({"slurmKeyRef": b.DELETE}), says="slurmKeyRef.name is unset"),
    invalid("SLK03", controller({"jwtKeyRef": b.DELETE}), says="jwtKeyRef.name is unset"),
    invalid("SLK03", controller({"slurmKeyRef/name": ""}), says="the name of a Secret"),
    valid("SLK02", nodes({"scalingMode": "StatefulSet"})),
)

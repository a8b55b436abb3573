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


def slinky(kind: str, **spec: Any) -> Thing:
    return Thing(type=f"kubernetes:slinky.slurm.net/v1beta1:{kind}", name="slurm", properties={"metadata": {"name": "slurm"}, "spec": spec})


def chart(values: dict[str, Any], *, version: str = "1.2.2", name: str = "slurm") -> Thing:
    address = f"oci://ghcr.io/slinkyproject/charts/{name}"
    return Thing(type=tokens.RELEASE, name="slurm", properties={"chart": address, "version": version, "values": values})


def _slurmd(**image: Any) -> dict[str, Any]:
    return {"slurmd": {"image": image}}


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
    *(valid("SLK02", other("slinky.slurm.net/v1beta1", kind)) for kind in ("LoginSet", "RestApi")),
    valid("SLK02", nodes({"partition": {"enabled": True}, "taintKubeNodes": True, "volumeClaimTemplates": []})),
    valid("SLK02", nodes({"partition": None, "autoscaling": None})),
    valid("SLK02", controller({"ha": {"enabled": True}}), edge=True),
    invalid("SLK02", nodes({"nodeCount": 4}), says="nodeCount is set, but a NodeSet has no such field; allowed: replicas."),
    invalid("SLK02", nodes({"nodeTemplate": {"instanceType": "p4d.24xlarge"}}), says="no such field; allowed: template."),
    invalid("SLK02", nodes({"autoscaling": {"enabled": True}}), says="autoscaling is set"),
    invalid("SLK02", nodes({"clusterRef": {"name": "slurm"}}), says="allowed: controllerRef."),
    invalid("SLK02", nodes({"resources": {"limits": {"nvidia.com/gpu": 8}}}), says="allowed: slurmd.resources."),
    invalid("SLK02", nodes({"Replicas": 4}), says="allowed: replicas.", edge=True),
    invalid("SLK02", nodes({"partition": "gpu-a100"}), says="partition is gpu-a100 (string); allowed: an object"),
    invalid("SLK02", nodes({"replicas": "4"}), says="replicas is 4 (string); allowed: an integer", edge=True),
    invalid(
        "SLK02", controller({"replicas": 2}), says="replicas is set, but a Controller has no such field; allowed: one of accountingRef"
    ),
    invalid("SLK02", controller({"sharedStorage": {"type": "fsx-lustre"}}), says="sharedStorage is set"),
    invalid("SLK02", other("slinky.slurm.net/v1beta1", "Token"), says="replicas is set, but a Token has no such field"),
    *(valid("SLK02", nodes({"slurmd/image": image})) for image in ("ghcr.io/slinkyproject/slurmd:26.05-ubuntu26.04", "slurmd")),
    valid("SLK02", nodes({"slurmd/image": "ghcr.io/slinkyproject/slurmd:25.11-ubuntu24.04"}), edge=True),
    valid("SLK02", nodes({"slurmd/image": "registry.example:25/slurmd:24.5"}), edge=True),
    valid("SLK02", nodes({"slurmd/image": "nvcr.io/nvidia/pytorch:24.05-py3"}), edge=True),
    valid("SLK02", controller({"external": True, "slurmctld/image": "ghcr.io/slinkyproject/slurmctld:24.05"})),
    invalid(
        "SLK02", nodes({"slurmd/image": "schedmd/slurmd:24.05"}), says="slurmd.image is schedmd/slurmd:24.05; allowed: Slurm 25.11 or later"
    ),
    invalid(
        "SLK02",
        nodes({"slurmd/image": f"ghcr.io/slinkyproject/slurmd:25.05-ubuntu24.04@sha256:{'1' * 64}"}),
        says="allowed: Slurm",
        edge=True,
    ),
    invalid("SLK02", controller({"slurmctld/image": "ghcr.io/slinkyproject/slurmctld:25.05.3-rockylinux9"}), says="slurmctld.image is"),
    invalid("SLK02", slinky("RestApi", slurmrestd={"image": "slurmrestd:25.05"}), says="slurmrestd.image is slurmrestd:25.05"),
    invalid("SLK02", slinky("Accounting", slurmdbd={"image": "slurmdbd:24.11"}), says="slurmdbd.image is slurmdbd:24.11"),
    valid("SLK02", chart({"nodesets": {"cpu": {}, "gpu": None}, "partitions": {"all": {"enabled": True}}})),
    valid("SLK02", chart({"nodesets": {"gpu": _slurmd(tag="25.11-ubuntu24.04")}}), edge=True),
    valid("SLK02", chart({"nodesets": {"gpu": {"enabled": False, **_slurmd(tag="24.05")}}})),
    valid("SLK02", chart({"nodesetDefaults": _slurmd(repository="ours/trainer"), "nodesets": {"gpu": _slurmd(tag="24.05")}}), edge=True),
    valid("SLK02", chart({"nodesets": {"gpu": _slurmd(tag="25.05")}}, version="0.4.1"), edge=True),
    *(
        valid("SLK02", chart({"nodesets": {"gpu": _slurmd(tag="25.05")}}, version=each), edge=True)
        for each in ("~0.4", "^0.4.0", "0.x", "<1.0.0", "< 1", "<=0.4.1", ">=0.3.0 <1.0.0", "0.3 - 0.4", "0.*")
    ),
    *(
        invalid("SLK02", chart({"nodesets": {"gpu": _slurmd(tag="25.05")}}, version=each), says="image.tag is 25.05", edge=True)
        for each in ("^1.0.0", "1.x", ">=0.4.0", ">= 0.4", "<=1.0.0", "<1.0.1", "~1.0", "*", "")
    ),
    valid("SLK02", chart({"nodesetDefaults": _slurmd(tag="24.05")})),
    valid("SLK02", chart({"accounting": {"slurmdbd": {"image": {"tag": "24.05"}}}})),
    valid("SLK02", chart({"controller": {"external": True, "slurmctld": {"image": {"tag": "24.05"}}}})),
    invalid(
        "SLK02",
        chart({"nodesets": {"gpu": _slurmd(tag="24.05-ubuntu24.04")}}),
        says="values.nodesets.gpu.slurmd.image.tag is 24.05-ubuntu24.04",
    ),
    invalid(
        "SLK02", chart({"nodesetDefaults": _slurmd(tag="25.05"), "nodesets": {"gpu": {}}}), says="nodesetDefaults.slurmd.image.tag is 25.05"
    ),
    invalid(
        "SLK02", chart({"controller": {"slurmctld": {"image": "ghcr.io/slinkyproject/slurmctld:25.05"}}}), says="slurmctld.image is ghcr"
    ),
    invalid(
        "SLK02",
        chart({"restapi": {"slurmrestd": {"image": {"tag": 25.05}}}}, version="1.0.0"),
        says="slurmrestd.image.tag is 25.05",
        edge=True,
    ),
    invalid("SLK02", chart({"accounting": {"enabled": True, "slurmdbd": {"image": {"tag": "24.05"}}}}), says="slurmdbd.image.tag is 24.05"),
    valid("SLK03", chart({"controller": {"persistence": {"enabled": True}}})),
    valid("SLK03", chart({"nodesets": {"cpu": {}}})),
    valid("SLK03", chart({"controller": {"external": True, "persistence": {"enabled": False}}}), edge=True),
    valid("SLK03", chart({"controller": {"persistence": {"enabled": False}}}, name="wrapper")),
    invalid(
        "SLK03",
        chart({"controller": {"persistence": {"enabled": False}}}),
        says="values.controller.persistence.enabled is false; allowed: true",
    ),
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

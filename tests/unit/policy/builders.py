"""One valid thing of each kind; a test changes one place of it."""

import copy
from collections.abc import Mapping
from typing import Any

from guardrails import tokens
from tests.unit.policy.analyzer import Thing

DELETE = object()


def changed(properties: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy with the values at dotted paths replaced, or removed by `DELETE`; digits index lists."""
    result = copy.deepcopy(dict(properties))
    for path, value in changes.items():
        *parents, last = path.split("/")
        place: Any = result
        for step in parents:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        if value is DELETE:
            place.pop(last, None)
        else:
            place[int(last) if isinstance(place, list) else last] = copy.deepcopy(value)
    return result


def lustre(**properties: Any) -> Thing:
    return Thing(type=tokens.LUSTRE, name="scratch", properties=properties)


def storage_class(**parameters: Any) -> Thing:
    return Thing(type=tokens.STORAGE_CLASS, properties={"provisioner": "fsx.csi.aws.com", "parameters": parameters})


_NODE_POOL = {
    "metadata": {"name": "p5"},
    "spec": {
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10m", "budgets": [{"nodes": "0", "reasons": ["Drifted"]}]},
        "limits": {"nvidia.com/gpu": 64},
        "template": {
            "metadata": {"labels": {}},
            "spec": {
                "expireAfter": "Never",
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "p5"},
                "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]},
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved", "on-demand"]},
                ],
            },
        },
    },
}
_CPU_REQUIREMENTS = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m7i.2xlarge"]}]


def node_pool(changes: Mapping[str, Any] | None = None, *, name: str = "p5") -> Thing:
    return Thing(type=tokens.NODE_POOL, name=name, properties=changed(_NODE_POOL, changes or {}))


def cpu_pool(changes: Mapping[str, Any] | None = None) -> Thing:
    plain = {
        "spec/limits": {"cpu": 64},
        "spec/template/spec/taints": [],
        "spec/template/spec/requirements": _CPU_REQUIREMENTS,
        "spec/template/spec/nodeClassRef/name": "cpu",
    }
    return node_pool({**plain, **(changes or {})}, name="cpu")


_TERMS = {"subnetSelectorTerms": [{"tags": {"pool": "p5"}}], "securityGroupSelectorTerms": [{"tags": {"pool": "p5"}}]}
_NODE_CLASS = {"metadata": {"name": "p5"}, "spec": {"role": "node", "amiSelectorTerms": [{"alias": "al2023@v20261120"}], **_TERMS}}


def node_class(changes: Mapping[str, Any] | None = None) -> Thing:
    return Thing(type=tokens.NODE_CLASS, name="p5-class", properties=changed(_NODE_CLASS, changes or {}))


def _container(**resources: Any) -> dict[str, Any]:
    return {"name": "trainer", "image": "registry.example/trainer:1", "resources": {"limits": resources, "requests": resources}}


_MPI_JOB = {
    "metadata": {"name": "pretrain"},
    "spec": {
        "slotsPerWorker": 8,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": {"cleanPodPolicy": "Running", "schedulingPolicy": {"minAvailable": 4}},
        "mpiReplicaSpecs": {
            "Launcher": {
                "replicas": 1,
                "template": {
                    "spec": {"containers": [{"name": "mpi", "command": ["mpirun", "-np", "32", "python3", "-m", "training.train"]}]}
                },
            },
            "Worker": {
                "replicas": 4,
                "template": {
                    "spec": {
                        "nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"},
                        "containers": [_container(**{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32, "cpu": "180"})],
                    }
                },
            },
        },
    },
}
WORKER = "spec/mpiReplicaSpecs/Worker"
WORKER_CONTAINER = f"{WORKER}/template/spec/containers/0"
LAUNCHER_COMMAND = "spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/command"


def mpi_job(changes: Mapping[str, Any] | None = None) -> Thing:
    return Thing(type=tokens.MPI_JOB, name="pretrain", properties=changed(_MPI_JOB, changes or {}))


_VOLCANO_JOB = {
    "metadata": {"name": "finetune"},
    "spec": {
        "schedulerName": "volcano",
        "minAvailable": 4,
        "queue": "training",
        "tasks": [
            {
                "name": "worker",
                "replicas": 4,
                "template": {
                    "spec": {
                        "nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"},
                        "containers": [
                            {
                                **_container(**{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}),
                                "command": ["python3", "-m", "torch.distributed.run", "--nnodes=4"],
                            }
                        ],
                    }
                },
            }
        ],
    },
}
TASK_CONTAINER = "spec/tasks/0/template/spec/containers/0"


def volcano_job(changes: Mapping[str, Any] | None = None) -> Thing:
    return Thing(type=tokens.VOLCANO_JOB, name="finetune", properties=changed(_VOLCANO_JOB, changes or {}))


_TORCHRUN = {
    **_container(**{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}),
    "name": "pytorch",
    "command": ["torchrun", "--nproc-per-node=8", "train.py"],
}
_TORCH_POD = {"template": {"spec": {"nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"}, "containers": [_TORCHRUN]}}}
_PYTORCH_JOB = {
    "metadata": {"name": "align"},
    "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, **copy.deepcopy(_TORCH_POD)}, "Worker": {"replicas": 3, **_TORCH_POD}}},
}
TORCH_ROLES = "spec/pytorchReplicaSpecs"
TORCH_CONTAINER = f"{TORCH_ROLES}/Worker/template/spec/containers/0"
TORCH_MASTER_CONTAINER = f"{TORCH_ROLES}/Master/template/spec/containers/0"


def pytorch_job(changes: Mapping[str, Any] | None = None) -> Thing:
    return Thing(type=tokens.PYTORCH_JOB, name="align", properties=changed(_PYTORCH_JOB, changes or {}))


def efa_group(**properties: Any) -> Thing:
    return Thing(type=tokens.SECURITY_GROUP, name="fabric-efa", properties={"description": "EFA traffic", **properties})


def application_of(chart: str, helm: Mapping[str, Any] | None = None, /, **source: Any) -> Thing:
    """An Application of Argo CD that installs a chart."""
    origin = {"repoURL": "https://charts.example", "chart": chart, "targetRevision": "1.2.1", **({"helm": helm} if helm else {}), **source}
    properties = {"metadata": {"name": chart}, "spec": {"project": "ml", "source": {k: v for k, v in origin.items() if v is not None}}}
    return Thing(type=tokens.APPLICATION, name="app", properties=properties)

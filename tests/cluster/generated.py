"""Objects of the kinds that the pack knows, valid ones and ones with a few places changed; the same for the same seed."""

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.cases import CASES
from tests.unit.policy.mutation import REMOVE, places, with_value

RAY = tokens.RAY_CLUSTER
KINDS = (tokens.NODE_POOL, tokens.NODE_CLASS, tokens.MPI_JOB, tokens.PYTORCH_JOB, tokens.VOLCANO_JOB, RAY)
_TEXTS = (
    "",
    "0",
    "-1",
    "10m",
    "Never",
    "150%",
    "a" * 300,
    "UPPER",
    "x/y",
    "é",
    "In",
    "nvidia.com/gpu",
    "5Gi",
    "1e400",
    "@daily",
    "* * * * *",
)
_NUMBERS = (0, -1, 1, 2, 51, 101, 1.5, 2**31, 2**40, -(2**31) - 1)
_VALUES: tuple[Any, ...] = (*_TEXTS, *_NUMBERS, None, True, [], {}, [""], [{}], {"a": "b"}, REMOVE, REMOVE)
_REQUIREMENT_KEYS = (
    *("node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type", "kubernetes.io/hostname"),
    *("karpenter.sh/nodepool", "karpenter.sh/custom", "example.com/team", "kubernetes.io/arch", "bad key", "a/b/c", "karpenter.k8s.aws/x"),
)
_TERMS: Sequence[Any] = (
    [{"id": "subnet-0123"}],
    [{"tags": {"a": "b"}}],
    [{"tags": {"": "b"}}],
    [{"id": "subnet-0123", "tags": {"a": "b"}}],
    [{"id": "sg-0123"}],
    [{"id": "ami-0123"}],
    [{"name": "x"}],
    [{"name": "x", "tags": {"a": "b"}}],
    [{"name": "x", "id": "ami-0123"}],
    [{"alias": "al2023@v20261120"}],
    [{"alias": "al2023@v20261120"}, {"id": "ami-0123"}],
    [{"alias": "al2023@v20261120", "tags": {"a": "b"}}],
    [{"alias": "al2024@v1"}],
    [{"alias": "al2023"}],
    [{}],
    [],
    [{"tags": {"a": "b"}}] * 31,
)
_DEVICES: Sequence[Any] = (
    [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100Gi", "volumeType": "gp3", "encrypted": True}}],
    [{"deviceName": "/dev/xvda", "ebs": {"volumeType": "gp3"}}],
    [{"ebs": {"volumeSize": "100Gi"}, "rootVolume": True}] * 2,
    [{"ebs": {"volumeSize": "0Gi"}}],
    [{"ebs": {"snapshotID": "snap-1"}}],
    [{"ebs": {"volumeSize": "10Gi", "volumeInitializationRate": 200}}],
)
_CHOICES: Mapping[str, Mapping[str, Sequence[Any]]] = {
    tokens.NODE_POOL: {
        "spec/disruption/budgets": (
            [{"nodes": "0", "schedule": "@daily"}],
            [{"nodes": "0", "duration": "8h"}],
            [{"nodes": "10%", "schedule": "@daily", "duration": "1h30m"}],
            [{"nodes": "1", "reasons": ["Empty", "Drifted"]}],
            [{"nodes": "1", "reasons": ["Consolidated"]}],
            [{"nodes": "1", "schedule": "every day", "duration": "1h"}],
            [{"nodes": "1", "schedule": "@daily", "duration": "30s"}],
            [{"nodes": "1"}] * 51,
        ),
        "spec/template/spec/requirements/0/key": _REQUIREMENT_KEYS,
        "spec/template/spec/requirements/0": (
            {"key": "a", "operator": "In", "values": []},
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Gt", "values": ["1"]},
            {"key": "a", "operator": "Gt", "values": ["1", "2"]},
            {"key": "a", "operator": "Lt", "values": ["-1"]},
            {"key": "a", "operator": "Gte", "values": ["x"]},
            {"key": "a", "operator": "In", "values": ["x"], "minValues": 2},
            {"key": "a", "operator": "Exists"},
            {"key": "a", "operator": "In", "values": ["not a label!"]},
        ),
        "spec/template/metadata/labels": (
            {"karpenter.sh/nodepool": "x"},
            {"kubernetes.io/hostname": "x"},
            {"example.com/a": "b"},
            {"karpenter.sh/x": "y"},
            {"k8s.io/x": "y"},
            {"a b": "c"},
            {f"k{n}": "v" for n in range(101)},
        ),
        "spec/template/spec/nodeClassRef": (
            {"group": "", "kind": "EC2NodeClass", "name": "x"},
            {"group": "karpenter.k8s.aws", "kind": "", "name": "x"},
            {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": ""},
            {"group": "a/b", "kind": "EC2NodeClass", "name": "x"},
            {"kind": "EC2NodeClass", "name": "x"},
        ),
        "spec/template/spec/taints/0": ({"key": "a", "effect": "X"}, {"effect": "NoSchedule"}, {"key": "", "effect": "NoSchedule"}),
        "spec/replicas": (0, 3, -1),
        "spec/weight": (0, 1, 100, 101),
        "spec/limits": ({"nodes": "3"}, {"cpu": "x"}, {}),
    },
    tokens.NODE_CLASS: {
        "spec/amiSelectorTerms": _TERMS,
        "spec/subnetSelectorTerms": _TERMS,
        "spec/securityGroupSelectorTerms": _TERMS,
        "spec/capacityReservationSelectorTerms": ([{"id": "cr-0123"}], [{"id": "cr-0123", "tags": {"a": "b"}}], [{"ownerID": "1"}], [{}]),
        "spec/instanceProfile": ("p", ""),
        "spec/role": ("", "r", REMOVE),
        "spec/amiFamily": ("AL2023", "AL2", "Bottlerocket", "Custom", "Windows2022", "al2023"),
        "spec/tags": (
            {"a": "b"},
            {"": "b"},
            {"eks:eks-cluster-name": "x"},
            {"kubernetes.io/cluster/x": "y"},
            {"karpenter.sh/nodepool": "x"},
        ),
        "spec/blockDeviceMappings": _DEVICES,
        "spec/metadataOptions": ({"httpTokens": "required"}, {"httpTokens": "x"}, {"httpPutResponseHopLimit": 0}, {"httpEndpoint": "on"}),
        "spec/instanceStorePolicy": ("RAID0", "RAID1"),
        "spec/kubelet": (
            {"clusterDNS": []},
            {"maxPods": -1},
            {"evictionSoft": {"memory.available": "5%"}},
            {"evictionHard": {"x": "5%"}},
            {"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 80},
            {"systemReserved": {"cpu": "-1"}},
            {"kubeReserved": {"gpu": "1"}},
        ),
        "spec/networkInterfaces": (
            [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}],
            [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "efa-only"}],
            [{"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"}],
            [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}] * 2,
            [{"interfaceType": "x"}],
        ),
        "spec/placementGroupSelector": ({"name": "x"}, {"id": "pg-0123"}, {"id": "pg-0123", "name": "x"}, {}),
        "spec/associatePublicIPAddress": (True, False),
        "spec/userData": ("x",),
    },
    tokens.MPI_JOB: {
        "spec/slotsPerWorker": (0, 1, 8, "8"),
        "spec/runPolicy/cleanPodPolicy": ("Running", "All", "None", "Never"),
        "spec/mpiImplementation": ("OpenMPI", "Intel", "MPICH", "IntelMPI"),
        "spec/launcherCreationPolicy": ("AtStartup", "WaitForWorkersReady", "Later"),
        "spec/mpiReplicaSpecs/Worker/restartPolicy": ("Never", "OnFailure", "Always", "ExitCode", "Sometimes"),
        "spec/mpiReplicaSpecs/Worker/replicas": (0, 1, -1, "4"),
    },
    tokens.PYTORCH_JOB: {
        "spec/nprocPerNode": ("8", 8, "auto", ""),
        "spec/elasticPolicy": (
            {},
            {"minReplicas": 1, "maxReplicas": 4, "rdzvBackend": "c10d"},
            {"minReplicas": "1"},
            {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]},
            {"metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]},
            {"rdzvConf": [{"key": "timeout"}]},
            {"rdzvPort": 2**31},
            {"standalone": "true"},
        ),
        "spec/runPolicy": (
            {"cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 60},
            {"schedulingPolicy": {"minAvailable": 4, "queue": "training", "minResources": {"cpu": "1"}}},
            {"schedulingPolicy": {"minAvailable": "4"}},
            {"backoffLimit": 1.5},
            {"suspend": "no"},
        ),
        "spec/pytorchReplicaSpecs/Worker/replicas": (0, 1, -1, "4"),
        "spec/pytorchReplicaSpecs/Worker/restartPolicy": ("Never", "OnFailure", "Always", "ExitCode", 1),
        "spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/ports": (
            [{"containerPort": 29500, "name": "nccl"}],
            [{"name": "nccl"}],
            [{"containerPort": "29500"}],
            [{"containerPort": 1}, {"containerPort": 1}],
        ),
        "spec/pytorchReplicaSpecs": (REMOVE, {}, [], {"Worker": {}}),
    },
    tokens.VOLCANO_JOB: {
        "spec/minAvailable": (0, 1, 4, 5, -1),
        "spec/tasks/0/replicas": (0, 1, -1, 4),
        "spec/tasks/0/name": ("", "UPPER", "ok", "a" * 70),
        "spec/maxRetry": (0, 3, -1),
        "spec/policies": (
            [{"event": "PodFailed", "action": "RestartJob"}],
            [{"event": "PodRunning", "action": "RestartJob"}],
            [{"event": "PodFailed", "action": "Explode"}],
            [{"event": "PodFailed", "exitCode": 3, "action": "RestartJob"}],
            [{"exitCode": 0, "action": "RestartJob"}],
            [{"exitCode": 3, "action": "RestartJob"}],
            [{"exitCode": 3, "action": "RestartJob"}] * 2,
            [{"event": "*", "action": "RestartJob"}, {"event": "PodFailed", "action": "RestartJob"}],
            [{"event": "*", "action": "RestartJob"}],
            [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}],
            [{"events": ["PodFailed", "Sneeze"], "action": "RestartJob"}],
            [{"action": "RestartJob"}],
            [{"event": "PodFailed", "action": "SyncJob"}],
            [{"event": "PodFailed"}],
        ),
        "spec/tasks/0/policies": (
            [{"event": "TaskCompleted", "action": "CompleteJob"}],
            [{"event": "OutOfSync", "action": "RestartJob"}],
            [{"event": "PodEvicted", "action": "RestartTask"}] * 2,
        ),
        "spec/tasks/0/minAvailable": (0, 1, 99, -1),
        "spec/tasks/0/topologyPolicy": ("none", "best-effort", "restricted", "single-numa-node", "any"),
        "spec/tasks/0/dependsOn": ({"name": ["missing"]}, {"name": []}),
        "spec/plugins": ({"svc": [], "env": []}, {"svc": []}, {"mpi": ["--master=x"]}, {"pytorch": []}, {"sneeze": []}, {}),
        "spec/queue": ("default", "root", ""),
        "spec/volumes": (
            [{"mountPath": "/data", "volumeClaimName": "data"}],
            [{"mountPath": "/data", "volumeClaimName": "data"}] * 2,
            [{"mountPath": "", "volumeClaimName": "data"}],
            [{"mountPath": "/data"}],
            [{"mountPath": "/data", "volumeClaimName": "Data"}],
            [{"mountPath": "/data", "volumeClaimName": "data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}],
        ),
        "spec/networkTopology": (
            {"mode": "hard", "highestTierAllowed": 1},
            {"mode": "hard", "highestTierName": "rack"},
            {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"},
            {"mode": "firm"},
        ),
        "metadata/name": ("ok", "a" * 64, "a" * 300),
    },
    RAY: {
        "spec/workerGroupSpecs/0/replicas": (0, 2, -1, "2"),
        "spec/workerGroupSpecs/0/minReplicas": (0, 2, 5, -1),
        "spec/workerGroupSpecs/0/maxReplicas": (0, 2, 5),
        "spec/workerGroupSpecs/0/groupName": (REMOVE, "", "gpu"),
        "spec/workerGroupSpecs/0/rayStartParams": (REMOVE, {}, {"num-gpus": "4"}, {"num-gpus": 4}),
        "spec/headGroupSpec/serviceType": ("ClusterIP", "NodePort", "LoadBalancer"),
    },
}


def objects(
    count: int, seed: int, takes: Callable[[Thing], bool], *, kinds: Sequence[str] = KINDS, spared: str = ""
) -> Iterator[tuple[Thing, Thing]]:
    """`count` objects, the kinds in turn, each with the object that it was before it was changed, which the server `takes`.

    Nothing is changed below a key of the name `spared`.
    """
    chance = random.Random(seed)
    found = {kind: [thing for thing in bases(kind) if takes(thing)] for kind in kinds}
    for number in range(count):
        base = chance.choice(found[kinds[number % len(kinds)]])
        thing = base
        for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
            thing = _changed(thing, chance, spared)
        yield base, thing


def bases(kind: str) -> list[Thing]:
    """The objects of the rules' own tables."""
    found = [thing for case in CASES for thing in case.things if thing.type == kind and "04da6b54" not in repr(thing.properties)]
    assert found, f"no case has a {kind}"
    return found


def _changed(thing: Thing, chance: random.Random, spared: str) -> Thing:
    choices = _CHOICES[thing.type]
    if chance.random() < 0.6:
        path = chance.choice(list(choices))
        value = chance.choice(list(choices[path]))
        try:
            properties = b.changed(thing.properties, {path: b.DELETE if value is REMOVE else copy.deepcopy(value)})
            return Thing(type=thing.type, name=thing.name, properties=properties)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            return thing
    # The API server's own part of the metadata is not ours to judge.
    found = [place for place in places(thing.properties) if place[0] == "spec" and len(place) > 1 and spared not in place]
    return with_value(thing, chance.choice(found), _fresh(chance.choice(_VALUES))) if found else thing


def _fresh(value: Any) -> Any:
    """A copy of its own; a copy of `REMOVE` would no longer be it."""
    return value if value is REMOVE else copy.deepcopy(value)

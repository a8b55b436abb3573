"""Devices, huge pages and the size of nodes."""

import base64
from dataclasses import replace
from typing import Any

from guardrails import tokens
from guardrails.template import EFA, GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.pod_security import pod

TYPE = "node.kubernetes.io/instance-type"
HUGE = "hugepages-2Mi"


def asking(limits: dict[str, Any] | None = None, requests: dict[str, Any] | None = None, **spec: Any) -> Thing:
    return pod(container={"resources": {"limits": limits or {}, "requests": requests or {}}}, **spec)


def helper(count: int, **container: Any) -> Thing:
    return asking({GPU: 4}, initContainers=[{"name": "check", "resources": {"limits": {GPU: count}}, **container}])


def on(instance: str, **requests: str) -> Thing:
    return asking(requests=requests, nodeSelector={TYPE: instance})


def pool(*types: str) -> Thing:
    labels = {"spec/template/metadata/labels": {"team.example/pool": "gpu"}}
    return b.node_pool({**labels, "spec/template/spec/requirements/0/values": list(types)})


TEAM = {"team.example/pool": "gpu"}
FOUND = {"nvidia.com/gpu.present": "true"}
OWN_NODES = Thing(
    type=tokens.SCALING_GROUP,
    name="own",
    properties={"mixedInstancesPolicy": {"launchTemplate": {"overrides": [{"instanceType": "p5.48xlarge"}]}}},
)


def group(*types: str, team: str = "gpu", labels: dict[str, str] | None = None) -> Thing:
    properties = {"instanceTypes": list(types), "labels": {"team.example/pool": team, **(labels or {})}}
    return Thing(type=tokens.NODE_GROUP, name="group", properties=properties)


def in_pool(**requests: str) -> Thing:
    return asking(requests=requests, nodeSelector={"team.example/pool": "gpu"})


def agent(cpu: str) -> Thing:
    return pod(kind=tokens.DAEMON_SET, name="monitor", container={"resources": {"requests": {"cpu": cpu}}})


def wanting(key: str, *values: str, **requests: str) -> Thing:
    """A pod that says by affinity which nodes it wants."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return asking(requests=requests, affinity=affinity)


def limited(beside: dict[str, Any], *, pod_level: dict[str, Any] | None = None, **spec: Any) -> Thing:
    """A pod on a p4d.24xlarge with an init container or sidecar, and with resources of its own."""
    container, first = {"resources": {"requests": {"cpu": "90"}}}, [{"name": "first", **beside}]
    return pod(container=container, nodeSelector={TYPE: "p4d.24xlarge"}, initContainers=first, resources=pod_level, **spec)


def daemon(cpu: str, **spec: Any) -> Thing:
    return pod(kind=tokens.DAEMON_SET, name="monitor", container={"resources": {"requests": {"cpu": cpu}}}, **spec)


def guest() -> Thing:
    """A pod in the pool that nearly fills a p4d.24xlarge, with the pool's toleration."""
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    return asking(requests={"cpu": "95"}, nodeSelector={"team.example/pool": "gpu"}, tolerations=tolerations)


def wanted(*expressions: tuple[str, str, list[str]], **term: Any) -> dict[str, Any]:
    """The affinity of a pod that wants nodes by one term."""
    said = [{"key": key, "operator": operator, "values": values} for key, operator, values in expressions]
    terms = [{"matchExpressions": said, **term}]
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}


def either(*teams: str, **requests: str) -> Thing:
    """A pod that goes to one pool or another."""
    terms = [{"matchExpressions": [{"key": "team.example/pool", "operator": "In", "values": [team]}]} for team in teams]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return asking(requests=requests, affinity=affinity)


def hungry(**spec: Any) -> Thing:
    """A pod that asks for more huge pages than the driver's set-up leaves."""
    return asking({HUGE: "21000Mi", "memory": "720Gi", EFA: 4}, **spec)


def group_of(script: str, *, kind: str = tokens.NODE_GROUP, **properties: Any) -> tuple[Thing, Thing]:
    """A group of nodes with a launch template that runs the script."""
    encoded = base64.b64encode(f"#!/bin/sh\n{script}\n".encode()).decode()
    template = Thing(type=tokens.LAUNCH_TEMPLATE, name="template", properties={"id": "lt-1", "userData": encoded})
    return template, Thing(type=kind, name="nodes", properties={"launchTemplate": {"id": "lt-1"}, **properties})


SYSCTL, USER_DATA = "sysctl -w vm.nr_hugepages=10500", "spec/userData"
PAGES, IN_P5 = {USER_DATA: f"#!/bin/sh\n{SYSCTL}\n"}, {"nodeSelector": {"karpenter.sh/nodepool": "p5"}}


def no_huge_of(name: str) -> Thing:
    return asking({"memory": "1Gi"}, initContainers=[{"name": "i", "resources": {"limits": {HUGE: name, "memory": "1Gi"}}}])


def volume(medium: str, **limits: Any) -> Thing:
    return asking({"memory": "1Gi", **limits}, volumes=[{"name": "huge", "emptyDir": {"medium": medium}}])


def slurm(**container: Any) -> Thing:
    spec = {"controllerRef": {"name": "slurm"}, "slurmd": {"image": "slurmd:25.11.2", **container}}
    return Thing(type=tokens.NODE_SET, name="gpu", properties={"metadata": {"name": "gpu"}, "spec": spec})


def node_set(*beside: dict[str, Any], **limits: Any) -> Thing:
    """Slurm's nodes on p4d, with other containers beside slurmd."""
    pod = {"nodeSelector": {"node.kubernetes.io/instance-type": "p4d.24xlarge"}, **({"containers": list(beside)} if beside else {})}
    spec = {"replicas": 4, "slurmd": {"resources": {"limits": limits}}, "template": {"spec": pod}}
    return Thing(type=tokens.NODE_SET, name="gpu", properties={"metadata": {"name": "gpu"}, "spec": spec})


def tolerant() -> Thing:
    """A pod that nearly fills a p4d.24xlarge of no pool of the program, with a toleration."""
    return asking(requests={"cpu": "95"}, nodeSelector={TYPE: "p4d.24xlarge"}, tolerations=[OF_GPU])


OF_GPU = {"key": GPU, "operator": "Exists"}
LINUX_KEY = "kubernetes.io/os"
SIDECAR = {"restartPolicy": "Always"}
TOLERATED = {"tolerations": [{"operator": "Exists"}]}
LINUX = {"nodeSelector": {"kubernetes.io/os": "linux"}}
SIX = {"resources": {"requests": {"cpu": "6"}}}
ANY_TYPE = b.node_pool({"spec/template/metadata/labels": {"team.example/pool": "gpu"}, "spec/template/spec/requirements": []}, name="any")
ZONE = "topology.kubernetes.io/zone"


def plugin(values: dict[str, Any]) -> dict[str, Any]:
    return {"chart": "nvidia-device-plugin", "values": values}


NODEPOOL = "karpenter.sh/nodepool"
TO_P5 = {NODEPOOL: "p5"}


def bounded(name: str = "p5", *types: str, **limits: Any) -> Thing:
    """A pool with these limits and none beside them; `gpu` stands for GPUs."""
    own = {GPU if key == "gpu" else key: value for key, value in limits.items()}
    chosen = {"spec/template/spec/requirements/0/values": list(types)} if types else {}
    labels = {"spec/template/metadata/labels": {"team.example/pool": "gpu"}}
    return b.node_pool({"spec/limits": own, "metadata/name": name, **labels, **chosen}, name=name)


def of_volcano(selector: dict[str, str] | None = None, **changes: Any) -> Thing:
    """Four pods of eight GPUs that start together."""
    return b.volcano_job({"spec/tasks/0/template/spec/nodeSelector": selector or TO_P5, **changes})


def of_mpi(**changes: Any) -> Thing:
    """Four workers of eight GPUs and 180 CPUs, for which the launcher waits."""
    return b.mpi_job({f"{b.WORKER}/template/spec/nodeSelector": TO_P5, **changes})


def of_torch(**changes: Any) -> Thing:
    """A master and three workers of eight GPUs."""
    roles = {f"{b.TORCH_ROLES}/{role}/template/spec/nodeSelector": TO_P5 for role in ("Master", "Worker")}
    return b.pytorch_job({**roles, **changes})


def in_two_steps() -> Thing:
    """A job of which one half is only made when the other has gone on."""
    first = {**of_volcano().properties["spec"]["tasks"][0], "replicas": 2}
    tasks = [{**first, "name": "first"}, {**first, "name": "then", "dependsOn": {"name": ["first"]}}]
    return b.volcano_job({"spec/tasks": tasks})


EITHER: dict[str, Any] = {
    "spec/tasks/0/template/spec/nodeSelector": {},
    "spec/tasks/0/template/spec/affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": NODEPOOL, "operator": "In", "values": ["p5", "spare"]}]}]
            }
        }
    },
}
ELASTIC: dict[str, Any] = {
    f"{b.TORCH_ROLES}/Master": b.DELETE,
    "spec/elasticPolicy": {"minReplicas": 3, "maxReplicas": 8},
    f"{b.TORCH_ROLES}/Worker/replicas": 8,
}
TOO_MANY = "with pods that together ask for 32 nvidia.com/gpu; allowed: at most 24 nvidia.com/gpu, all that p5 may have by its limits"
PERHAPS = f"{TOO_MANY}, unless some of the pods run elsewhere or later"

CASES = (
    valid("POD04", asking({GPU: 8, EFA: 32})),
    valid("POD04", asking({GPU: "8"}, {GPU: "8"})),
    valid("POD04", asking({"aws.amazon.com/neuron": 16})),
    valid("POD04", asking({"cpu": "2"}, {"cpu": "1"})),
    valid("POD04", helper(4), edge=True),
    invalid("POD04", helper(5), says="at most 4, what the pod's containers use", edge=True),
    invalid("POD04", helper(1, restartPolicy="Always"), says="no device for a sidecar"),
    invalid("POD04", asking({GPU: 4}, {GPU: 8}), says='requests["nvidia.com/gpu"] is 8; allowed: 4, the limit'),
    invalid("POD04", asking({}, {EFA: 4}), says="never only requested"),
    invalid("POD04", asking({GPU: None}, {GPU: None}), says='limits["nvidia.com/gpu"] is unset; allowed: a whole number of devices.'),
    invalid("POD04", asking({}, {EFA: None}), says='limits["vpc.amazonaws.com/efa"] is unset; allowed: a whole number', edge=True),
    invalid("POD04", asking({EFA: None}, {EFA: 0}), says="allowed: 0, as requested", edge=True),
    valid("POD04", asking({EFA: 0}, {EFA: None}), edge=True),
    invalid("POD04", asking({GPU: "1.5"}), says='limits["nvidia.com/gpu"] is 1.5; allowed: a whole number'),
    invalid("POD04", asking({GPU: -1}), says="is -1; allowed: a whole number"),
    invalid("POD04", b.mpi_job({f"{b.WORKER_CONTAINER}/resources/requests": {GPU: 4}}), says="allowed: 8, the limit"),
    valid("POD05", asking({HUGE: "5120Mi", "memory": "64Gi", EFA: 4})),
    valid("POD05", asking({HUGE: "5120Mi", "cpu": "8"}, {HUGE: "5Gi"})),
    valid("POD05", asking({"memory": "64Gi"})),
    valid("POD05", asking({HUGE: "2Mi", "memory": "1Gi"}, volumes=[{"name": "huge", "emptyDir": {"medium": "HugePages"}}])),
    valid("POD05", asking({HUGE: "10256Mi", "memory": "64Gi", EFA: 4}), edge=True),
    invalid(
        "POD05",
        asking({HUGE: "10258Mi", "memory": "64Gi", EFA: 4}),
        says="asking 10258Mi of hugepages-2Mi; allowed: at most 10256Mi",
        edge=True,
    ),
    # Another number of pages is set up by hand: for Gaudi always, for others by the user data of their nodes.
    valid("POD05", asking({HUGE: "21000Mi", "memory": "720Gi", EFA: 4, "habana.ai/gaudi": 8})),
    invalid("POD05", asking({HUGE: "21000Mi", "memory": "720Gi", EFA: 4, "habana.ai/gaudi": 0}), says="asking 21000Mi", edge=True),
    *(
        valid("POD05", *nodes, hungry(**spec), edge=edge)
        for nodes, spec, edge in (
            ((b.node_class(PAGES), b.node_pool()), IN_P5, False),
            ((b.node_class({USER_DATA: '[settings.kernel.sysctl]\n"vm.nr_hugepages" = "10500"'}), b.node_pool()), IN_P5, False),
            ((b.node_class(PAGES), b.node_pool()), {}, True),
            ((b.node_class(), b.node_pool(), *group_of(SYSCTL)), {}, True),
            (group_of(SYSCTL, instanceTypes=["p5.48xlarge"]), {"nodeSelector": {TYPE: "p5.48xlarge"}}, False),
            (group_of(SYSCTL, labels={"team": "ml"}), {"nodeSelector": {"team": "ml"}}, False),
            (group_of(SYSCTL, kind=tokens.SCALING_GROUP), {"nodeSelector": {"team": "ml"}}, True),
            ((b.node_class({USER_DATA: UNKNOWN}), b.node_pool(), *group_of(SYSCTL)), {}, True),
        )
    ),
    *(
        invalid("POD05", *nodes, hungry(**spec), says="at most 10256Mi, the pages that an EFA node sets aside unless", edge=edge)
        for nodes, spec, edge in (
            ((b.node_class(), b.node_pool()), IN_P5, False),
            ((b.node_class({USER_DATA: "echo never > /sys/kernel/mm/transparent_hugepage/enabled"}), b.node_pool()), IN_P5, True),
            ((b.node_class(PAGES), b.node_pool({"spec/template/spec/nodeClassRef/name": "other"})), IN_P5, True),
            ((b.node_class(PAGES), b.node_pool()), {"nodeSelector": {"karpenter.sh/nodepool": "cpu"}}, True),
            ((b.node_class(), b.node_pool(), *group_of(SYSCTL)), IN_P5, True),
            (group_of(SYSCTL, instanceTypes=["p4d.24xlarge"]), {"nodeSelector": {TYPE: "p5.48xlarge"}}, True),
            (group_of(SYSCTL, labels={"team": "vision"}), {"nodeSelector": {"team": "ml"}}, True),
            (group_of(SYSCTL), {"nodeSelector": {"team": "ml"}}, True),
            (group_of("sysctl -w vm.max_map_count=262144"), {}, False),
        )
    ),
    # Limits are judged whatever the nodes are, and a pod that nobody can count hides no other.
    invalid("POD05", b.node_class(PAGES), b.node_pool(), asking({HUGE: "3Mi", "memory": "1Gi"}, **IN_P5), says="a multiple of 2Mi"),
    invalid("POD05", b.volcano_job({"spec/tasks": UNKNOWN}), asking({HUGE: "3Mi", "memory": "1Gi"}), says="a multiple of 2Mi", edge=True),
    invalid("POD05", asking({HUGE: "5120Mi", "memory": "1Gi"}, {HUGE: "2Mi"}), says="same as the limit, which is 5120Mi"),
    invalid("POD05", asking({"memory": "1Gi"}, {HUGE: "2Mi"}), says="same as the limit, which is unset"),
    invalid("POD05", asking({HUGE: "3Mi", "memory": "1Gi"}), says="a multiple of 2Mi"),
    invalid("POD05", asking({HUGE: "2Mi"}), says="cpu or memory beside hugepages-2Mi"),
    invalid("POD05", asking({HUGE: "many", "memory": "1Gi"}), says="many; allowed: a quantity"),
    invalid("POD05", asking({"memory": "1Gi"}, volumes=[{"name": "h", "emptyDir": {"medium": "HugePages-2Mi"}}]), says="or medium Memory"),
    valid("POD06", node_set(cpu="90", memory="1000Gi")),
    invalid("POD06", node_set(cpu="200"), says="spec.slurmd.resources is asking 200 cpu"),
    invalid("POD06", node_set(**{GPU: 9}), says="spec.slurmd.resources is asking 9 nvidia.com/gpu"),
    invalid("POD06", node_set({"name": "exporter"}, cpu="200"), says="spec.template.spec.containers is asking 200 cpu", edge=True),
    valid("EFA06", node_set(**{GPU: 8, EFA: 4})),
    invalid("EFA06", node_set(**{GPU: 8}), says="spec.slurmd.resources is asking no vpc.amazonaws.com/efa"),
    valid("POD06", on("p4d.24xlarge", cpu="90", memory="1000Gi")),
    valid("POD06", on("p5.48xlarge", cpu="190", memory="1800Gi")),
    valid("POD06", on("x9.unheardof", cpu="9000")),
    valid("POD06", pool("p4d.24xlarge", "p5.48xlarge"), in_pool(cpu="180")),
    valid("POD06", asking(requests={"cpu": "9000"})),
    valid("POD06", pool("p4d.24xlarge"), ANY_TYPE, in_pool(cpu="180")),
    valid("POD06", pool("p4d.24xlarge"), wanting(ZONE, "us-east-1a", cpu="180")),
    valid("POD06", wanting(TYPE, "p4d.24xlarge", "p5.48xlarge", cpu="180")),
    valid("POD06", on("p4d.24xlarge", cpu="95690m"), edge=True),
    valid("POD06", on("p4d.24xlarge", memory="1082712Mi"), edge=True),
    invalid("POD06", on("p4d.24xlarge", cpu="95691m"), says="at most 95.69 cpu, what p4d.24xlarge leaves to pods", edge=True),
    invalid("POD06", on("p4d.24xlarge", memory="1082713Mi"), says="at most 1082712Mi memory", edge=True),
    invalid("POD06", on("p4d.24xlarge", cpu="96", memory="1100Gi"), says="asking 96 cpu"),
    invalid("POD06", on("p4d.24xlarge", cpu="8", memory="1100Gi"), says="asking 1100Gi memory"),
    invalid("POD06", asking({"cpu": "200"}, nodeSelector={TYPE: "p5.48xlarge"}), says="asking 200 cpu"),
    invalid("POD06", pool("p4d.24xlarge"), in_pool(cpu="180"), says="what p4d.24xlarge leaves"),
    invalid("POD06", wanting(TYPE, "p4d.24xlarge", cpu="180"), says="at most 95.69 cpu, what p4d.24xlarge leaves"),
    invalid("POD06", pool("p4d.24xlarge"), wanting("team.example/pool", "gpu", "cpu", cpu="180"), says="what p4d.24xlarge leaves"),
    invalid("POD06", pool("p4d.24xlarge"), wanting("karpenter.sh/nodepool", "p5", cpu="180"), says="what p4d.24xlarge leaves"),
    invalid("POD06", on("p4d.24xlarge", cpu="95"), agent("1"), says="at most 94.69 cpu"),
    invalid(
        "POD06", pool("p4d.24xlarge"), asking(requests={"cpu": "99"}, nodeSelector={"karpenter.sh/nodepool": "p5"}), says="asking 99 cpu"
    ),
    valid("POD04", asking({GPU: "8000m"}, {GPU: 8}), edge=True),
    invalid("POD04", asking({GPU: "8500m"}), says="is 8500m; allowed: a whole number", edge=True),
    invalid("POD04", slurm(resources={"limits": {GPU: 4}, "requests": {GPU: 8}}), says='slurmd.resources.requests["nvidia.com/gpu"] is 8'),
    invalid("POD05", no_huge_of("3Mi"), says="initContainers[0].resources.limits.hugepages-2Mi is 3Mi; allowed: a multiple"),
    valid("POD05", no_huge_of("4Mi"), edge=True),
    invalid(
        "POD05", asking({"memory": "1Gi"}, resources={"limits": {HUGE: "3Mi", "memory": "1Gi"}}), says="spec.resources.limits.hugepages"
    ),
    invalid("POD05", asking({EFA: 4}, resources={"limits": {HUGE: "11Gi", "memory": "64Gi"}}), says="asking 11264Mi of hugepages-2Mi"),
    invalid("POD05", volume("HugePages-1Gi", **{HUGE: "2Mi"}), says="medium is HugePages-1Gi; allowed: hugepages-1Gi among"),
    valid("POD05", volume("HugePages-1Gi", **{HUGE: "2Mi", "hugepages-1Gi": "1Gi"})),
    invalid("POD05", volume("HugePages", **{HUGE: "2Mi", "hugepages-1Gi": "1Gi"}), says="HugePages-1Gi or HugePages-2Mi"),
    valid(
        "POD05",
        asking(
            {"memory": "1Gi"},
            initContainers=[{"name": "i", "resources": {"limits": {HUGE: "2Mi", "memory": "1Gi"}}}],
            volumes=[{"name": "huge", "emptyDir": {"medium": "HugePages"}}],
        ),
    ),
    valid(
        "POD05",
        asking(
            {"memory": "1Gi"},
            resources={"limits": {HUGE: "2Mi", "memory": "1Gi"}},
            volumes=[{"name": "huge", "emptyDir": {"medium": "HugePages-2Mi"}}],
        ),
    ),
    valid("POD06", asking({GPU: 8}, nodeSelector={TYPE: "p5.48xlarge"}), edge=True),
    invalid("POD06", asking({GPU: 9}, nodeSelector={TYPE: "p5.48xlarge"}), says="asking 9 nvidia.com/gpu; allowed: at most 8", edge=True),
    # A plug-in that has pods share a GPU offers more than the node has.
    *(
        valid("POD06", sharing, asking({GPU: 16}, nodeSelector={TYPE: "p5.48xlarge"}), edge=True)
        for sharing in (
            Thing(type=tokens.CONFIG_MAP, name="plugin", properties={"data": {"any": "sharing:\n  timeSlicing:\n    resources: []"}}),
            Thing(
                type=tokens.RELEASE,
                name="plugin",
                properties=plugin({"config": {"map": {"default": "sharing:\n  mps:\n    resources: []"}}}),
            ),
            Thing(
                type=tokens.RELEASE, name="plugin", properties=plugin({"devicePlugin": {"config": {"data": {"any": "timeSlicing: {}"}}}})
            ),
        )
    ),
    invalid(
        "POD06",
        Thing(type=tokens.CONFIG_MAP, name="plugin", properties={"data": {"any": "sharing: {}"}}),
        asking({GPU: 16}, nodeSelector={TYPE: "p5.48xlarge"}),
        says="asking 16 nvidia.com/gpu",
    ),
    invalid(
        "POD06",
        Thing(type=tokens.RELEASE, name="plugin", properties=plugin({"config": {"map": {"default": "sharing: {timeSlicing: {}}"}}})),
        asking({EFA: 33}, nodeSelector={"team.example/pool": "gpu"}),
        pool("p5.48xlarge"),
        says="asking 33 vpc.amazonaws.com/efa",
    ),
    invalid("POD06", asking({GPU: 1}, nodeSelector={TYPE: "m7i.2xlarge"}), says="at most 0 nvidia.com/gpu, what m7i.2xlarge has"),
    invalid("POD06", asking({GPU: 1}, nodeSelector={TYPE: "trn1.32xlarge"}), says="at most 0 nvidia.com/gpu"),
    invalid("POD06", asking({"aws.amazon.com/neuron": 17}, nodeSelector={TYPE: "trn1.32xlarge"}), says="at most 16 aws.amazon.com/neuron,"),
    invalid("POD06", asking({"aws.amazon.com/neuroncore": 33}, nodeSelector={TYPE: "trn1.32xlarge"}), says="at most 32 aws.amazon.com"),
    valid("POD06", asking({"aws.amazon.com/neuroncore": 32}, nodeSelector={TYPE: "trn1.32xlarge"}), edge=True),
    invalid("POD06", pool("p4d.24xlarge"), asking({GPU: 16}, nodeSelector={"team.example/pool": "gpu"}), says="at most 8 nvidia.com/gpu"),
    valid("POD06", wanting(TYPE, "p4d.24xlarge", "x9.unheardof", cpu="180")),
    # A node group's labels choose its nodes as a pool's do.
    invalid("POD06", group("p4d.24xlarge"), in_pool(cpu="180"), says="at most 95.69 cpu, what p4d.24xlarge leaves"),
    invalid("POD06", group("p4d.24xlarge"), asking({GPU: 9}, nodeSelector=TEAM), says="at most 8 nvidia.com/gpu, what p4d.24xlarge has"),
    valid("POD06", group("p4d.24xlarge"), asking({GPU: 8}, nodeSelector=TEAM), edge=True),
    valid("POD06", group("p4d.24xlarge", "p5.48xlarge"), in_pool(cpu="180"), edge=True),
    valid("POD06", group("p4d.24xlarge"), replace(group("p5.48xlarge"), name="more"), in_pool(cpu="180")),
    valid("POD06", pool("p4d.24xlarge"), group("p5.48xlarge"), in_pool(cpu="180"), edge=True),
    valid("POD06", group("p4d.24xlarge", team="other"), in_pool(cpu="180")),
    valid("POD06", group("p4d.24xlarge"), OWN_NODES, in_pool(cpu="180"), edge=True),
    valid("POD06", OWN_NODES, in_pool(cpu="300")),
    valid("POD06", group(), in_pool(cpu="180")),
    # Such a label is given to whatever node has a GPU.
    valid("POD06", group("p4d.24xlarge", labels=FOUND), asking({GPU: 9}, nodeSelector=FOUND), edge=True),
    valid("POD06", limited(SIX)),
    invalid("POD06", limited({**SIX, **SIDECAR}), says="asking 96 cpu"),
    valid("POD06", limited({"resources": {"requests": {"cpu": "5690m"}}, **SIDECAR}), edge=True),
    invalid("POD06", limited({"resources": {"requests": {"cpu": "5691m"}}, **SIDECAR}), says="asking 95.69 cpu", edge=True),
    invalid("POD06", limited(SIX, pod_level={"requests": {"cpu": "100"}}), says="asking 100 cpu"),
    invalid("POD06", limited(SIX, overhead={"cpu": "8"}), says="asking 98 cpu"),
    valid("POD06", limited(SIX, pod_level={"limits": {"cpu": "100"}})),
    invalid("POD06", asking(nodeSelector={TYPE: "p4d.24xlarge"}, resources={"limits": {"cpu": "100"}}), says="asking 100 cpu"),
    invalid("POD06", pool("p4d.24xlarge"), guest(), daemon("1", **TOLERATED), says="at most 94.69 cpu"),
    invalid("POD06", pool("p4d.24xlarge"), guest(), daemon("1", **TOLERATED, **LINUX), says="at most 94.69 cpu"),
    valid("POD06", pool("p4d.24xlarge"), guest(), daemon("1")),
    valid("POD06", pool("p4d.24xlarge"), guest(), daemon("1", nodeSelector={TYPE: "m7i.2xlarge"}, **TOLERATED)),
    invalid(
        "POD06", pool("p4d.24xlarge"), guest(), daemon("1", nodeSelector={TYPE: "p4d.24xlarge"}, **TOLERATED), says="at most 94.69 cpu"
    ),
    valid("POD06", pool("p4d.24xlarge"), guest(), daemon("1", nodeSelector={"monitored": "yes"}, **TOLERATED)),
    valid("POD06", on("p4d.24xlarge", cpu="95"), daemon("1", nodeSelector={TYPE: "m7i.2xlarge"})),
    # An agent takes room where nothing keeps it from the node: no taint that it does not tolerate, nothing that it wants besides.
    *(
        invalid("POD06", pool("p4d.24xlarge"), guest(), daemon("1", **spec), says="at most 94.69 cpu, what p4d.24xlarge leaves to pods")
        for spec in (
            {"tolerations": [OF_GPU]},
            {"tolerations": [{"key": GPU, "effect": "NoSchedule", "operator": "Exists"}]},
            {**TOLERATED, "nodeSelector": {ZONE: "us-east-1a"}},
            {**TOLERATED, **wanted((ZONE, "In", ["us-east-1a", "us-east-1b"]))},
            {**TOLERATED, **wanted((ZONE, "Exists", []))},
            {**TOLERATED, **wanted((TYPE, "Exists", []), (LINUX_KEY, "In", ["linux"]))},
        )
    ),
    *(
        valid("POD06", pool("p4d.24xlarge"), guest(), daemon("1", **spec), edge=True)
        for spec in (
            {"tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoExecute"}]},
            {**TOLERATED, "nodeSelector": {ZONE: "us-east-1b"}},
            {**TOLERATED, **wanted((ZONE, "In", ["us-east-1b"]))},
            {**TOLERATED, **wanted((ZONE, "NotIn", ["us-east-1a"]))},
            {**TOLERATED, **wanted((TYPE, "In", ["p4d.24xlarge"]), ("monitored", "DoesNotExist", []))},
            {**TOLERATED, **wanted(("monitored", "Exists", []))},
            {**TOLERATED, **wanted(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["node-1"]}])},
        )
    ),
    # On nodes that the program does not make, it is sure to tolerate what the pod does by saying the same, or by tolerating all.
    *(
        invalid("POD06", tolerant(), daemon("1", tolerations=said), says="at most 94.69 cpu, what p4d.24xlarge leaves to pods")
        for said in ([OF_GPU], [{"key": "team", "operator": "Exists"}, OF_GPU], [{"operator": "Exists"}])
    ),
    *(
        valid("POD06", tolerant(), daemon("1", **spec), edge=True)
        for spec in (
            {},
            {"tolerations": [{"key": "team", "operator": "Exists"}]},
            {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]},
            {**TOLERATED, "nodeSelector": {ZONE: "us-east-1a"}},
        )
    ),
    invalid("POD06", pool("p4d.24xlarge"), either("gpu", "gpu", cpu="180"), says="what p4d.24xlarge leaves"),
    valid("POD06", pool("p4d.24xlarge"), either("gpu", "other", cpu="90")),
    valid("POD06", pool("p4d.24xlarge"), asking({EFA: 4}, nodeSelector={"team.example/pool": "gpu"}), edge=True),
    invalid("POD06", pool("p4d.24xlarge"), asking({EFA: 5}, nodeSelector={"team.example/pool": "gpu"}), says="at most 4 vpc", edge=True),
    # A gang and all that its pools may have.
    *(
        valid("POD06", bounded(gpu=32), thing, edge=True)
        for thing in (of_volcano(), of_mpi(), of_torch(), of_volcano({"team.example/pool": "gpu"}), in_two_steps())
    ),
    *(invalid("POD06", bounded(gpu=most), of_volcano(), says=f"minAvailable is 4, {TOO_MANY}.", edge=True) for most in (31, "24")),
    invalid("POD06", bounded(gpu=24), of_mpi(), says=f"spec.mpiReplicaSpecs.Worker.replicas is 4, {TOO_MANY}."),
    invalid("POD06", bounded(gpu=24), of_torch(), says=f"spec.pytorchReplicaSpecs.Worker.replicas is 3, {TOO_MANY}."),
    invalid("POD06", bounded(nodes=3), of_volcano(), says=f"minAvailable is 4, {TOO_MANY}.", edge=True),
    valid("POD06", bounded(nodes=4), of_volcano(), edge=True),
    valid("POD06", bounded("p5", "x9.unheardof", nodes=1), of_volcano()),
    invalid(
        "POD06", bounded(gpu=64, cpu="719"), of_mpi(), says="ask for 720 cpu; allowed: at most 719 cpu, all that p5 may have", edge=True
    ),
    valid("POD06", bounded(gpu=64, cpu="720", memory="1Gi"), of_mpi(), edge=True),
    # Nodes of several sizes fill a limit to the last GPU.
    invalid(
        "POD06", bounded("p5", "p5.48xlarge", "g5.12xlarge", gpu=31), of_volcano(), says="at most 31 nvidia.com/gpu, all that p5", edge=True
    ),
    invalid("POD06", bounded("p5", "p5.48xlarge", "g5.12xlarge", nodes=3), of_volcano(), says="at most 24 nvidia.com/gpu", edge=True),
    # A job that needs fewer than all of its pods, and one that needs more.
    valid("POD06", bounded(gpu=24), of_volcano(**{"spec/minAvailable": 3}), edge=True),
    invalid("POD06", bounded(gpu=24), of_volcano(**{"spec/minAvailable": b.DELETE}), says=f"minAvailable is unset, {TOO_MANY}."),
    valid("POD06", bounded(gpu=24), of_torch(**ELASTIC), edge=True),
    invalid(
        "POD06", bounded(gpu=16), of_torch(**ELASTIC), says="minReplicas is 3, with pods that together ask for 24 nvidia.com/gpu", edge=True
    ),
    valid("POD06", bounded(gpu=16), in_two_steps(), edge=True),
    # Pods that may go elsewhere, or one after another.
    invalid("POD06", bounded(gpu=24), of_volcano({"team.example/pool": "gpu"}), says=f"minAvailable is 4, {PERHAPS}.", edge=True),
    invalid("POD06", bounded(gpu=24), of_volcano(**{"spec/schedulerName": "default-scheduler"}), says=PERHAPS),
    invalid("POD06", bounded(gpu=24), of_mpi(**{"spec/launcherCreationPolicy": b.DELETE}), says=PERHAPS),
    invalid("POD06", bounded(gpu=24), of_torch(**{f"{b.TORCH_MASTER_CONTAINER}/command": ["python3", "serve.py"]}), says=PERHAPS),
    invalid("POD06", bounded(gpu=0), of_volcano(), says="at most 0 nvidia.com/gpu, all that p5 may have by its limits, unless", edge=True),
    *(
        valid("POD06", *things)
        for things in (
            (bounded(gpu=24), of_volcano({"team.example/pool": "gpu"}), group("p5.48xlarge")),
            (bounded(gpu=24), of_volcano({TYPE: "p5.48xlarge"})),
            (bounded("other", gpu=24), of_volcano()),
            (bounded(), of_volcano()),
            (bounded(**{"aws.amazon.com/neuron": 16}), of_volcano()),
            (bounded(gpu=24), of_volcano(**{"spec/tasks/0/template/metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team"}}})),
            (bounded(gpu=24), of_mpi(**{"spec/runPolicy/managedBy": "kueue.x-k8s.io/multikueue"})),
            (bounded(gpu=24), of_volcano(**{"spec/tasks": []})),
        )
    ),
    # Pods that any of two pools takes.
    valid("POD06", bounded(gpu=16), bounded("spare", gpu=16), of_volcano(**EITHER), edge=True),
    invalid(
        "POD06", bounded(gpu=16), bounded("spare", gpu=8), of_volcano(**EITHER), says="at most 24 nvidia.com/gpu, all that p5 and spare may"
    ),
    valid("POD06", bounded(gpu=16), of_volcano(**EITHER)),
    valid("POD06", bounded(gpu=16), bounded("spare"), of_volcano(**EITHER)),
)

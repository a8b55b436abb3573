"""Custom resources against their definitions."""

from guardrails import tokens
from guardrails.template import GPU, NEURON, NEURON_CORE
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.ray import cluster

REQUIREMENT = "spec/template/spec/requirements/0"
CLASS = "spec/template/spec/nodeClassRef"
QUEUE = "kubernetes:scheduling.volcano.sh/v1beta1:Queue"


def queue(**spec: object) -> Thing:
    return Thing(type=QUEUE, name="queue", properties={"metadata": {"name": "queue"}, "spec": spec})


def trainer(spec: object, kind: str = "training.example/v1:TrainingRun") -> Thing:
    """An object of a kind that no rule knows."""
    return Thing(type=f"kubernetes:{kind}", name="tuning", properties={"metadata": {"name": "tuning"}, "spec": spec})


def fault_tolerant(**options: object) -> Thing:
    return cluster({"gcsFaultToleranceOptions": options})


def rocks_db() -> Thing:
    """A cluster as KubeRay 1.7 takes it."""
    return fault_tolerant(backend="rocksdb")


def asking(**limits: object) -> dict[str, object]:
    return {"replicaSpecs": [{"name": "pods", "template": {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}}]}


def deepest(levels: int) -> Thing:
    spec: dict[str, object] = {"resources": {"limits": {GPU: 1}}}
    for _ in range(levels):
        spec = {"template": spec}
    return trainer(spec)


CASES = (
    invalid("KUB01", b.node_pool({"metadata/name": "a" * 254}), says="at most 253 lower-case letters", edge=True),
    valid("KUB01", b.node_pool({"apiVersion": "karpenter.sh/v1", "kind": "NodePool"})),
    valid("KUB01", b.node_pool({"metadata/name": "a" * 253}), edge=True),
    valid("KUB01", b.node_pool()),
    valid("KUB01", b.mpi_job()),
    valid("KUB01", b.volcano_job()),
    valid("KUB01", queue(weight=1, capability={"cpu": "4", "nvidia.com/gpu": 8})),
    valid("KUB01", b.node_pool({"metadata/labels": {"team": "a_b.c-1"}, "spec/weight": None})),
    valid("KUB01", b.node_pool({"spec/weight": 100}), edge=True),
    valid("KUB01", b.node_pool({"metadata/labels": {"team": "a" * 63}}), edge=True),
    valid("KUB01", b.node_pool({f"{REQUIREMENT}/minValues": 50}), edge=True),
    invalid("KUB01", b.node_pool({"spec/weight": 101}), says="spec.weight is 101; allowed: at most 100", edge=True),
    invalid("KUB01", b.node_pool({"metadata/labels": {"team": "a" * 64}}), says="at most 63", edge=True),
    invalid("KUB01", b.node_pool({f"{REQUIREMENT}/minValues": 51}), says="at most 50", edge=True),
    invalid("KUB01", b.node_pool({f"{REQUIREMENT}/minValues": 0}), says="at least 1", edge=True),
    invalid("KUB01", b.node_pool({f"{REQUIREMENT}/operator": "in"}), says="operator is in; allowed: one of Gte, Lte, In"),
    invalid("KUB01", b.node_pool({f"{REQUIREMENT}/operator": b.DELETE}), says="requirements[0].operator is unset; allowed: set."),
    # Beside keys of a later definition a required field may be one no more, but not one that is misspelt or of old.
    invalid("KUB01", rocks_db(), says="redisAddress is unset; allowed: set, where the operator is no newer than KubeRay 1.5.1"),
    invalid("KUB01", fault_tolerant(redisAdress="redis:6379"), says="redisAddress is unset; allowed: set.", edge=True),
    invalid("KUB01", fault_tolerant(), says="redisAddress is unset; allowed: set.", edge=True),
    invalid("KUB01", b.node_pool({REQUIREMENT: {"key": "pool", "op": "Exists"}}), says="operator is unset; allowed: set.", edge=True),
    invalid(
        "KUB01", b.node_pool({CLASS: {"kind": "EC2NodeClass", "name": "p5", "apiVersion": "v1"}}), says="group is unset; allowed: set."
    ),
    invalid("KUB01", b.node_pool({CLASS: {"kind": "EC2NodeClass", "name": "p5", "selector": "p5"}}), says="no newer than Karpenter 1.14.0"),
    invalid("KUB01", b.node_pool({"spec/disruption/budgets": [{"nodes": 1}]}), says="budgets[0].nodes is 1 (integer); allowed: a string"),
    invalid("KUB01", b.node_pool({"spec/template/spec/taints/0/effect": "NoSchedul"}), says="effect is NoSchedul"),
    invalid("KUB01", b.node_pool({"spec/template/spec/expireAfter": "soon"}), says="text of the form"),
    invalid("KUB01", b.node_pool({"spec/limits": {"cpu": True}}), says="limits.cpu is true (boolean)"),
    invalid("KUB01", b.node_pool({"spec/template/spec/expireafter": "Never"}), says="expireafter is Never; allowed: one of expireAfter"),
    invalid("KUB01", b.node_pool({"metadata/name": "P5"}), says="metadata.name is P5"),
    invalid("KUB01", b.node_pool({"metadata/labels": {"team": 3}}), says="metadata.labels.team is 3"),
    invalid("KUB01", b.mpi_job({"spec/slotsPerWorker": "8"}), says="slotsPerWorker is 8 (string); allowed: an integer"),
    invalid("KUB01", b.volcano_job({"spec/tasks/0/replicas": 1.5}), says="replicas is 1.5 (number); allowed: an integer"),
    invalid("KUB01", queue(weight=2**31), says="a whole number that int32 holds", edge=True),
    invalid("KUB01", b.node_pool({"spec/template/spec/taints": [{"key": UNKNOWN}]}), says="taints[0].effect is unset"),
    invalid("KUB01", Thing(type=tokens.NODE_CLASS, properties={"spec": {"amiSelectorTerms": []}}), says="amiSelectorTerms is []"),
    valid("KUB03", trainer(asking(cpu="4", memory="8Gi"))),
    valid("KUB03", trainer({"image": UNKNOWN, "tags": [UNKNOWN]})),
    valid(
        "KUB03",
        trainer({"flavors": [{"resources": [{"name": GPU, "nominalQuota": 8}]}]}, "kueue.x-k8s.io/v1beta1:ClusterQueue"),
    ),
    valid("KUB03", trainer({"resources": {"limits": {GPU: 8}}}, "helm.sh/v4:Chart")),
    valid("KUB03", queue(capability={GPU: 8})),
    valid("KUB03", b.node_pool({"spec/limits": {GPU: 8}})),
    valid("KUB03", b.mpi_job()),
    valid("KUB03", trainer(asking(**{GPU: 8}), "kubeflow.org/v1:MPIJob")),
    valid("KUB03", trainer(asking(**{GPU: 8}), "batch.volcano.sh/v1beta1:Job")),
    valid("KUB01", trainer(asking(**{GPU: 8}), "batch.volcano.sh/v1alpha1:Command")),
    invalid(
        "KUB01",
        trainer(asking(**{GPU: 8}), "batch.volcano.sh/v1beta1:Job"),
        says="is batch.volcano.sh/v1beta1; allowed: batch.volcano.sh/v1alpha1",
    ),
    invalid("KUB01", trainer({}, "batch.volcano.sh/v1:CronJob"), says="the only version of CronJob that Volcano 1.14.1 serves", edge=True),
    valid("MPI01", trainer(asking(**{GPU: 8}), "kubeflow.org/v2:TrainJob"), edge=True),
    invalid("MPI01", trainer(asking(**{GPU: 8}), "kubeflow.org/v2:MPIJob"), says="kubeflow.org/v2; allowed: kubeflow.org/v2beta1"),
    invalid("MPI01", trainer({}, "kubeflow.org/v2beta2:MPIJob"), says="kubeflow.org/v2beta2; allowed", edge=True),
    valid("KUB03", b.pytorch_job()),
    valid("KUB03", trainer({"limits": {GPU: 8}, "quota": {"requests": {GPU: 8}}})),
    valid("KUB03", trainer(asking(**{GPU: 8}), "apps/v1:Deployment")),
    valid("KUB03", Thing(type=tokens.VOLCANO_CRON_JOB, properties={"spec": {"jobTemplate": {"spec": b.volcano_job().properties["spec"]}}})),
    valid("KUB03", deepest(39), edge=True),
    invalid("KUB03", deepest(38), says="resources.limits is asking nvidia.com/gpu", edge=True),
    invalid(
        "KUB03",
        trainer(asking(**{GPU: 8, "vpc.amazonaws.com/efa": 4})),
        says="limits is asking nvidia.com/gpu, vpc.amazonaws.com/efa",
    ),
    invalid(
        "KUB03",
        trainer({"trainer": {"resourcesPerNode": {"requests": {GPU: 8}}}}, "trainer.kubeflow.org/v1alpha1:TrainJob"),
        says="spec.trainer.resourcesPerNode.requests is asking nvidia.com/gpu",
    ),
    invalid(
        "KUB03",
        trainer({"jobTemplate": asking(**{NEURON: UNKNOWN})}, "ray.example/v1:Nightly"),
        says="aws.amazon.com/neuron",
    ),
    invalid("KUB03", trainer(asking(**{"vpc.amazonaws.com/efa": 1})), says="asking vpc.amazonaws.com/efa", edge=True),
    invalid("KUB03", trainer([{"resources": {"requests": {NEURON_CORE: 2}}}]), says="spec[0].resources.requests is asking"),
)

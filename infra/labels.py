"""Every label, taint, toleration, annotation, tag and extended-resource key of the platform, each with its meaning.

Node pools, device plug-ins, CSI nodes and pod templates all take their keys from here, so that a taint set on a node cannot lock out
an agent that has to run there.
"""

from collections.abc import Iterable

DOMAIN = "trainyard.dev"

# --- Labels of nodes -------------------------------------------------------------------------------------------------------------
POOL = f"{DOMAIN}/pool"  # name of the node pool or node group a node belongs to; jobs select their pool by it
ACCELERATOR = f"{DOMAIN}/accelerator"  # kind of accelerator on the node: nvidia, neuron or none
EFA = f"{DOMAIN}/efa"  # "true" where the node's pool attaches EFA interfaces
GPU_PRESENT = "nvidia.com/gpu.present"  # "true" on nodes with NVIDIA devices; the device plug-in's own node affinity asks for it
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"  # the only key by which a zone is ever pinned
REGION = "topology.kubernetes.io/region"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
KARPENTER_NODE_POOL = "karpenter.sh/nodepool"

# --- Labels of objects -----------------------------------------------------------------------------------------------------------
APP_NAME = "app.kubernetes.io/name"
APP_INSTANCE = "app.kubernetes.io/instance"
APP_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "trainyard"  # value of APP_MANAGED_BY on every object of ours
JOB_NAME = f"{DOMAIN}/job"  # name of the training job a pod works for
JOB_KIND = f"{DOMAIN}/job-kind"  # kind of that job: mpi, volcano, ...
JOB_ROLE = f"{DOMAIN}/job-role"  # what the pod is in its job: launcher or worker
POD_SECURITY_ENFORCE = "pod-security.kubernetes.io/enforce"

# --- Annotations -----------------------------------------------------------------------------------------------------------------
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"  # "true": Karpenter does not take this pod's node away of its own accord
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"  # "false": the same promise asked of the cluster autoscaler
PULUMI_WAIT_FOR = "pulumi.com/waitFor"  # what the Kubernetes provider waits for after making or changing an object
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"  # queue of a pod group made for plain pods

# --- Extended resources ----------------------------------------------------------------------------------------------------------
GPU_RESOURCE = "nvidia.com/gpu"
NEURON_RESOURCE = "aws.amazon.com/neuron"
EFA_RESOURCE = "vpc.amazonaws.com/efa"

# --- Taints ----------------------------------------------------------------------------------------------------------------------
TRAINING_TAINT = f"{DOMAIN}/training"  # on every node of a training pool: nothing but training jobs and agents may run there
GPU_TAINT = GPU_RESOURCE  # the customary taint of GPU nodes, which charts of agents tolerate by default
NEURON_TAINT = NEURON_RESOURCE

# --- AWS tags --------------------------------------------------------------------------------------------------------------------
TAG_STACK = "trainyard:stack"  # the Pulumi stack a resource belongs to: what is left over after a destroy is found by it
TAG_COMPONENT = "trainyard:component"
TAG_POOL = "trainyard:pool"
TAG_ROLE = "trainyard:role"  # what a file system or bucket is for: checkpoints, home, shared

# --- Names other parts must use --------------------------------------------------------------------------------------------------
VOLCANO_SCHEDULER = "volcano"  # spec.schedulerName of pods that Volcano places


Taint = dict[str, str]
"""A node taint: key, value, effect."""

Toleration = dict[str, str]
"""A toleration of every value of one taint key: key, operator, effect."""

_ACCELERATOR_TAINTS = {"nvidia": GPU_TAINT, "neuron": NEURON_TAINT}
_TAINT_VALUES = {TRAINING_TAINT: "true", GPU_TAINT: "present", NEURON_TAINT: "present"}
TAINT_EFFECT = "NoSchedule"


def taint_keys(accelerator: str | None) -> list[str]:
    """Return the taint keys of a training pool whose nodes carry `accelerator` ("nvidia", "neuron" or None)."""
    keys = [TRAINING_TAINT]
    if accelerator in _ACCELERATOR_TAINTS:
        keys.append(_ACCELERATOR_TAINTS[accelerator])
    return keys


def pool_taints(accelerator: str | None) -> list[Taint]:
    """Return the taints of a training pool whose nodes carry `accelerator`."""
    return [{"key": key, "value": _TAINT_VALUES[key], "effect": TAINT_EFFECT} for key in taint_keys(accelerator)]


def tolerations(keys: Iterable[str]) -> list[Toleration]:
    """Return tolerations of any value of the taints with these keys."""
    return [{"key": key, "operator": "Exists", "effect": TAINT_EFFECT} for key in keys]


def pool_tolerations(accelerator: str | None) -> list[Toleration]:
    """Return what a training pod needs to run on a pool whose nodes carry `accelerator`."""
    return tolerations(taint_keys(accelerator))


def agent_tolerations() -> list[Toleration]:
    """Return what an agent (device plug-in, CSI node) needs to run on every node of every pool."""
    return tolerations(_TAINT_VALUES)


def pool_selector(pool: str) -> dict[str, str]:
    """Return the node labels by which a pod selects the pool called `pool`."""
    return {POOL: pool}


def object_labels(name: str) -> dict[str, str]:
    """Return the labels of an object of ours called `name`."""
    return {APP_NAME: name, APP_MANAGED_BY: MANAGED_BY}

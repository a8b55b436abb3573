"""A valid job of each kind on a valid platform; tests change one thing of it."""

from typing import Any

from infra import labels
from infra.outputs import PoolOutput
from workloads.job import Rendered, render
from workloads.kinds import KINDS
from workloads.place import Platform
from workloads.plan import JobPlan, plan_job
from workloads.spec import JobSpec

IMAGE = "registry.example/trainer@sha256:0000"
NAMESPACE = "training"


def pool(
    name: str, instance_type: str, *, accelerator: str | None, efa: bool, max_nodes: int | None = None, grace: int | None = 3600
) -> PoolOutput:
    taints = tuple({**taint} for taint in labels.pool_taints(accelerator)) if accelerator else ()
    return PoolOutput(
        name=name,
        instance_type=instance_type,
        zone="us-east-1a",
        capacity_type="on-demand",
        efa=efa,
        labels={labels.POOL: name},
        taints=taints,
        max_nodes=max_nodes,
        termination_grace_seconds=grace,
    )


def platform() -> Platform:
    pools = [
        pool("system", "m7i.2xlarge", accelerator=None, efa=False, grace=None),
        pool("p5", "p5.48xlarge", accelerator="nvidia", efa=True, max_nodes=8),
        pool("p5-tcp", "p5.48xlarge", accelerator="nvidia", efa=False, grace=1800),
        pool("trn", "trn1.32xlarge", accelerator="neuron", efa=True),
        pool("g6", "g6.12xlarge", accelerator="nvidia", efa=True),
    ]
    return Platform(
        namespace=NAMESPACE,
        service_account="trainer",
        queue="training",
        pools={each.name: each for each in pools},
        claims={"checkpoints": "checkpoints-lustre", "home": "home-efs"},
    )


def gpu_job(kind: str, **changes: Any) -> dict[str, Any]:
    """4 workers x 8 GPUs, as its author would write it (camelCase)."""
    job = {
        "name": "pretrain",
        "kind": kind,
        "pool": "p5",
        "numWorkers": 4,
        "mounts": [{"claim": "checkpoints", "path": "/checkpoints"}],
        "train": {"steps": 100, "batch": {"micro": 2, "global_batch": 128}, "checkpoint": {"directory": "/checkpoints"}},
    }
    return {key: value for key, value in (job | changes).items() if value is not None}


def cpu_job(kind: str, **changes: Any) -> dict[str, Any]:
    """2 workers x 1 process on CPUs."""
    cpu = {"pool": "system", "numWorkers": 2, "processesPerWorker": 1, "cpu": "500m", "memory": "2Gi"}
    train = {"steps": 100, "batch": {"micro": 2}, "checkpoint": {"directory": "/checkpoints"}}
    return gpu_job(kind, **({**cpu, "train": train} | changes))


def plan(values: dict[str, Any], known: Platform | None = None) -> JobPlan:
    return plan_job(JobSpec.parse(values, "job"), known or platform(), image=IMAGE)


def rendered(values: dict[str, Any]) -> Rendered:
    known = plan(values)
    return render(known, KINDS[known.spec.kind].manifest)


def pod_templates(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every pod template of a job, by role."""
    spec = rendered(values).spec
    if "tasks" in spec:
        return {task["name"]: task["template"] for task in spec["tasks"]}
    return {role.lower(): replica["template"] for role, replica in spec["mpiReplicaSpecs"].items()}


def worker(values: dict[str, Any]) -> dict[str, Any]:
    """The worker's container."""
    return pod_templates(values)["worker"]["spec"]["containers"][0]


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container.get("env", [])}


def option(command: list[str], name: str) -> str:
    """Value of an option written `name value` or `name=value`."""
    for index, word in enumerate(command):
        if word == name:
            return command[index + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    raise AssertionError(f"{name} is not in {command}")

"""A gang of pods with 8 GPUs each, made by the jobs project's own builder, and simulated nodes for it."""

from typing import Any

from infra import catalogue, labels
from infra.outputs import PoolOutput
from local.node.api import KubernetesApi
from local.node.fake_nodes import add_fake_nodes, remove_fake_nodes
from workloads.job import Rendered, render
from workloads.place import Platform
from workloads.plan import plan_job
from workloads.spec import JobSpec
from workloads.volcano_job import VolcanoJob

TYPE = "p5.48xlarge"
# A pool that Karpenter does not know, so that it makes no node for the gang.
POOL = "fixed"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/training/jobs"
PODS = "/api/v1/namespaces/training/pods"
NODE_LABELS = {labels.POOL: POOL}
WORKERS = 4


def add_nodes(api: KubernetesApi, count: int) -> None:
    node = catalogue.require(TYPE)
    assert node.accelerator is not None
    capacity = {
        "cpu": node.vcpus,
        "memory": f"{node.memory_mib}Mi",
        "pods": node.max_pods,
        labels.GPU_RESOURCE: node.accelerator.count,
        labels.EFA_RESOURCE: node.efa_max,
    }
    add_fake_nodes(api, TYPE, count, labels=NODE_LABELS, taints=labels.pool_taints("nvidia"), capacity=capacity)


def gang() -> Rendered:
    pool = PoolOutput(
        name=POOL,
        instance_type=TYPE,
        zone=None,
        capacity_type="on-demand",
        efa=True,
        labels=NODE_LABELS,
        taints=tuple(labels.pool_taints("nvidia")),
        max_nodes=None,
    )
    platform = Platform(
        namespace="training", service_account="default", queue="training", pools={POOL: pool}, claims={"checkpoints": "checkpoints"}
    )
    train = {"steps": 10, "schedule": {"warmup_steps": 1}, "checkpoint": {"directory": "/checkpoints"}}
    written = {
        "name": "gang",
        "kind": "volcano",
        "pool": POOL,
        "numWorkers": WORKERS,
        "mounts": [{"claim": "checkpoints", "path": "/checkpoints"}],
        "train": train,
    }
    return render(plan_job(JobSpec.parse(written, "job"), platform, image="trainyard.local/x:1"), VolcanoJob.manifest)


def submit(api: KubernetesApi, job: Rendered) -> None:
    manifest = VolcanoJob.manifest
    metadata = {"name": job.name, "labels": dict(job.labels)}
    api.create(
        "/api/v1/namespaces/training/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(job.data)}
    )
    api.create(JOBS, {"apiVersion": manifest.api_version, "kind": manifest.object_kind, "metadata": metadata, "spec": dict(job.spec)})


def remove(api: KubernetesApi, job: Rendered) -> None:
    """Delete the job with its configuration, and the nodes it ran on."""
    api.delete(f"{JOBS}/{job.name}")
    api.delete(f"/api/v1/namespaces/training/configmaps/{job.name}")
    remove_fake_nodes(api, TYPE)


def pods_of(api: KubernetesApi, job: Rendered) -> list[dict[str, Any]]:
    return api.get(f"{PODS}?labelSelector=volcano.sh/job-name%3D{job.name}")["items"]


def placed(pods: list[dict[str, Any]]) -> int:
    return sum(1 for pod in pods if pod["spec"].get("nodeName"))

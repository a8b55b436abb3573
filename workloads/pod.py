"""Pod templates of every kind of job: where pods run, what they carry, and that nothing takes them away in the middle of a step."""

from collections.abc import Mapping, Sequence
from typing import Any

from infra import labels
from workloads import contract
from workloads.place import Place
from workloads.plan import JobPlan

Json = dict[str, Any]


def worker_template(plan: JobPlan, *, config_map: str, command: Sequence[str], env: Mapping[str, str], **container: Any) -> Json:
    """Return the pod template of a worker; `container` adds fields to its container."""
    mounts = [
        {"name": "config", "mountPath": str(contract.CONFIG_DIRECTORY), "readOnly": True},
        {"name": "shared-memory", "mountPath": str(contract.SHARED_MEMORY)},
    ]
    volumes: list[Json] = [config_volume(config_map), _shared_memory(plan)]
    for index, mount in enumerate(plan.spec.mounts):
        claim = plan.platform.claim(mount.claim, f"mounts[{index}].claim")
        volumes.append({"name": f"claim-{index}", "persistentVolumeClaim": {"claimName": claim, "readOnly": mount.read_only}})
        mounts.append({"name": f"claim-{index}", "mountPath": mount.path, "readOnly": mount.read_only})
    body = {
        "name": "worker",
        "image": plan.image,
        "command": list(command),
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": plan.resources.requirements(),
        "volumeMounts": mounts,
        "securityContext": container_security(),
        **container,
    }
    return template(plan, role="worker", place=plan.place, containers=[body], volumes=volumes)


def template(plan: JobPlan, *, role: str, place: Place, containers: list[Json], volumes: list[Json], **pod: Any) -> Json:
    """Return a pod template of a job. All pods of all kinds go through here, so that none lacks the protection from disruption."""
    return {
        "metadata": {
            "labels": job_labels(plan) | {labels.JOB_ROLE: role},
            "annotations": {labels.DO_NOT_DISRUPT: "true", labels.SAFE_TO_EVICT: "false"},
        },
        "spec": {
            "schedulerName": labels.VOLCANO_SCHEDULER,
            "nodeSelector": dict(place.selector),
            "tolerations": [dict(toleration) for toleration in place.tolerations],
            "serviceAccountName": plan.platform.service_account,
            # Ranks call no Kubernetes API; AWS credentials come by a token of their own.
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": plan.spec.termination_grace_seconds,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": contract.USER_ID,
                "runAsGroup": contract.USER_ID,
                "fsGroup": contract.USER_ID,
                # Else the kubelet would walk through every checkpoint on the volume at each start.
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": containers,
            "volumes": volumes,
            **pod,
        },
    }


def job_labels(plan: JobPlan) -> dict[str, str]:
    """Return the labels of everything that belongs to a job."""
    return labels.object_labels(plan.spec.name) | {labels.JOB_NAME: plan.spec.name, labels.JOB_KIND: plan.spec.kind}


def config_volume(config_map: str) -> Json:
    """Return the volume of a job's ConfigMap."""
    return {"name": "config", "configMap": {"name": config_map}}


def container_security() -> Json:
    """Return what a container of a job may do: nothing beyond its user's rights."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _shared_memory(plan: JobPlan) -> Json:
    """Without it, /dev/shm has 64 MiB, and data loaders and NCCL die of a bus error."""
    return {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": f"{plan.resources.shared_mib}Mi"}}

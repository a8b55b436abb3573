"""Job of Volcano: one agent in each pod, all of them placed together or not at all."""

from typing import Any

from infra import labels
from training.exit_codes import ExitCode
from workloads import contract
from workloads.environment import rank_environment
from workloads.job import Manifest, TrainingJob
from workloads.launch import agent_command
from workloads.plan import JobPlan
from workloads.pod import worker_template

TASK = "worker"
# Set in every pod by Volcano's env plug-in: the pod's index in its task.
_TASK_INDEX = "$(VC_TASK_INDEX)"


def volcano_spec(plan: JobPlan, name: str, config_map: str) -> dict[str, Any]:
    """Return the spec of the Volcano Job called `name`."""
    return {
        "schedulerName": labels.VOLCANO_SCHEDULER,
        "queue": plan.queue,
        "minAvailable": plan.world.workers,
        # Volcano gives a job up when it has restarted it this often, so the last one counted here is never made.
        "maxRetry": plan.spec.max_restarts + 1,
        "plugins": {
            "env": [],
            # Ranks look for rank 0's name while its pod is still starting.
            "svc": ["--publish-not-ready-addresses=true"],
        },
        "policies": restart_policies(),
        "tasks": [
            {
                "name": TASK,
                "replicas": plan.world.workers,
                "minAvailable": plan.world.workers,
                # Volcano's webhook writes a default where this is missing; a field that we did not send makes each later preview of the
                # unchanged job look like a change, which the webhook then refuses.
                "maxRetry": plan.spec.max_restarts + 1,
                "template": _worker(plan, name, config_map),
            }
        ],
    }


def restart_policies() -> list[dict[str, Any]]:
    """Return what Volcano does when a pod ends badly; of several that fit, it takes the first.

    A refused configuration is refused again, so it ends the job. Anything else, evictions and lost nodes among it, restarts all pods
    together: they resume from the newest checkpoint.
    """
    return [
        {"exitCode": int(ExitCode.CONFIG), "action": "TerminateJob"},
        {"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"},
    ]


def _worker(plan: JobPlan, name: str, config_map: str) -> dict[str, Any]:
    body = worker_template(
        plan,
        config_map=config_map,
        command=agent_command(plan, name, node_rank=_TASK_INDEX),
        env=rank_environment(plan),
        ports=[
            {"name": "rendezvous", "containerPort": contract.MASTER_PORT},
            {"name": "control", "containerPort": contract.CONTROL_PORT},
        ],
    )
    # A container that started again by itself would find the other pods' ranks gone.
    body["spec"]["restartPolicy"] = "Never"
    if plan.spec.deadline_seconds is not None:
        body["spec"]["activeDeadlineSeconds"] = plan.spec.deadline_seconds
    return body


class VolcanoJob(TrainingJob):
    """A training job under Volcano's own controller."""

    manifest = Manifest(
        api_version="batch.volcano.sh/v1alpha1",
        object_kind="Job",
        scripts=(),
        spec=volcano_spec,
    )

"""MPIJob of the MPI Operator: workers run sshd, a launcher without accelerators starts the ranks in them with one mpirun."""

from typing import Any

from workloads import contract
from workloads.environment import rank_environment
from workloads.job import Manifest, TrainingJob
from workloads.launch import mpirun_command, worker_host
from workloads.plan import JobPlan
from workloads.pod import config_volume, container_security, template, worker_template

# mpirun, and one ssh client for each worker.
_LAUNCHER_CPU = "100m"
_LAUNCHER_BASE_MIB = 256
_LAUNCHER_MIB_PER_WORKER = 8
# A lost node takes the autoscaler minutes to replace, and its image minutes to load.
_WAIT_SECONDS = 1800


def mpi_spec(plan: JobPlan, name: str, config_map: str) -> dict[str, Any]:
    """Return the spec of the MPIJob called `name`."""
    return {
        "mpiImplementation": "OpenMPI",
        "slotsPerWorker": plan.world.processes,
        "sshAuthMountPath": str(contract.SSH_DIRECTORY),
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runLauncherAsWorker": False,
        "runPolicy": _run_policy(plan),
        "mpiReplicaSpecs": {
            # A new pod for every try: its log stays.
            "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": _launcher(plan, name, config_map)},
            "Worker": {"replicas": plan.world.workers, "restartPolicy": "OnFailure", "template": _worker(plan, name, config_map)},
        },
    }


def _run_policy(plan: JobPlan) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "cleanPodPolicy": "Running",
        "backoffLimit": plan.spec.max_restarts,
        # The launcher is made when the workers are ready, so the gang is the workers: counting the launcher, the operator's default,
        # would make each wait for the other.
        "schedulingPolicy": {"minAvailable": plan.world.workers, "queue": plan.queue},
    }
    if plan.spec.deadline_seconds is not None:
        policy["activeDeadlineSeconds"] = plan.spec.deadline_seconds
    return policy


def _environment(plan: JobPlan, name: str) -> dict[str, str]:
    address = {"MASTER_ADDR": worker_host(name, plan.platform.namespace, 0), "MASTER_PORT": str(contract.MASTER_PORT)}
    return address | rank_environment(plan)


def _worker(plan: JobPlan, name: str, config_map: str) -> dict[str, Any]:
    drain = [contract.PYTHON, contract.script_path(contract.DRAIN_SCRIPT), str(plan.drain_seconds)]
    return worker_template(
        plan,
        config_map=config_map,
        command=contract.SSH_SERVER,
        # Ranks get theirs from mpirun; here it tells what the pod is for.
        env=_environment(plan, name),
        ports=[{"name": "ssh", "containerPort": contract.SSH_PORT}],
        # Ready means that sshd listens; once it does it is not asked again, as every question makes a line in its log.
        startupProbe={"tcpSocket": {"port": contract.SSH_PORT}, "periodSeconds": 1, "failureThreshold": 120},
        lifecycle={"preStop": {"exec": {"command": drain}}},
    )


def _launcher(plan: JobPlan, name: str, config_map: str) -> dict[str, Any]:
    assert plan.launcher_place is not None, "an MPI job is planned with a place for its launcher"
    memory = f"{_LAUNCHER_BASE_MIB + _LAUNCHER_MIB_PER_WORKER * plan.world.workers}Mi"
    common = {
        "image": plan.image,
        "resources": {"requests": {"cpu": _LAUNCHER_CPU, "memory": memory}, "limits": {"memory": memory}},
        "volumeMounts": [{"name": "config", "mountPath": str(contract.CONFIG_DIRECTORY), "readOnly": True}],
        "securityContext": container_security(),
    }
    pattern = worker_host(name, plan.platform.namespace, "{}")
    wait = [contract.script_path(contract.WAIT_SCRIPT), pattern, str(plan.world.workers), str(contract.SSH_PORT), str(_WAIT_SECONDS)]
    stop = [contract.PYTHON, contract.script_path(contract.STOP_SCRIPT), str(plan.drain_seconds)]
    return template(
        plan,
        role="launcher",
        place=plan.launcher_place,
        initContainers=[{"name": "wait-for-workers", "command": [contract.PYTHON, *wait], **common}],
        containers=[
            {
                "name": "launcher",
                "command": mpirun_command(plan, _environment(plan, name)),
                "lifecycle": {"preStop": {"exec": {"command": stop}}},
                **common,
            }
        ],
        volumes=[config_volume(config_map)],
    )


class MpiJob(TrainingJob):
    """A training job under the MPI Operator, its workers placed as one gang by Volcano."""

    manifest = Manifest(
        api_version="kubeflow.org/v2beta1",
        object_kind="MPIJob",
        scripts=(contract.DRAIN_SCRIPT, contract.STOP_SCRIPT, contract.WAIT_SCRIPT),
        spec=mpi_spec,
    )

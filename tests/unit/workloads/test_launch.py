"""Counts on the command lines are the job's world, and rank 0 is found under its full DNS name."""

import pytest

from tests.unit.workloads.builders import NAMESPACE, cpu_job, environment, gpu_job, option, pod_templates, rendered, worker

pytestmark = pytest.mark.unit
TRAINER = ["-m", "training.train", "--config", "/etc/trainyard/train.json"]


def launcher(values):
    return pod_templates(values)["launcher"]["spec"]["containers"][0]["command"]


@pytest.mark.parametrize(
    ("values", "ranks", "slots"), [(gpu_job("mpi"), 32, 8), (gpu_job("mpi", accelerators=4), 16, 4), (cpu_job("mpi"), 2, 1)]
)
def test_mpirun_starts_one_process_for_each_slot(values, ranks, slots):
    command, spec = launcher(values), rendered(values).spec
    assert spec["slotsPerWorker"] == slots
    assert option(command, "-np") == str(ranks) == str(spec["mpiReplicaSpecs"]["Worker"]["replicas"] * slots)
    assert option(command, "--map-by") == f"ppr:{slots}:node"


@pytest.mark.parametrize(("values", "nodes", "processes"), [(gpu_job("volcano"), 4, 8), (cpu_job("volcano"), 2, 1)])
def test_each_volcano_pod_runs_one_agent_of_its_world(values, nodes, processes):
    command = worker(values)["command"]
    assert option(command, "--nnodes") == str(nodes)
    assert option(command, "--nproc-per-node") == str(processes)
    assert option(command, "--node-rank") == "$(VC_TASK_INDEX)"
    assert "training.supervise" in command


def test_both_launchers_start_the_same_trainer():
    assert launcher(cpu_job("mpi"))[-4:] == TRAINER
    assert worker(cpu_job("volcano"))["command"][-4:] == TRAINER


def test_rank_0_is_found_by_the_full_name_of_worker_0():
    for kind in ("mpi", "volcano"):
        name = rendered(cpu_job(kind)).name
        full = f"{name}-worker-0.{name}.{NAMESPACE}.svc"
        if kind == "mpi":
            assert environment(worker(cpu_job(kind)))["MASTER_ADDR"] == full
            assert f"MASTER_ADDR={full}" in launcher(cpu_job(kind))
        else:
            assert option(worker(cpu_job(kind))["command"], "--master-addr") == full


def test_mpirun_hands_every_variable_of_a_rank_to_the_rank():
    command = launcher(gpu_job("mpi", env={"NCCL_DEBUG": "WARN"}))
    exported = {command[index + 1] for index, word in enumerate(command) if word == "-x"}
    expected = {f"{name}={value}" for name, value in environment(worker(gpu_job("mpi", env={"NCCL_DEBUG": "WARN"}))).items()}
    assert {"PATH", "PYTHONPATH"} | expected == exported, "a session of sshd does not have the container's environment"


def test_the_agent_waits_for_its_ranks_nearly_as_long_as_the_pod_does():
    assert option(worker(cpu_job("volcano", terminationGraceSeconds=300))["command"], "--shutdown-timeout") == "290"


def test_a_job_restarts_as_a_whole_and_not_pod_by_pod():
    """Agents restart all ranks of all pods together, in place; a pod whose agent has ended is not started again by itself."""
    command = worker(cpu_job("volcano", maxRestarts=4))["command"]
    assert option(command, "--max-restarts") == "4"
    ports = {port["containerPort"] for port in worker(cpu_job("volcano"))["ports"]}
    assert ports == {int(option(command, "--master-port")), int(option(command, "--control-port"))}
    assert pod_templates(cpu_job("volcano"))["worker"]["spec"]["restartPolicy"] == "Never"

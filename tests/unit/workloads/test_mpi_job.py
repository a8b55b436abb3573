"""What is the MPI Operator's own: a gang of workers, a launcher that waits for them and takes no accelerator, a drain before the signal."""

import pytest

from infra import labels
from tests.unit.workloads.builders import cpu_job, environment, gpu_job, pod_templates, rendered

pytestmark = pytest.mark.unit


def test_the_gang_is_the_workers_when_the_launcher_waits_for_them():
    spec = rendered(gpu_job("mpi")).spec
    assert spec["launcherCreationPolicy"] == "WaitForWorkersReady"
    assert spec["runPolicy"]["schedulingPolicy"] == {"minAvailable": 4, "queue": "training"}, "a gang with the launcher would wait for ever"


def test_workers_end_when_the_job_does():
    policy = rendered(gpu_job("mpi", deadlineSeconds=3600, maxRestarts=9)).spec["runPolicy"]
    assert policy["cleanPodPolicy"] == "Running", "the operator's default keeps the workers, and their GPUs"
    assert (policy["activeDeadlineSeconds"], policy["backoffLimit"]) == (3600, 9)
    assert "ttlSecondsAfterFinished" not in policy, "a job that removes itself is one the engine finds missing"


def test_the_launcher_takes_no_device_and_runs_on_the_system_pool():
    launcher = pod_templates(gpu_job("mpi"))["launcher"]["spec"]
    container = launcher["containers"][0]
    assert launcher["nodeSelector"] == {labels.POOL: "system"}
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert not environment(container), "EFA variables on a pod without EFA would be refused"


def test_the_launcher_waits_for_every_worker_also_when_it_starts_again():
    values = gpu_job("mpi")
    wait = pod_templates(values)["launcher"]["spec"]["initContainers"][0]["command"]
    name = rendered(values).name
    assert wait[2:5] == [f"{name}-worker-{{}}.{name}.training.svc", "4", "2222"]


def test_a_worker_is_ready_when_its_sshd_listens_without_root():
    worker = pod_templates(gpu_job("mpi"))["worker"]["spec"]["containers"][0]
    assert worker["command"] == ["/usr/sbin/sshd", "-De", "-f", "/home/trainer/.sshd_config"]
    assert worker["startupProbe"]["tcpSocket"]["port"] == 2222
    assert rendered(gpu_job("mpi")).spec["sshAuthMountPath"] == "/home/trainer/.ssh"


def test_ranks_are_asked_to_save_before_sshd_or_mpirun_get_the_signal():
    templates = pod_templates(cpu_job("mpi", terminationGraceSeconds=90))
    hooks = {role: t["spec"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"] for role, t in templates.items()}
    assert hooks["worker"] == ["python3", "/etc/trainyard/drain_ranks.py", "80"]
    assert hooks["launcher"] == ["python3", "/etc/trainyard/stop_mpirun.py", "80"]

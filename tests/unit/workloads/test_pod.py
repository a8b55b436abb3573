"""The suite that every kind of job has to pass: protection, place, shared memory, mounts, security, signals."""

import json

import pytest

from infra import labels
from tests.unit.workloads.builders import IMAGE, cpu_job, environment, gpu_job, pod_templates, rendered, worker
from workloads.errors import JobError
from workloads.kinds import KINDS
from workloads.quantity import memory_mib

pytestmark = [pytest.mark.unit, pytest.mark.parametrize("kind", KINDS)]


def test_every_pod_of_every_role_is_protected_from_disruption(kind):
    for role, template in pod_templates(gpu_job(kind)).items():
        annotations = template["metadata"]["annotations"]
        assert annotations[labels.DO_NOT_DISRUPT] == "true", f"consolidation would evict the {role} in the middle of a step"
        assert annotations[labels.SAFE_TO_EVICT] == "false"


def test_every_pod_is_placed_by_the_gang_scheduler(kind):
    assert {template["spec"]["schedulerName"] for template in pod_templates(gpu_job(kind)).values()} == {labels.VOLCANO_SCHEDULER}


def test_workers_select_their_pool_and_tolerate_its_taints(kind):
    spec = pod_templates(gpu_job(kind))["worker"]["spec"]
    assert spec["nodeSelector"] == {labels.POOL: "p5"}
    assert {toleration["key"] for toleration in spec["tolerations"]} == set(labels.taint_keys("nvidia"))


def test_an_instance_type_is_selected_in_whatever_pool_offers_it(kind):
    spec = pod_templates(gpu_job(kind, pool=None, instanceType="p5.48xlarge"))["worker"]["spec"]
    assert spec["nodeSelector"] == {labels.INSTANCE_TYPE: "p5.48xlarge"}
    assert labels.GPU_TAINT in {toleration["key"] for toleration in spec["tolerations"]}


def test_training_containers_have_sized_shared_memory_within_their_memory(kind):
    template = pod_templates(cpu_job(kind))["worker"]["spec"]
    container = template["containers"][0]
    mount = next(mount for mount in container["volumeMounts"] if mount["mountPath"] == "/dev/shm")
    volume = next(volume for volume in template["volumes"] if volume["name"] == mount["name"])["emptyDir"]
    assert volume["medium"] == "Memory"
    assert 0 < memory_mib(volume["sizeLimit"]) < memory_mib(container["resources"]["limits"]["memory"])


def test_claims_are_mounted_where_the_job_says(kind):
    job = cpu_job(kind, mounts=[{"claim": "checkpoints", "path": "/checkpoints"}, {"claim": "home", "path": "/data", "readOnly": True}])
    spec = pod_templates(job)["worker"]["spec"]
    claims = {volume["name"]: volume["persistentVolumeClaim"] for volume in spec["volumes"] if "persistentVolumeClaim" in volume}
    mounts = {mount["mountPath"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    assert claims[mounts["/checkpoints"]["name"]] == {"claimName": "checkpoints-lustre", "readOnly": False}
    assert claims[mounts["/data"]["name"]] == {"claimName": "home-efs", "readOnly": True}
    assert mounts["/data"]["readOnly"] is True


def test_a_claim_the_platform_lacks_is_refused_with_those_it_has(kind):
    with pytest.raises(JobError, match=r'mounts\[0\].claim: "scratch" is refused; allowed: a claim of the platform: checkpoints, home'):
        rendered(cpu_job(kind, mounts=[{"claim": "scratch", "path": "/checkpoints"}]))


def test_a_pool_the_platform_lacks_is_refused_with_those_it_has(kind):
    with pytest.raises(JobError, match=r'pool: "h200" is refused; allowed: a node pool of the platform: g6, p5'):
        rendered(gpu_job(kind, pool="h200"))


def test_no_pod_has_more_rights_than_its_user(kind):
    for role, template in pod_templates(gpu_job(kind)).items():
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, role
        assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["fsGroup"] == 1000
        assert not [volume for volume in spec["volumes"] if "hostPath" in volume], "devices come from the plug-ins alone"
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        for container in spec["containers"] + spec.get("initContainers", []):
            assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_process_1_is_no_shell_so_that_it_gets_the_signal(kind):
    for role, template in pod_templates(gpu_job(kind)).items():
        for container in template["spec"]["containers"]:
            assert container["command"][0] in ("mpirun", "/usr/sbin/sshd", "python3"), role
            assert not {"sh", "/bin/sh", "bash", "/bin/bash"} & set(container["command"])
            assert "args" not in container


def test_grace_periods_nest_rank_within_agent_within_pod(kind):
    for template in pod_templates(cpu_job(kind, terminationGraceSeconds=120)).values():
        assert template["spec"]["terminationGracePeriodSeconds"] == 120
        container = template["spec"]["containers"][0]
        words = [*container["command"], *container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [])]
        assert "110" in words or "--shutdown-timeout=110" in words, "ranks need a time of their own to save in, just below the pod's"


def test_efa_variables_come_only_with_efa_requests(kind):
    with_efa, without = worker(gpu_job(kind)), worker(gpu_job(kind, efa=False))
    assert with_efa["resources"]["requests"][labels.EFA_RESOURCE] == "32"
    assert environment(with_efa)["FI_PROVIDER"] == "efa"
    assert not [name for name in environment(without) if name.startswith("FI_")]


def test_nccl_is_kept_off_the_pod_identity_link(kind):
    assert "pod-id-link0" in environment(worker(gpu_job(kind)))["NCCL_SOCKET_IFNAME"].removeprefix("^").split(",")
    assert "NCCL_SOCKET_IFNAME" not in environment(worker(cpu_job(kind)))


def test_the_ranks_environment_holds_the_jobs_own_variables(kind):
    assert environment(worker(cpu_job(kind, env={"NCCL_DEBUG": "WARN"})))["NCCL_DEBUG"] == "WARN"


def test_pods_find_the_checked_configuration_in_their_config_map(kind):
    known = rendered(cpu_job(kind))
    config = json.loads(known.data["train.json"])
    assert (config["name"], config["steps"]) == ("pretrain", 100)
    for template in pod_templates(cpu_job(kind)).values():
        volume = next(volume for volume in template["spec"]["volumes"] if "configMap" in volume)
        assert volume["configMap"]["name"] == known.name


def test_scripts_that_pods_run_are_in_the_config_map(kind):
    data = rendered(cpu_job(kind)).data
    named = set()
    for template in pod_templates(cpu_job(kind)).values():
        named |= {word.removeprefix("/etc/trainyard/") for word in json.dumps(template).split('"') if word.startswith("/etc/trainyard/")}
    assert named
    assert named <= set(data)


def test_a_job_s_own_image_goes_before_the_program_s(kind):
    assert worker(cpu_job(kind))["image"] == IMAGE
    assert worker(cpu_job(kind, image="mine:1"))["image"] == "mine:1"


def test_pods_carry_the_labels_by_which_logs_find_them(kind):
    for role, template in pod_templates(cpu_job(kind)).items():
        found = template["metadata"]["labels"]
        assert (found[labels.JOB_NAME], found[labels.JOB_KIND], found[labels.JOB_ROLE]) == ("pretrain", kind, role)

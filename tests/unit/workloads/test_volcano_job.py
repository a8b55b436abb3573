"""What is Volcano's own: the gang, restarts that tell a refused configuration from an eviction, names published before pods are ready."""

import pytest

from tests.unit.workloads.builders import cpu_job, gpu_job, pod_templates, rendered

pytestmark = pytest.mark.unit


def test_the_gang_is_all_pods():
    spec = rendered(gpu_job("volcano")).spec
    assert spec["minAvailable"] == spec["tasks"][0]["replicas"] == spec["tasks"][0]["minAvailable"] == 4
    assert spec["queue"] == "training"
    assert rendered(gpu_job("volcano", queue="research")).spec["queue"] == "research"


def test_an_eviction_restarts_the_job_and_only_a_refused_configuration_ends_it():
    policies = rendered(gpu_job("volcano")).spec["policies"]
    assert policies[0] == {"exitCode": 78, "action": "TerminateJob"}, "Volcano takes the first policy that fits"
    ends = [policy for policy in policies if policy["action"] in ("TerminateJob", "AbortJob")]
    assert all("event" not in policy and "events" not in policy for policy in ends), "an evicted pod fails too, and must not end the job"
    assert {"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"} in policies


def test_restarts_are_bounded_and_volcano_s_count_includes_the_one_it_gives_up_at():
    assert rendered(gpu_job("volcano")).spec["maxRetry"] == 7
    assert rendered(gpu_job("volcano", maxRestarts=0)).spec["maxRetry"] == 1


def test_pod_names_are_published_before_the_pods_are_ready():
    assert rendered(cpu_job("volcano")).spec["plugins"] == {"env": [], "svc": ["--publish-not-ready-addresses=true"]}


def test_a_deadline_is_each_pod_s():
    assert pod_templates(cpu_job("volcano", deadlineSeconds=600))["worker"]["spec"]["activeDeadlineSeconds"] == 600
    assert "activeDeadlineSeconds" not in pod_templates(cpu_job("volcano"))["worker"]["spec"]

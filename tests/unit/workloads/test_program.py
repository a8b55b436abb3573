"""The jobs program under mocks: what it registers, for whom, and that a mistake ends it with a message and not with a traceback."""

import gc
import runpy
from dataclasses import asdict
from typing import Any

import pulumi
import pytest

from infra import labels
from infra.component import token
from tests.recording import UNKNOWN, Recording, leaks, record, strings
from tests.unit.workloads.builders import IMAGE, NAMESPACE, cpu_job, gpu_job, platform
from tests.unit.workloads.test_settings import WORKLOADS
from workloads.kinds import KINDS
from workloads.settings import PROJECT
from workloads.spec import Kind

pytestmark = pytest.mark.unit
STACK = "organization/trainyard/local"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"


@pytest.fixture(autouse=True)
def _no_leftovers():
    """A program that ends with an error leaves pending coroutines: end them here, not in the middle of whatever runs next."""
    yield
    gc.collect()


def outputs(**changes: Any) -> dict[str, Any]:
    """Outputs of a platform stack as the engine hands them over: without the keys that are None."""
    known = platform()
    pools = {name: {key: value for key, value in asdict(pool).items() if value is not None} for name, pool in known.pools.items()}
    return {
        "contract_version": 1,
        "cluster_name": "trainyard",
        "region": "us-east-1",
        "kubeconfig": "{}",
        "namespace": known.namespace,
        "service_account": known.service_account,
        "queue": known.queue,
        "pools": pools,
        "claims": dict(known.claims),
        "file_systems": {},
    } | changes


def run(
    *jobs: dict[str, Any], stack_outputs: dict[str, Any] | None = None, config: dict[str, Any] | None = None, resolved: bool = True
) -> Recording:
    values = {"platform": STACK, "image": IMAGE, "jobs": list(jobs)} | (config or {})
    return record(
        lambda: runpy.run_path(str(WORKLOADS / "__main__.py"), run_name="__main__"),
        config={f"{PROJECT}:{key}": value for key, value in values.items()},
        stack_outputs=outputs() if stack_outputs is None else stack_outputs,
        project=PROJECT,
        resolved=resolved,
    )


def object_type(kind: Kind) -> str:
    manifest = KINDS[kind].manifest
    return f"kubernetes:{manifest.api_version}:{manifest.object_kind}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_a_component_with_a_config_map_and_one_object(kind):
    recording = run(gpu_job(kind))
    component = recording.one(token("workloads", KINDS[kind].__name__), "pretrain")
    assert sorted(entry.type for entry in recording.below(component.urn)) == sorted([CONFIG_MAP, object_type(kind)])


@pytest.mark.parametrize("kind", KINDS)
def test_policies_see_what_the_author_wrote_on_the_component(kind):
    component = run(gpu_job(kind)).one(token("workloads", KINDS[kind].__name__))
    assert component.inputs["spec"]["numWorkers"] == 4
    assert component.inputs["image"] == IMAGE


@pytest.mark.parametrize("kind", KINDS)
def test_pods_are_made_only_when_their_config_map_is_there_and_the_old_job_goes_first(kind):
    recording = run(cpu_job(kind))
    config, job = recording.one(CONFIG_MAP), recording.one(object_type(kind))
    assert recording.waits_for(job, config)
    assert job.delete_before_replace, "two of them would need twice the nodes and write to the same checkpoints"
    assert config.inputs["immutable"] is True
    assert config.inputs["metadata"]["name"] == job.inputs["metadata"]["name"]
    assert job.inputs["metadata"]["namespace"] == NAMESPACE
    assert job.inputs["metadata"]["labels"][labels.JOB_NAME] == "pretrain"


def test_objects_go_to_the_platform_s_cluster():
    recording = run(cpu_job("mpi"))
    provider = recording.one("pulumi:providers:kubernetes", "platform")
    assert provider.inputs["kubeconfig"] == outputs()["kubeconfig"]
    for entry in (*recording.of_type(CONFIG_MAP), *recording.of_type(object_type("mpi"))):
        assert entry.provider.startswith(provider.urn)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_say_how_to_follow_each_job(kind):
    recording = run(gpu_job(kind))
    exported = recording.exports["jobs"]["pretrain"]
    assert exported == {
        "kind": kind,
        "job": recording.one(object_type(kind)).inputs["metadata"]["name"],
        "namespace": NAMESPACE,
        "selector": f"{labels.JOB_NAME}=pretrain",
        "world_size": 32,
        "global_batch": 128,
        "run_directory": "/checkpoints/pretrain",
    }
    component = recording.one(token("workloads", KINDS[kind].__name__))
    assert set(recording.component_outputs[component.urn]) == {"job_name", "namespace", "world_size", "global_batch", "run_directory"}


def test_a_changed_job_leaves_the_others_as_they_are():
    other = cpu_job("volcano", name="other")
    before, after = run(cpu_job("mpi"), other), run(cpu_job("mpi", image="new:2"), other)

    def names(recording: Recording) -> dict[str, str]:
        return {name: job["job"] for name, job in recording.exports["jobs"].items()}

    assert names(before)["pretrain"] != names(after)["pretrain"]
    assert names(before)["other"] == names(after)["other"]


def test_a_job_runs_again_without_a_change_when_its_attempt_is_raised():
    first, second = run(cpu_job("mpi")), run(cpu_job("mpi", attempt=2))
    assert first.one(CONFIG_MAP).inputs["data"] == second.one(CONFIG_MAP).inputs["data"]
    assert first.exports["jobs"]["pretrain"]["job"] != second.exports["jobs"]["pretrain"]["job"]


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (cpu_job("mpi", pool="gone"), rf"{PROJECT}:jobs\[0\].pool: \"gone\" is refused; allowed: a node pool of the platform: g6"),
        (cpu_job("mpi", numWorkers=0), rf"{PROJECT}:jobs\[0\].numWorkers: 0 is refused"),
        (
            gpu_job("volcano", worldSize=4),
            rf"{PROJECT}:jobs\[0\].worldSize: 4 is refused; allowed: numWorkers 4 x processesPerWorker 8 = 32",
        ),
    ],
)
def test_a_mistake_ends_the_program_with_a_message(job, message):
    with pytest.raises(pulumi.RunError, match=message):
        run(job)


def test_an_unknown_key_of_the_program_is_refused():
    with pytest.raises(pulumi.RunError, match=rf"{PROJECT}:job: .* no such key; known keys: platform, image, jobs"):
        run(cpu_job("mpi"), config={"job": []})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contract_version": 2}, f"stack '{STACK}': output 'contract_version' is 2"),
        ({"contract_version": None}, f"stack '{STACK}' has no output 'contract_version'"),
        ({"queue": None}, f"stack '{STACK}' has no output 'queue'"),
    ],
)
def test_a_platform_that_breaks_the_contract_is_named_with_the_key(changes, message):
    broken = {key: value for key, value in outputs(**changes).items() if value is not None}
    with pytest.raises(pulumi.RunError, match=message):
        run(cpu_job("mpi"), stack_outputs=broken)


@pytest.mark.parametrize("job", [cpu_job, gpu_job])
@pytest.mark.parametrize("kind", KINDS)
def test_no_input_is_the_text_of_an_output(kind, job):
    recording = run(job(kind))
    assert leaks(recording) == []
    assert UNKNOWN not in [text for entry in recording.registrations for text in strings(entry.inputs)]


@pytest.mark.parametrize("job", [cpu_job, gpu_job])
@pytest.mark.parametrize("kind", KINDS)
def test_no_input_is_the_text_of_an_output_that_a_preview_does_not_know(kind, job):
    """A platform whose stack is not up yet: the same objects, and all that comes from it unknown as a whole."""
    recording = run(job(kind), stack_outputs=dict.fromkeys(outputs(), UNKNOWN), resolved=False)
    assert leaks(recording) == []
    assert recording.one(object_type(kind)).inputs["spec"] == UNKNOWN
    assert sorted(entry.urn for entry in recording.registrations) == sorted(entry.urn for entry in run(job(kind)).registrations)

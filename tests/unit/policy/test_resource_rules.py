"""The rules that judge one resource, through the real analyzer service: what they refuse, what they let pass, what they say."""

import pytest

from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing, analyze, not_evaluated, violations

pytestmark = pytest.mark.unit

REQUIREMENTS = "spec/template/spec/requirements"
BUDGET = "spec/disruption/budgets/0"
TIERING = {"deploymentType": "PERSISTENT_2", "storageType": "INTELLIGENT_TIERING"}
TERMS = "spec/amiSelectorTerms"

VALID = [
    ("FSX02", b.lustre(deploymentType="SCRATCH_2", storageCapacity=1200)),
    ("FSX02", b.lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput=250)),
    ("FSX02", b.storage_class(deploymentType="SCRATCH_1")),
    ("FSX02", b.storage_class(deploymentType="PERSISTENT_1", perUnitStorageThroughput="100")),
    ("FSX03", b.lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput=200)),
    ("FSX03", b.lustre(deploymentType="PERSISTENT_1", storageType="HDD", perUnitStorageThroughput=12)),
    ("FSX03", b.lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput=1000)),
    ("FSX03", b.lustre(deploymentType="PERSISTENT_2", storageType="INTELLIGENT_TIERING", throughputCapacity=4000)),
    ("FSX03", Thing(type=b.storage_class().type, properties={"provisioner": "ebs.csi.aws.com", "parameters": {"type": "gp3"}})),
    ("KRP02", b.node_pool()),
    ("KRP02", b.cpu_pool({"spec/disruption/consolidationPolicy": "WhenEmptyOrUnderutilized"})),
    ("KRP02", b.node_pool({"spec/disruption/consolidateAfter": "Never"})),
    ("KRP02", b.cpu_pool({"spec/disruption/consolidationPolicy": "Balanced"})),
    ("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}})),
    ("KRP03", b.node_pool({BUDGET: {"nodes": "100%"}})),
    ("KRP03", b.node_pool({BUDGET: {"nodes": 3}})),
    ("KRP03", b.node_pool({"spec/disruption/budgets": b.DELETE})),
    ("KRP04", b.node_pool()),
    ("KRP04", b.cpu_pool({"spec/template/spec/expireAfter": "720h"})),
    ("KRP04", b.cpu_pool({f"{REQUIREMENTS}/0": {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}})),
    ("KRP06", b.node_class()),
    ("KRP06", b.node_class({TERMS: [{"id": "ami-0123456789abcdef0"}], "spec/amiFamily": "AL2023"})),
    ("KRP06", b.node_class({TERMS: [{"alias": "bottlerocket@v1.40.0"}]})),
    ("EFA06", b.mpi_job()),
    ("EFA06", b.volcano_job()),
    ("EFA06", b.mpi_job({f"{b.WORKER_CONTAINER}/env": [{"name": "FI_PROVIDER", "value": "efa"}]})),
    ("EFA06", b.mpi_job({f"{b.WORKER}/replicas": 1, f"{b.WORKER_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8}}})),
    ("MPI02", b.mpi_job()),
    ("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["/bin/sh", "-c", "exec mpirun -np 32 -N 8 python3 train.py"]})),
    ("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["deepspeed", "--hostfile", "/etc/mpi/hostfile", "train.py"]})),
    ("MPI02", b.mpi_job({"spec/runLauncherAsWorker": True, b.LAUNCHER_COMMAND: ["mpirun", "-np", "40", "x"]})),
    ("MPI03", b.mpi_job()),
    ("MPI03", b.mpi_job({"spec/slotsPerWorker": 1, f"{b.WORKER_CONTAINER}/resources": {"limits": {"cpu": "500m"}}})),
    ("VOL01", b.volcano_job()),
    ("VOL01", b.volcano_job({"spec/minAvailable": b.DELETE})),
    ("VOL01", b.volcano_job({"spec/minAvailable": 2, f"{b.TASK_CONTAINER}/command": ["torchrun", "--nnodes=2:4", "train.py"]})),
    ("VOL01", b.mpi_job({"spec/launcherCreationPolicy": "AtStartup", "spec/runPolicy/schedulingPolicy/minAvailable": 5})),
]

INVALID = [
    ("FSX02", b.lustre(deploymentType="SCRATCH_2", perUnitStorageThroughput=200), "perUnitStorageThroughput is 200; allowed: unset"),
    ("FSX02", b.lustre(perUnitStorageThroughput=50), "deploymentType is SCRATCH_1"),
    ("FSX02", b.storage_class(deploymentType="SCRATCH_1", perUnitStorageThroughput="200"), "parameters.perUnitStorageThroughput is 200"),
    ("FSX02", b.lustre(deploymentType="SCRATCH_2", perUnitStorageThroughput=UNKNOWN), "(known after up)"),
    ("FSX03", b.lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput=200), "125, 250, 500, 1000"),
    ("FSX03", b.lustre(deploymentType="PERSISTENT_2", storageCapacity=1200), "perUnitStorageThroughput is unset"),
    ("FSX03", b.lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput=125), "50, 100, 200"),
    ("FSX03", b.lustre(deploymentType="PERSISTENT_1", storageType="HDD", perUnitStorageThroughput=50), "12, 40"),
    (
        "FSX03",
        b.lustre(deploymentType="PERSISTENT_2", storageType="INTELLIGENT_TIERING", perUnitStorageThroughput=250),
        "throughputCapacity",
    ),
    ("FSX03", b.storage_class(deploymentType="PERSISTENT_1", perUnitStorageThroughput="fast"), "fast"),
    ("KRP02", b.node_pool({"spec/disruption/consolidationPolicy": "WhenUnderutilized"}), "WhenEmpty, WhenEmptyOrUnderutilized, Balanced"),
    ("KRP02", b.node_pool({"spec/disruption/consolidationPolicy": "WhenEmptyOrUnderutilized"}), "WhenEmpty on a pool of accelerators"),
    ("KRP02", b.node_pool({"spec/disruption": b.DELETE}), "unset (Karpenter then uses WhenEmptyOrUnderutilized)"),
    ("KRP02", b.cpu_pool({"spec/disruption/consolidateAfter": "10 minutes"}), "consolidateAfter is 10 minutes"),
    ("KRP03", b.node_pool({f"{BUDGET}/schedule": "@daily"}), "budgets[0].duration is unset"),
    ("KRP03", b.node_pool({f"{BUDGET}/duration": "8h"}), "budgets[0].schedule is unset"),
    ("KRP03", b.node_pool({f"{BUDGET}/nodes": "150%"}), "150%"),
    ("KRP03", b.node_pool({BUDGET: {"nodes": "0", "schedule": "@daily", "duration": "90s"}}), "hours and minutes only"),
    ("KRP03", b.node_pool({f"{BUDGET}/reasons": ["Consolidated"]}), "Underutilized, Empty, Drifted"),
    ("KRP03", b.node_pool({"spec/disruption/budgets": [{"nodes": "1"}] * 51}), "51 budgets"),
    ("KRP04", b.node_pool({"spec/template/spec/expireAfter": b.DELETE}), "unset (Karpenter then uses 720h)"),
    ("KRP04", b.node_pool({"spec/template/spec/expireAfter": "24h"}), "expireAfter is 24h; allowed: Never"),
    ("KRP04", b.node_pool({f"{REQUIREMENTS}/2/values": ["spot", "on-demand"]}), "spot"),
    (
        "KRP04",
        b.cpu_pool({"spec/limits": {"nvidia.com/gpu": 8}, "spec/template/spec/expireAfter": "720h"}),
        "expireAfter is 720h",
    ),
    ("KRP06", b.node_class({TERMS: []}), "amiSelectorTerms is empty"),
    ("KRP06", b.node_class({TERMS: [{"alias": "al2023@latest"}]}), "al2023@latest"),
    ("KRP06", b.node_class({TERMS: [{"alias": "al2@v20260101"}]}), "Amazon Linux 2 ends"),
    ("KRP06", b.node_class({TERMS: [{"alias": "al2023@v20261120"}, {"id": "ami-1"}]}), "an alias alone"),
    ("KRP06", b.node_class({TERMS: b.DELETE, "spec/amiFamily": "AL2"}), "at least one term"),
    ("KRP06", b.node_class({TERMS: [{"id": "ami-1"}]}), "amiFamily is unset"),
    ("EFA06", b.mpi_job({f"{b.WORKER_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8}}}), "asking no vpc.amazonaws.com/efa"),
    (
        "EFA06",
        b.volcano_job({f"{b.TASK_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 64}}}),
        "at most 32",
    ),
    (
        "EFA06",
        b.volcano_job(
            {
                f"{b.TASK_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 4}},
                f"{b.TASK_CONTAINER}/env": [{"name": "FI_PROVIDER", "value": "efa"}],
            }
        ),
        "env[0] is FI_PROVIDER",
    ),
    ("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", "-np", "4", "x"]}), "-np 32 (4 workers x 8 slots)"),
    ("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", "python3", "train.py"]}), "without -np"),
    ("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["bash", "-c", "mpirun -np 64 x"]}), "is -np 64"),
    ("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", "-np", "32", "--map-by", "ppr:4:node", "x"]}), "4 processes per node"),
    ("MPI02", b.mpi_job({"spec/slotsPerWorker": b.DELETE}), "4 workers x 1 slots"),
    ("MPI03", b.mpi_job({"spec/slotsPerWorker": b.DELETE}), "1 (the default)"),
    ("MPI03", b.mpi_job({"spec/slotsPerWorker": 4}), "slotsPerWorker is 4; allowed: 8"),
    ("MPI03", b.mpi_job({"spec/slotsPerWorker": 4, f"{b.WORKER_CONTAINER}/resources": {"limits": {"cpu": "2"}}}), "at most 2"),
    ("MPI03", b.mpi_job({"spec/slotsPerWorker": 16}), "slotsPerWorker is 16"),
    ("VOL01", b.volcano_job({"spec/minAvailable": 5}), "sum of all tasks' replicas"),
    ("VOL01", b.volcano_job({"spec/minAvailable": 3}), "every rank is needed"),
    ("VOL01", b.volcano_job({"spec/tasks/0/minAvailable": 6}), "tasks[0].minAvailable is 6"),
    ("VOL01", b.volcano_job({"spec/schedulerName": "default-scheduler"}), "volcano, because 4 pods"),
    ("VOL01", b.mpi_job({"spec/runPolicy/schedulingPolicy/minAvailable": 5}), "4 for 4 workers, because the launcher is only made once"),
]


@pytest.mark.parametrize(("rule", "thing"), VALID)
def test_a_valid_resource_passes_every_rule_that_it_is_an_example_of(rule: str, thing: Thing) -> None:
    said = analyze(thing)
    assert violations(said, rule) == []
    assert not_evaluated(said, rule) == []


@pytest.mark.parametrize(("rule", "thing", "words"), INVALID)
def test_an_invalid_resource_is_refused_with_rule_resource_value_and_way_out(rule: str, thing: Thing, words: str) -> None:
    messages = violations(analyze(thing), rule)
    assert messages, f"{rule} let it pass"
    text = "\n".join(messages)
    assert words in text
    assert f"{rule} {thing.name}: " in text
    assert "; allowed: " in text
    assert "Fix: " in text
    assert ".0;" not in text, "numbers are shown as people write them"


def test_a_request_that_differs_from_its_limit_is_refused() -> None:
    job = b.mpi_job()
    container = job.properties["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"vpc.amazonaws.com/efa": 32}, "requests": {"vpc.amazonaws.com/efa": 4}}
    assert "the same as the limit, which is 32" in violations(analyze(job), "EFA06")[0]


def test_a_rule_that_needs_an_unknown_value_says_so_and_the_others_still_run() -> None:
    said = analyze(b.lustre(deploymentType=UNKNOWN, perUnitStorageThroughput=200))
    assert "deploymentType" in not_evaluated(said, "FSX02")[0]
    assert "deploymentType" in not_evaluated(said, "FSX03")[0]


def test_an_unknown_in_one_part_does_not_hide_a_violation_in_another() -> None:
    pool = b.node_pool({"spec/disruption/budgets": [{"nodes": UNKNOWN}, {"nodes": "150%"}]})
    said = analyze(pool)
    assert "budgets[1].nodes is 150%" in violations(said, "KRP03")[0]
    assert "budgets[0].nodes" in not_evaluated(said, "KRP03")[0]


def test_a_type_that_no_rule_knows_is_passed_over() -> None:
    assert analyze(Thing(type="aws:s3/bucket:Bucket", properties={"deploymentType": "SCRATCH_2", "perUnitStorageThroughput": 200})) == []

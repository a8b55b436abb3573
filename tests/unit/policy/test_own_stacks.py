"""No rule objects to what our own components make, whatever option the settings allow, at a first preview and once all is known."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from infra import catalogue
from tests.recording import Recording, leaks
from tests.unit.infra.builders import Raw, run_platform, stack_file, valid
from tests.unit.policy.analyzer import Thing, analyze
from tests.unit.workloads.builders import cpu_job, gpu_job
from tests.unit.workloads.test_program import run
from workloads.kinds import KINDS

pytestmark = pytest.mark.policy

_ID = {
    "aws:ec2/subnet:Subnet": "subnet",
    "aws:ec2/securityGroup:SecurityGroup": "sg",
    "aws:ec2/capacityReservation:CapacityReservation": "cr",
}
Change = Callable[[Raw], Any]


def things(recording: Recording) -> list[Thing]:
    """What the engine would send of a recording."""
    ids = {
        f"{entry.name}-id": f"{_ID[entry.type]}-{number:017x}" for number, entry in enumerate(recording.registrations) if entry.type in _ID
    }
    sent = {entry.urn: f"urn:pulumi:test::project::{entry.type}::{entry.name}" for entry in recording.registrations}
    return [
        Thing(
            type=entry.type,
            name=entry.name,
            properties=_inputs(entry.inputs, ids),
            sources={key: [sent[urn] for urn in urns if urn in sent] for key, urns in entry.sources.items()},
        )
        for entry in recording.registrations
    ]


def _inputs(value: Any, ids: Mapping[str, str]) -> Any:
    """Plain data as the program gave it, with ids of the form that AWS gives them."""
    if isinstance(value, Mapping):
        return _inputs(value["secret"], ids) if set(value) == {"secret"} else {key: _inputs(each, ids) for key, each in value.items()}
    if isinstance(value, list):
        return [_inputs(member, ids) for member in value]
    return ids.get(value, value) if isinstance(value, str) else value


# A pool of p5 nodes without EFA may lie in several zones; that its types are bought for EFA is worth a word.
ADVICE = ("EFA05 trainyard-pool-pool-4: ",)


def objections(recording: Recording) -> list[str]:
    """What the rules say, apart from what a first preview can't decide and from advice that is meant."""
    said = [each for each in analyze(*things(recording)) if " not evaluated: " not in each.message]
    return [each.message for each in said if each.mandatory or not each.message.startswith(ADVICE)]


def section(name: str, **values: Any) -> Change:
    return lambda raw: raw.setdefault(name, {}).update(values)


def lustre(**values: Any) -> Change:
    return lambda raw: raw["storage"].update(lustre={"zone": "us-east-1a", **values})


def efs(**values: Any) -> Change:
    return lambda raw: raw["storage"]["efs"].update(values)


WINDOW = {"reasons": ["Drifted", "Underutilized"], "days": ["mon", "sun"], "start": "22:30", "hours": 5, "nodes": "10%"}
REPOSITORY = {"path": "/data", "bucketUri": "s3://training-data/tokens"}
ENDPOINTS = ["ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts"]
TYPES = [name for name in catalogue.efa_type_names() if (found := catalogue.require(name).accelerator) and found.kind == "nvidia"]
POOLS: list[Raw] = [
    {"placement": None},
    {"placement": {"kind": "reservation", "ids": ["cr-0123456789abcdef0"]}},
    {"placement": {"kind": "new-reservation", "instances": 2}},
    {"efa": False, "placement": None},
    {"efa": False, "placement": None, "zone": None},
    {"image": {"kind": "id", "id": "ami-0123456789abcdef0"}},
    {"localScratch": False, "rootVolumeGib": 2000},
    {"disruptionWindows": [WINDOW]},
    {"disruptionWindows": [WINDOW, {**WINDOW, "days": ["wed"], "nodes": "1", "reasons": ["Drifted"]}]},
    {"consolidateAfter": "30s", "terminationGracePeriod": "24h", "maxNodes": 1000},
    *({"instanceType": name} for name in TYPES),
]
BIG = {"deploymentType": "PERSISTENT_2", "storageCapacityGib": 4800, "perUnitStorageThroughput": 250}
HDD = {"deploymentType": "PERSISTENT_1", "storageType": "HDD"}


def every_pool(raw: Raw) -> None:
    for number, changes in enumerate(POOLS):
        merged = {**raw["pools"][0], **changes, "name": f"pool-{number}"}
        raw["pools"].append({key: value for key, value in merged.items() if value is not None})


# Options that do not meet are tried in one platform.
PLATFORMS: Mapping[str, Sequence[Change]] = {
    "as-it-is": (),
    "every-pool": (every_pool,),
    "scratch": (lustre(deploymentType="SCRATCH_2", storageCapacityGib=2400, compression="NONE"), efs(throughputMode="bursting")),
    "persistent-1": (
        lustre(deploymentType="PERSISTENT_1", storageCapacityGib=1200, perUnitStorageThroughput=100),
        efs(throughputMode="provisioned", provisionedMibps=128),
        section("network", nat="none", interfaceEndpoints=ENDPOINTS),
    ),
    "hdd-12": (
        lustre(**HDD, storageCapacityGib=6000, perUnitStorageThroughput=12, driveCache="READ"),
        efs(accessPoints=[{"name": "a", "path": "/a/b/c/d", "permissions": "0770"}, {"name": "b", "path": "/b", "uid": 1, "gid": 1}]),
        section("network", nat="per-az"),
    ),
    "hdd-40": (
        lustre(**HDD, storageCapacityGib=1800, perUnitStorageThroughput=40, driveCache="NONE"),
        section("cluster", endpoint={"publicCidrs": ["203.0.113.0/24"]}),
        lambda raw: raw["storage"].update(bucket={"noncurrentDays": 1}),
    ),
    "metadata": (
        lustre(**{**BIG, "perUnitStorageThroughput": 1000}, metadataIops=12000),
        section("cluster", logTypes=["api", "audit", "authenticator", "controllerManager", "scheduler"]),
        lambda raw: raw.update(protect=True),
    ),
    "repositories": (
        lustre(**BIG, backupRetentionDays=0, repositories=[REPOSITORY]),
        lambda raw: raw.update(jobs={"namespace": "research", "serviceAccount": "runner", "queue": {"name": "research"}}),
    ),
    "key": (lustre(**BIG, kmsKeyArn="arn:aws:kms:us-east-1:123456789012:key/1"),),
    "bare": (lambda raw: raw.update(storage={"bucket": None}, pools=[]),),
}


def platform(name: str) -> Raw:
    """The valid settings with all changes of one of `PLATFORMS`."""

    def change(raw: Raw) -> None:
        for each in PLATFORMS[name]:
            each(raw)

    return valid(change)


@pytest.mark.parametrize("resolved", [False, True], ids=["first-preview", "all-known"])
@pytest.mark.parametrize("name", PLATFORMS)
def test_no_rule_objects_to_a_platform(name: str, resolved: bool) -> None:
    recording = run_platform(platform(name), resolved=resolved)
    assert leaks(recording) == []
    assert objections(recording) == []


@pytest.mark.parametrize("stack", ["local", "dev"])
def test_no_rule_objects_to_a_committed_stack(stack: str) -> None:
    assert objections(run_platform(stack_file(stack), resolved=False)) == []


SMALL = {"steps": 100, "batch": {"micro": 2}, "checkpoint": {"directory": "/checkpoints"}}
HOME = {"claim": "home", "path": "/data", "readOnly": True}
JOBS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "gpu": lambda kind: gpu_job(kind),
    "gpu-by-type": lambda kind: gpu_job(kind, pool=None, instanceType="p5.48xlarge"),
    "half-a-node": lambda kind: gpu_job(kind, accelerators=4, train=SMALL),
    "without-efa": lambda kind: gpu_job(kind, pool="p5-tcp", efa=False),
    "g6": lambda kind: gpu_job(kind, pool="g6", train=SMALL),
    "one-worker": lambda kind: gpu_job(kind, numWorkers=1, train=SMALL),
    "cpu": lambda kind: cpu_job(kind),
    "deadline": lambda kind: gpu_job(kind, deadlineSeconds=86400, maxRestarts=12, terminationGraceSeconds=600, attempt=3),
    "environment": lambda kind: gpu_job(kind, env={"NCCL_DEBUG": "WARN"}, sharedMemory="32Gi"),
    "home": lambda kind: gpu_job(kind, mounts=[{"claim": "checkpoints", "path": "/checkpoints"}, HOME]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", JOBS)
def test_no_rule_objects_to_a_job(name: str, kind: str) -> None:
    recording = run(JOBS[name](kind))
    assert leaks(recording) == []
    assert objections(recording) == []

"""Every rule at preview, on the real engine: a violation of it ends the preview, and a program without one passes.

Resources are registered by type token and plain properties, as any team's program would send them; no cluster and no AWS is there.
"""

import json
import os
from typing import Any

import pytest

from local.paths import REPOSITORY
from local.progress import Progress
from local.toolchain.engine import engine_environment
from local.toolchain.tools import ENGINE, ensure
from tests.engine.pulumi_project import Project
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing

pytestmark = pytest.mark.engine

PROGRAM = """
import json
import pathlib
import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

here = pathlib.Path(__file__).parent
names = ("ec2", "fsx", "sts", "iam")
fake = {"access_key": "x", "secret_key": "x", "skip_credentials_validation": True, "skip_requesting_account_id": True}
nowhere = [aws.ProviderEndpointArgs(**dict.fromkeys(names, "http://127.0.0.1:9"))]
providers = {
    "aws": aws.Provider("aws", region="us-east-1", endpoints=nowhere, **fake),
    "kubernetes": kubernetes.Provider("kubernetes", render_yaml_to_directory=str(here / "rendered")),
}
for thing in json.loads((here / "things.json").read_text()):
    options = pulumi.ResourceOptions(provider=providers[thing["type"].partition(":")[0]])
    pulumi.CustomResource(thing["type"], thing["name"], thing["properties"], options)
"""
SELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
OUT = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}
LUSTRE = {"storageCapacity": 1200, "subnetIds": "subnet-1", "securityGroupIds": ["sg-0123456789abcdef0"]}
PLACED = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}], "terminationGracePeriodSeconds": 300}
IMAGE = "registry.example/trainer:1.4.2"
TORCHRUN = [
    "python3",
    "-m",
    "torch.distributed.run",
    "--nnodes=4",
    "--rdzv-backend=c10d",
    "--rdzv-endpoint=finetune-worker-0.finetune:29500",
]
TERMS = "spec/amiSelectorTerms"
ZONE = "spec/template/spec/requirements/1/values"


def _placed(place: str) -> dict[str, Any]:
    """What lets a pod of the example onto the example's pool, as changes of a job."""
    return {f"{place}/{key}": value for key, value in PLACED.items()}


CAPACITY = "spec/template/spec/requirements/2/values"

# Jobs and file systems that every rule takes are those of our own stacks, which the rehearsal brings up with the pack on.
VALID = {
    "group": b.efa_group(ingress=[SELF], egress=[SELF, OUT]),
    "pool": b.node_pool({CAPACITY: ["on-demand"]}),
    "class": b.node_class(),
    "settings": Thing(type="kubernetes:core/v1:ConfigMap", properties={"metadata": {"name": "settings"}, "data": {"a": "b"}}),
}
INVALID = {
    "FSX02": b.lustre(**LUSTRE, deploymentType="SCRATCH_2", perUnitStorageThroughput=200),
    "FSX03": b.lustre(**LUSTRE, deploymentType="PERSISTENT_2", perUnitStorageThroughput=200),
    "EFA04": b.efa_group(ingress=[SELF], egress=[OUT]),
    "EFA05": b.node_pool({ZONE: ["us-east-1a", "us-east-1b"]}),
    "EFA06": b.volcano_job({f"{b.TASK_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8}}}),
    "KRP02": b.node_pool({"spec/disruption/consolidationPolicy": "WhenEmptyOrUnderutilized"}),
    "KRP03": b.node_pool({"spec/disruption/budgets": [{"nodes": "0", "schedule": "@daily"}]}),
    "KRP04": b.node_pool({"spec/template/spec/expireAfter": "720h"}),
    "KRP06": b.node_class({TERMS: [{"alias": "al2023@latest"}]}),
    "MPI02": b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", "-np", "4", "python3", "train.py"]}),
    "MPI03": b.mpi_job({"spec/slotsPerWorker": 4}),
    "VOL01": b.volcano_job({"spec/minAvailable": 3}),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("policy")
    before = os.environ.get("TRAINYARD_STATE")
    os.environ["TRAINYARD_STATE"] = str(folder / "state")
    try:
        ensure([ENGINE], Progress(folder / "build.log", total=1))
        return Project(folder / "program", engine_environment(), PROGRAM)
    finally:
        if before is None:
            del os.environ["TRAINYARD_STATE"]
        else:
            os.environ["TRAINYARD_STATE"] = before


def preview(project: Project, things: dict[str, Thing]) -> tuple[int, str]:
    """Exit status and output of a preview with the pack on."""
    written = [{"type": thing.type, "name": name.lower(), "properties": _typed(thing)} for name, thing in things.items()]
    project.write("things.json", json.dumps(written))
    done = project.pulumi("preview", "--policy-pack", str(REPOSITORY / "policy"))
    return done.returncode, done.stdout + done.stderr


def _typed(thing: Thing) -> dict[str, Any]:
    """Properties as the kubernetes plug-in wants them: an object carries its own kind."""
    if not thing.type.startswith("kubernetes:"):
        return dict(thing.properties)
    version, _, kind = thing.type.removeprefix("kubernetes:").rpartition(":")
    return {"apiVersion": version, "kind": kind, **thing.properties}


def test_a_program_without_a_violation_passes(project: Project) -> None:
    code, said = preview(project, VALID)
    assert code == 0, said
    assert "trainyard-guardrails" in said


@pytest.fixture(scope="module")
def refused(project: Project) -> str:
    code, said = preview(project, INVALID)
    assert code != 0, said
    return said


@pytest.mark.parametrize("rule", INVALID)
def test_a_violation_of_the_rule_ends_the_preview_with_its_resource_and_fix(rule: str, refused: str) -> None:
    place = f"{rule} {rule.lower()}: "
    assert place in refused, refused
    told = refused[refused.index(place) :]
    assert "; allowed: " in told.splitlines()[0]
    assert "Fix: " in "".join(told.splitlines()[1:4])
    assert "[mandatory]" in refused


def test_no_refusal_is_a_traceback(refused: str) -> None:
    assert "Traceback" not in refused
    assert "could not judge" not in refused

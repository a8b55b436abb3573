"""The jobs program against what it does not own: the controllers' published schemas, the standard library's names, the other packages."""

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.unit.workloads.builders import cpu_job, gpu_job, rendered
from workloads.kinds import KINDS
from workloads.spec import Kind

pytestmark = pytest.mark.unit
ROOT = Path(__file__).parents[2]
WORKLOADS = ROOT / "workloads"
# Where each kind's definition lies in its controller's Go module, which the local stack's pinned go.mod names.
DEFINITIONS = {
    "mpi": ("mpi-operator", "github.com/kubeflow/mpi-operator", "manifests/base/kubeflow.org_mpijobs.yaml"),
    "volcano": ("volcano", "volcano.sh/volcano", "installer/helm/chart/volcano/crd/bases/batch.volcano.sh_jobs.yaml"),
}


@cache
def schema(kind: Kind) -> dict[str, Any]:
    """The schema that the API server checks a kind's objects against."""
    tool, module, path = DEFINITIONS[kind]
    command = ["go", "list", "-mod=mod", "-m", "-f", "{{.Dir}}", module]
    listed = subprocess.run(command, cwd=ROOT / "local" / "toolchain" / tool, capture_output=True, text=True, check=False)
    folder = listed.stdout.strip()
    assert folder, f"Go module {module} is not downloaded ({listed.stderr.strip()}): run `go mod download` in local/toolchain/{tool}"
    definition = yaml.load((Path(folder) / path).read_text(), Loader=yaml.CSafeLoader)
    version = KINDS[kind].manifest.api_version.partition("/")[2]
    assert definition["spec"]["names"]["kind"] == KINDS[kind].manifest.object_kind
    found = next(each for each in definition["spec"]["versions"] if each["name"] == version)
    return close(found["schema"]["openAPIV3Schema"])


def close(node: Any) -> Any:
    """Refuse unknown keys wherever the API server would prune them: a pruned field is a setting that silently does nothing."""
    if isinstance(node, list):
        return [close(each) for each in node]
    if not isinstance(node, dict):
        return node
    closed = {key: close(value) for key, value in node.items()}
    if "properties" in node and not node.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in node:
        closed["additionalProperties"] = False
    return closed


def job_object(values: dict[str, Any]) -> dict[str, Any]:
    known = rendered(values)
    manifest = KINDS[values["kind"]].manifest
    metadata = {"name": known.name, "namespace": "training", "labels": dict(known.labels)}
    return json.loads(
        json.dumps({"apiVersion": manifest.api_version, "kind": manifest.object_kind, "metadata": metadata, "spec": known.spec})
    )


def failures(kind: Kind, body: dict[str, Any]) -> list[str]:
    root = schema(kind)
    root["properties"]["metadata"] = {"type": "object"}
    return [f"{error.json_path}: {error.message[:200]}" for error in jsonschema.Draft202012Validator(root).iter_errors(body)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("job", [gpu_job, cpu_job])
def test_jobs_are_what_their_controller_s_schema_allows(kind, job):
    body = job_object(job(kind, deadlineSeconds=600, env={"NCCL_DEBUG": "WARN"}))
    assert failures(kind, body) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_check_finds_a_misspelt_and_a_mistyped_field(kind):
    body = job_object(gpu_job(kind))
    template = next(iter(body["spec"]["tasks"] if kind == "volcano" else body["spec"]["mpiReplicaSpecs"].values()))["template"]
    template["spec"]["schedulerNam"] = "volcano"
    template["spec"]["terminationGracePeriodSeconds"] = "sixty"
    found = "\n".join(failures(kind, body))
    assert "schedulerNam" in found
    assert "sixty" in found


def test_no_module_hides_one_of_the_standard_library():
    # The engine runs the program with its folder first on the path, so workloads/platform.py would be everybody's `platform`.
    names = {path.stem for path in WORKLOADS.glob("*.py")} | {path.name for path in WORKLOADS.iterdir() if path.is_dir()}
    assert not names & sys.stdlib_module_names


def test_the_program_imports_only_the_platform_s_contract_and_the_trainer_s_configuration():
    allowed = {"infra.outputs", "infra.labels", "infra.catalogue", "infra.component", "infra"}
    allowed |= {f"training.{name}" for name in ("batch", "config", "exit_codes", "launch", "layout", "schema")}
    for path in WORKLOADS.rglob("*.py"):
        for name in imports(path):
            if name.partition(".")[0] in ("infra", "training", "local", "trainyard", "policy", "tests"):
                assert name in allowed, f"{path.relative_to(ROOT)} imports {name}"


def test_scripts_for_pods_need_nothing_but_python():
    for path in (WORKLOADS / "pod_scripts").glob("*.py"):
        assert {name.partition(".")[0] for name in imports(path)} <= sys.stdlib_module_names, path.name


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            # `from infra import labels` is an import of infra.labels.
            found |= {f"infra.{alias.name}" for alias in node.names} if node.module == "infra" else set()
    return found

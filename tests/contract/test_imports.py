"""Who may import whom: the parts meet through small contracts, and areas of the platform never reach into each other."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit
ROOT = Path(__file__).parents[2]
OURS = {"infra", "workloads", "training", "policy", "guardrails", "local", "trainyard", "tests"}
AREAS = {"network", "cluster", "compute", "storage"}
# Configuration, arithmetic, launchers and exit codes of a run: a preview checks them without torch.
PURE_TRAINING = ("batch", "config", "exit_codes", "launch", "layout", "schema")
SHARED = {"component", "labels", "versions", "catalogue", "settings", "iam", "charts", "outputs"}


def files(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts)


def imports(path: Path) -> Iterator[str]:
    """Every module a file imports, in full; `from a import b` counts as a.b, which may be a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(path: Path) -> set[str]:
    return {name for name in imports(path) if name.partition(".")[0] in OURS}


def check(folder: str, allowed: tuple[str, ...]) -> list[tuple[str, str]]:
    """What files of `folder` import beside it and the allowed prefixes."""
    found = files(folder)
    assert found, f"{folder}/ holds no Python files"
    own = (folder, *allowed)
    return [
        (str(path.relative_to(ROOT)), name)
        for path in found
        for name in ours(path)
        if not any(name == prefix or name.startswith(f"{prefix}.") for prefix in own)
    ]


def test_the_platform_knows_no_jobs_no_training_no_local_stack():
    assert check("infra", ()) == []


def test_jobs_know_the_platform_by_its_contract_alone():
    platform = ("infra.outputs", "infra.labels", "infra.catalogue", "infra.component")
    assert check("workloads", (*platform, *(f"training.{name}" for name in PURE_TRAINING))) == []


@pytest.mark.parametrize("name", PURE_TRAINING)
def test_what_jobs_take_from_training_needs_the_standard_library_alone(name):
    path = ROOT / "training" / f"{name}.py"
    foreign = {module for module in imports(path) if module.partition(".")[0] not in sys.stdlib_module_names}
    assert foreign <= {
        module for module in foreign if module.split(".")[0] == "training" and module.split(".")[1] in (*PURE_TRAINING, "errors")
    }


def test_training_knows_neither_pulumi_nor_the_platform():
    assert check("training", ()) == []
    foreign = [(path.name, name) for path in files("training") for name in imports(path) if name.partition(".")[0].startswith("pulumi")]
    assert foreign == []


def test_the_policy_pack_is_usable_without_the_rest():
    assert check("policy", ("guardrails",)) == []


def test_the_local_stack_takes_only_facts_from_the_platform():
    assert check("local", ("infra.versions", "infra.labels", "infra.catalogue", "trainyard")) == []


@pytest.mark.parametrize("area", sorted(AREAS | {"addons", "iam", "charts", "settings"}))
def test_an_area_of_the_platform_never_imports_another(area):
    wrong = [
        (str(path.relative_to(ROOT)), name)
        for path in files(f"infra/{area}")
        for name in ours(path)
        if name.split(".")[1] not in SHARED | {area}
    ]
    assert wrong == []


@pytest.mark.parametrize("module", ["labels", "versions", "catalogue"])
def test_facts_cost_no_sdk(module):
    assert not [name for name in imports(ROOT / "infra" / f"{module}.py") if name.startswith("pulumi")]


def test_the_root_program_only_wires():
    text = (ROOT / "__main__.py").read_text()
    assert len(text.splitlines()) < 80
    assert {name.partition(".")[0] for name in imports(ROOT / "__main__.py")} <= {"infra", "pulumi"}

"""What the pack's folder asks another team to install is what it imports, at the versions that it is tested with."""

import ast
import importlib.metadata
import re
import sys
from collections.abc import Iterable

import pytest

from local.paths import REPOSITORY

pytestmark = pytest.mark.unit

POLICY = REPOSITORY / "policy"


def _pins(name: str) -> dict[str, str]:
    """Distributions and versions of a file of requirements."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (REPOSITORY / name).read_text(), re.MULTILINE))


def _name(requirement: str) -> str:
    """A requirement's distribution, spelt as distributions are compared."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def _with_needed(names: Iterable[str]) -> set[str]:
    """The distributions with everything that they bring along; what a marker leaves out is not installed."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name in found:
            continue
        try:
            needed = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        left += [_name(each) for each in needed if "extra ==" not in each]
    return found


def _imports() -> set[str]:
    """Top-level modules that any file of the folder imports, at its head or within a function."""
    found: set[str] = set()
    for path in POLICY.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"guardrails"}


def _providers(module: str) -> set[str]:
    """The installed distributions that bring a module."""
    return {_name(each) for each in importlib.metadata.packages_distributions().get(module, ())}


def test_a_team_with_only_the_folder_can_install_all_it_imports() -> None:
    installed = _with_needed(_pins("policy/requirements.txt"))
    missing = sorted(module for module in _imports() if not installed & _providers(module))
    assert not missing, f"policy/requirements.txt names nothing that brings {missing}"


def test_the_folder_asks_for_the_versions_of_the_lock() -> None:
    asked, locked = _pins("policy/requirements.txt"), _pins("requirements.lock")
    assert asked == {name: locked.get(name) for name in asked}


def test_the_folder_asks_for_nothing_that_it_does_not_import() -> None:
    imported = {name for module in _imports() for name in _providers(module)}
    assert set(_pins("policy/requirements.txt")) <= imported

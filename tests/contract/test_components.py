"""Every component keeps the form: its token, its children below it, its arguments plain and documented, its outputs registered."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
import textwrap

import pulumi
import pytest

import infra
from infra.component import PACKAGE
from tests.unit.infra.builders import ROOT, platform

pytestmark = pytest.mark.unit


def component_classes() -> list[type[pulumi.ComponentResource]]:
    """Every component class that infra defines."""
    found = []
    for module in pkgutil.walk_packages(infra.__path__, "infra."):
        if module.name.endswith("__main__"):
            continue
        for _, member in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(member, pulumi.ComponentResource) and member.__module__ == module.name:
                found.append(member)
    return found


COMPONENTS = component_classes()
# Placement is made for pools that ask for one, so all classes appear in the recording.
# Sorted, since components register in no fixed order and workers must collect the same tests.
REGISTERED = sorted((entry for entry in platform().registrations if entry.type.startswith(f"{PACKAGE}:")), key=lambda entry: entry.name)


def area(component: type) -> str:
    return component.__module__.split(".")[1]


def token(component: type) -> str:
    return f"{PACKAGE}:{area(component)}:{component.__name__}"


def ids(component: type) -> str:
    return component.__name__


def test_the_recording_shows_every_component():
    assert len(COMPONENTS) > 20
    assert {token(component) for component in COMPONENTS} == {entry.type for entry in REGISTERED}, "a token is <package>:<folder>:<class>"


def test_only_the_platform_stands_at_the_top():
    recording = platform()
    stack = recording.of_type("pulumi:pulumi:Stack")[0].urn
    top = [entry.type for entry in recording.registrations if entry.parent == stack]
    assert sorted(top) == ["pulumi:providers:aws", f"{PACKAGE}:platform:Platform"]


@pytest.mark.parametrize("entry", REGISTERED, ids=lambda entry: entry.name)
def test_a_component_s_children_are_named_after_it_or_its_parent(entry):
    root = platform().one(f"{PACKAGE}:platform:Platform").name
    children = [child for child in platform().registrations if child.parent == entry.urn]
    assert children or entry.type.endswith(":Placement")
    assert [child.name for child in children if not child.name.startswith((entry.name, root))] == []


@pytest.mark.parametrize("entry", REGISTERED, ids=lambda entry: entry.name)
def test_a_component_registers_its_outputs_once_it_is_complete(entry):
    assert entry.urn in platform().component_outputs


@pytest.mark.parametrize("component", COMPONENTS, ids=ids)
def test_registered_outputs_are_attributes_declared_on_the_class(component):
    tree = ast.parse(textwrap.dedent(inspect.getsource(component)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "register_outputs"]
    assert len(calls) == 1, "a component ends with one register_outputs"
    (registered,) = calls[0].args
    assert isinstance(registered, ast.Dict)
    keys = {key.value for key in registered.keys if isinstance(key, ast.Constant)}
    assert len(keys) == len(registered.keys)
    # What a component says of itself without being asked: plain facts, and fields of the contract.
    facts = {"name", "versions", "status", "cluster_name", "namespace"}
    assert keys <= set(inspect.get_annotations(component)) | facts


@pytest.mark.parametrize("component", [component for component in COMPONENTS if component.__name__ != "Platform"], ids=ids)
def test_arguments_are_a_frozen_dataclass_of_documented_fields(component):
    name, args, *rest = list(inspect.signature(component.__init__).parameters.values())[1:]
    assert name.name == "name"
    assert args.name == "args"
    assert [parameter.name for parameter in rest] == ["opts"]
    kind = args.annotation
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert all(field.kw_only for field in dataclasses.fields(kind))
    documented = re.findall(r'^    (\w+):[^\n]*\n    """', inspect.getsource(kind), re.MULTILINE)
    assert [field.name for field in dataclasses.fields(kind)] == documented, "every field has a doc string under it"


def python_files():
    return sorted((ROOT / "infra").rglob("*.py"))


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 250
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    long = [node.name for node in functions if (node.end_lineno or 0) - node.lineno + 1 > 60]
    assert not long


def resource_option_calls(path):
    """Calls that set a resource option other than parent and order, with the line above each."""
    lines = path.read_text().splitlines()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "child_options":
            extra = {keyword.arg for keyword in node.keywords} - {None}
            if extra - {"providers"}:
                yield node.lineno, extra, lines


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_resource_option_has_its_reason_above_it(path):
    bare = []
    for line, extra, lines in resource_option_calls(path):
        if extra == {"protect"}:
            continue
        above = "\n".join(lines[max(line - 4, 0) : line])
        if "#" not in above:
            bare.append((line, extra))
    assert not bare


def test_no_component_module_postpones_its_annotations():
    assert not [path for path in python_files() if "from __future__ import annotations" in path.read_text()]

"""What is built, in which version, and under which key."""

import dataclasses
import re
from pathlib import Path

import pytest

from infra import versions
from local.errors import LocalStackError
from local.paths import REPOSITORY
from local.toolchain.builds import Build, ModuleFile, catalogue, pinned_version

pytestmark = pytest.mark.unit


def test_every_member_of_a_group_is_a_build_or_a_chart() -> None:
    known = catalogue()
    assert known.expand(known.groups) == [name for members in known.groups.values() for name in members]


def test_an_unknown_tool_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LocalStackError, match=r"no tool named 'kubelett'; known: .*kubelet"):
        catalogue().expand(["kubelett"])


def test_what_is_built_has_the_versions_that_the_platform_installs() -> None:
    known = catalogue()
    assert known.builds["karpenter"].version == known.charts["karpenter-chart"].version == versions.KARPENTER
    assert known.builds["vc-scheduler"].version == known.charts["volcano-chart"].version == versions.VOLCANO
    assert known.builds["mpi-operator"].version == versions.MPI_OPERATOR
    assert known.builds["kubelet"].version.startswith(f"{versions.KUBERNETES}.")


def test_the_kubernetes_plugin_has_the_version_of_the_python_sdk() -> None:
    locked = re.search(r"^pulumi-kubernetes==(\S+)", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)
    assert locked is not None
    assert catalogue().builds["pulumi-resource-kubernetes"].version == locked[1]


def test_the_engine_is_told_its_version_and_the_kubelet_its_minor_one() -> None:
    builds = catalogue().builds
    assert builds["pulumi"].ldflags.endswith(f"version.Version=v{builds['pulumi'].version}")
    assert " -X k8s.io/component-base/version.gitMinor=36 " in builds["kubelet"].ldflags


def test_a_module_that_is_not_pinned_is_named(module: Build) -> None:
    assert pinned_version(module.folder, "example.dev/library") == "1.2.3"
    with pytest.raises(LocalStackError, match=r"requires no module example.dev/other"):
        pinned_version(module.folder, "example.dev/other")


def test_a_folder_that_is_no_module_is_named(tmp_path: Path, module: Build) -> None:
    with pytest.raises(LocalStackError, match=r"elsewhere holds no go.mod, though builds.toml says tool is built there"):
        _ = dataclasses.replace(module, folder=tmp_path / "elsewhere").key


@pytest.mark.parametrize("file", ["main.go", "go.mod", "go.sum"])
def test_a_changed_source_or_pin_is_another_build(module: Build, file: str) -> None:
    before = module.key
    with (module.folder / file).open("a") as source:
        source.write("// changed\n")
    assert module.key != before


def test_changed_flags_or_copied_files_are_another_build(module: Build) -> None:
    copied = {"schema.json": ModuleFile(module="example.dev/library", path="schema.json")}
    variants = [module, dataclasses.replace(module, ldflags="-s -w"), dataclasses.replace(module, embed=copied)]
    assert len({build.key for build in variants}) == 3


def test_a_file_that_does_not_enter_the_binary_is_no_other_build(module: Build) -> None:
    before = module.key
    (module.folder / "README.md").write_text("about it")
    (module.folder / "main_test.go").write_text("package main\n")
    assert module.key == before

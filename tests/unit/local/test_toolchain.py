"""The toolchain's decisions: what is built under which key, what is taken as installed, and what a machine is told it lacks."""

import ast
import dataclasses
import re
import sys
import threading
import time
from pathlib import Path

import pytest

from infra import versions
from local.errors import LocalStackError
from local.paths import REPOSITORY
from local.progress import Progress
from local.toolchain import engine, environments, go, selection, store, system
from local.toolchain.builds import Build, ModuleFile, catalogue, pinned_version
from local.toolchain.system import SystemPackage

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TRAINYARD_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi-home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))


@pytest.fixture
def progress(tmp_path: Path) -> Progress:
    return Progress(tmp_path / "log", total=0)


@pytest.fixture
def module(tmp_path: Path) -> Build:
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("module example.dev/tool\n\ngo 1.26\n\nrequire (\n\texample.dev/library v1.2.3 // indirect\n)\n")
    (folder / "go.sum").write_text("example.dev/library v1.2.3 h1:abc=\n")
    (folder / "main.go").write_text("package main\n\nfunc main() {}\n")
    return Build(name="tool", folder=folder, package=".", version="1.2.3", ldflags="-s")


# What is built


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


# The store


@pytest.fixture
def builder(module: Build, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The store with one build in its catalogue; the list records what Go was asked to build."""
    asked: list[str] = []

    def build_binary(_go: str, build: Build, output: Path, _progress: Progress) -> None:
        asked.append(build.name)
        time.sleep(0.05)
        (output / build.name).write_text("binary")

    listed = dataclasses.replace(catalogue(), builds={"tool": module}, charts={}, groups={"ALL": ("tool",)})
    monkeypatch.setattr(store, "catalogue", lambda: listed)
    monkeypatch.setattr(store, "go_command", lambda: "go")
    monkeypatch.setattr(store, "build_binary", build_binary)
    return asked


def test_a_tool_is_built_once(builder: list[str], module: Build, progress: Progress) -> None:
    assert store.pending(["ALL"]) == ["tool"]
    first, second = store.build(["ALL"], progress), store.build(["ALL"], progress)
    assert first == second
    assert first["tool"].read_text() == "binary"
    assert first["tool"].parent.name == f"tool-1.2.3-{module.key}"
    assert builder == ["tool"]
    assert store.pending(["ALL"]) == []


def test_a_failed_build_leaves_nothing_that_looks_whole(builder: list[str], progress: Progress, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_go: str, build: Build, output: Path, _progress: Progress) -> None:
        (output / build.name).write_text("half a binary")
        raise LocalStackError("no space left")

    monkeypatch.setattr(store, "build_binary", fails)
    with pytest.raises(LocalStackError, match="no space left"):
        store.build(["tool"], progress)
    assert [path.name for path in store.location("tool").parent.parent.iterdir()] == [".lock"]


def test_two_that_need_a_tool_at_once_build_it_once(builder: list[str], tmp_path: Path) -> None:
    both = [threading.Thread(target=store.build, args=(["tool"], Progress(tmp_path / f"log{n}", total=0))) for n in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert builder == ["tool"]
    assert store.location("tool").exists()


def test_no_go_is_needed_where_all_is_built(builder: list[str], progress: Progress, monkeypatch: pytest.MonkeyPatch) -> None:
    store.build(["tool"], progress)
    monkeypatch.setattr(store, "go_command", lambda: pytest.fail("Go was looked for"))
    store.build(["tool"], progress)


def test_a_missing_go_is_said_with_the_version_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(go.shutil, "which", lambda *_args, **_kwargs: None)
    with pytest.raises(LocalStackError, match=r"Go 1\.26 or newer is needed .* no `go` is on PATH"):
        go.go_command()


@pytest.mark.parametrize(("found", "usable"), [("go1.19.8", False), ("go1.26.0", True), ("go1.27rc1", True), ("devel", False)])
def test_only_a_recent_go_is_used(found: str, usable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = go.subprocess.CompletedProcess([], 0, stdout=f"{found}\n")
    monkeypatch.setattr(go.shutil, "which", lambda *_args, **_kwargs: "/usr/bin/go")
    monkeypatch.setattr(go.subprocess, "run", lambda *_args, **_kwargs: answer)
    if usable:
        assert go.go_command() == "/usr/bin/go"
    else:
        with pytest.raises(LocalStackError, match=rf"/usr/bin/go is {found}"):
            go.go_command()


# Installed, built or a stand-in


def put(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, selection.Version]:
    """What the executables on PATH say when they are asked for their version."""
    versions_by_name: dict[str, selection.Version] = {}
    monkeypatch.setattr(selection, "_ask_version", lambda executable, _argument: versions_by_name.get(executable.name))
    return versions_by_name


def test_an_installed_cli_that_is_recent_enough_is_used_with_its_language_host(tmp_path: Path, answers: dict) -> None:
    cli, host = (put(tmp_path / "path" / name) for name in ("pulumi", "pulumi-language-python"))
    answers["pulumi"] = (3, 900, 0)
    chosen = [selection.choose(name) for name in ("pulumi", "pulumi-language-python")]
    assert [(status.source, status.path, status.version) for status in chosen] == [
        ("installed", cli, "3.900.0"),
        ("installed", host, "3.900.0"),
    ]


def test_a_cli_that_is_too_old_is_left_alone_and_said_so(tmp_path: Path, answers: dict) -> None:
    put(tmp_path / "path" / "pulumi")
    put(tmp_path / "path" / "pulumi-language-python")
    answers["pulumi"] = (3, 1, 0)
    cli, host = (selection.choose(name) for name in ("pulumi", "pulumi-language-python"))
    assert cli.source == host.source == "missing"
    assert f"path/pulumi is 3.1.0, {catalogue().builds['pulumi'].version} is needed" in cli.why


def test_a_language_host_without_its_cli_is_not_used(tmp_path: Path, answers: dict) -> None:
    put(tmp_path / "path" / "pulumi-language-python")
    assert selection.choose("pulumi-language-python").source == "missing"


def test_the_newest_whole_plugin_of_the_users_is_used(tmp_path: Path) -> None:
    plugins = tmp_path / "pulumi-home" / "plugins"
    for version in ("7.60.0", "7.90.0", "8.0.0"):
        put(plugins / f"resource-aws-v{version}" / "pulumi-resource-aws")
    (plugins / "resource-aws-v8.0.0.partial").touch()
    status = selection.choose("pulumi-resource-aws")
    assert (status.source, status.version) == ("installed", "7.90.0")
    assert status.path == plugins / "resource-aws-v7.90.0" / "pulumi-resource-aws"


def test_a_plugin_older_than_its_sdk_gives_way_to_the_stand_in(tmp_path: Path) -> None:
    put(tmp_path / "pulumi-home" / "plugins" / "resource-aws-v6.0.0" / "pulumi-resource-aws")
    status = selection.choose("pulumi-resource-aws")
    assert (status.source, status.path) == ("stand-in", None)
    assert "is 6.0.0" in status.why
    assert f"pulumi plugin install resource aws v{status.version}" in status.why


def test_a_plugin_on_path_that_says_no_version_is_not_trusted(tmp_path: Path, answers: dict) -> None:
    put(tmp_path / "path" / "pulumi-resource-aws")
    status = selection.choose("pulumi-resource-aws")
    assert status.source == "stand-in"
    assert "of unknown version" in status.why


# The engine's environment


@pytest.fixture
def built() -> None:
    for name in ("pulumi", "pulumi-language-python", "pulumi-resource-kubernetes"):
        put(store.location(name))


def launcher(name: str) -> Path:
    kind = name.removeprefix("pulumi-")
    return store.Path(engine.engine_environment()["PULUMI_HOME"]) / "plugins" / f"{kind}-v{selection.required_version(name)}" / name


def test_stand_ins_lie_where_the_engine_looks_for_the_sdks_version(built: None) -> None:
    script = launcher("pulumi-resource-aws").read_text()
    assert "local.toolchain.standin local.plugins.aws" in script
    assert sys.executable in script
    assert str(store.location("pulumi-resource-kubernetes")) in launcher("pulumi-resource-kubernetes").read_text()


def test_a_stand_in_goes_once_the_genuine_plugin_is_installed(built: None, tmp_path: Path) -> None:
    engine.engine_environment()
    genuine = put(tmp_path / "pulumi-home" / "plugins" / "resource-aws-v9.0.0" / "pulumi-resource-aws")
    script = launcher("pulumi-resource-aws").read_text()
    assert str(genuine) in script
    assert "standin" not in script


def test_an_installed_plugin_without_an_executable_is_linked_by_its_own_name(built: None, tmp_path: Path) -> None:
    version = selection.required_version("pulumi-resource-eks")
    folder = tmp_path / "pulumi-home" / "plugins" / f"resource-eks-v{version}"
    put(folder / "PulumiPlugin.yaml", "runtime: nodejs\n")
    link = launcher("pulumi-resource-eks").parent
    assert link.is_symlink()
    assert link.resolve() == folder
    # Without it the stand-in comes back, in a folder of ours and not in the user's.
    (folder / "PulumiPlugin.yaml").unlink()
    folder.rmdir()
    assert "local.plugins.eks" in launcher("pulumi-resource-eks").read_text()
    assert not folder.exists()


def test_the_cli_and_the_language_host_lie_side_by_side(built: None) -> None:
    binaries = Path(engine.engine_environment()["PATH"].split(":")[0])
    assert (binaries / "pulumi").samefile(store.location("pulumi"))
    assert str(store.location("pulumi-language-python")) in (binaries / "pulumi-language-python").read_text()


def test_the_local_stack_downloads_nothing_and_keeps_its_own_state(built: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "of-the-user")
    environment = engine.engine_environment()
    assert environment["PULUMI_BACKEND_URL"] == f"file://{tmp_path / 'state' / 'pulumi'}"
    assert environment["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    assert "PULUMI_ACCESS_TOKEN" not in environment
    passphrase = Path(environment["PULUMI_CONFIG_PASSPHRASE_FILE"])
    assert passphrase.stat().st_mode & 0o077 == 0
    before = passphrase.read_text()
    engine.engine_environment()
    assert passphrase.read_text() == before


def test_a_stack_on_aws_has_the_users_settings_and_no_stand_ins(built: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "of-the-user")
    environment = engine.engine_environment(local=False)
    assert environment["PULUMI_ACCESS_TOKEN"] == "of-the-user"
    assert environment["PULUMI_HOME"] == str(tmp_path / "pulumi-home")
    assert "PULUMI_BACKEND_URL" not in environment
    assert not (tmp_path / "state" / "engine" / "home").exists()


def test_what_is_not_built_yet_is_named() -> None:
    with pytest.raises(LocalStackError, match=r"pulumi is neither installed nor built yet .* `make setup` builds it"):
        engine.engine_environment()


# Locks, packages, the bootstrap


@pytest.mark.parametrize(
    "lock", [environments.INFRA_LOCK, environments.TRAINING_LOCK, environments.BOOTSTRAP_LOCK], ids=lambda path: path.name
)
def test_every_locked_package_has_a_version_and_hashes_and_no_index(lock: Path) -> None:
    entries = [
        entry for entry in re.split(r"^(?=[A-Za-z0-9])", lock.read_text(), flags=re.MULTILINE) if entry and not entry.startswith("#")
    ]
    assert entries
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._\[\]-]+==\S+", entry), entry.splitlines()[0]
        assert "--hash=sha256:" in entry, entry.splitlines()[0]
    assert "://" not in lock.read_text()
    assert "index-url" not in lock.read_text()


def test_deepspeed_is_installed_after_all_else_with_its_own_hashes() -> None:
    first, second = environments._split_lock(environments.TRAINING_LOCK, "deepspeed")
    assert re.match(r"deepspeed==\S+ \\\n    --hash=sha256:[0-9a-f]{64}\n", second)
    assert "deepspeed" not in first
    assert "\ntorch==" in first
    whole = environments.TRAINING_LOCK.read_text().splitlines()
    assert sorted(first.splitlines() + second.splitlines()) == sorted(whole)


def test_another_lock_is_another_environment(tmp_path: Path) -> None:
    lock = put(tmp_path / "lock", "a==1\n")
    before = environments._key([lock], (3, 11))
    assert environments._key([lock], (3, 12)) != before
    lock.write_text("a==2\n")
    assert environments._key([lock], (3, 11)) != before


def test_an_environment_is_ready_only_with_its_key_and_its_python(tmp_path: Path) -> None:
    put(tmp_path / "env" / "bin" / "python")
    assert not environments._is_ready(tmp_path / "env", "11112222")
    environments._remember(tmp_path / "env", "11112222")
    assert environments._is_ready(tmp_path / "env", "11112222")
    assert not environments._is_ready(tmp_path / "env", "33334444")


ABSENT = SystemPackage(name="absent-tool", probe="/nonexistent/absent-tool", purpose="the test")


def test_missing_packages_are_named_with_the_command_for_one_who_is_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.shutil, "which", lambda *_args, **_kwargs: "/usr/bin/apt-get")
    monkeypatch.setattr(system.os, "geteuid", lambda: 1000)
    with pytest.raises(
        LocalStackError, match=r"absent-tool \(the test\)\. Run: sudo apt-get install -y --no-install-recommends absent-tool$"
    ):
        system.ensure_packages([ABSENT])


def test_missing_packages_are_named_where_there_is_no_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.shutil, "which", lambda *_args, **_kwargs: None)
    with pytest.raises(LocalStackError, match=r"absent-tool \(the test\)\. Install what your system calls them"):
        system.ensure_packages([ABSENT])


def test_nothing_is_installed_where_nothing_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.subprocess, "run", lambda *_args, **_kwargs: pytest.fail("a command was run"))
    there = SystemPackage(name="there", probe=str(put(tmp_path / "there")), purpose="the test")
    assert system.ensure_packages([there]) == []


@pytest.mark.parametrize(
    "name", ["toolchain/__init__", "toolchain/bootstrap", "toolchain/environments", "toolchain/system", "paths", "errors"]
)
def test_the_bootstrap_needs_nothing_but_the_standard_library(name: str) -> None:
    tree = ast.parse((REPOSITORY / "local" / f"{name}.py").read_text())
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = {"local.paths", "local.errors", "local.toolchain.environments", "local.toolchain.system"}
    assert [module for module in imported if module.split(".")[0] not in sys.stdlib_module_names and module not in ours] == []

"""A cache, a state folder and a PATH of each test's own, and a small Go module."""

from pathlib import Path

import pytest

from local.progress import Progress
from local.toolchain import selection, store
from local.toolchain.builds import Build
from tests.unit.local.toolchain.executables import put


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


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, selection.Version]:
    """What the executables on PATH say when they are asked for their version."""
    versions_by_name: dict[str, selection.Version] = {}
    monkeypatch.setattr(selection, "_ask_version", lambda executable, _argument: versions_by_name.get(executable.name))
    return versions_by_name


@pytest.fixture
def built() -> None:
    for name in ("pulumi", "pulumi-language-python", "pulumi-resource-kubernetes"):
        put(store.location(name))

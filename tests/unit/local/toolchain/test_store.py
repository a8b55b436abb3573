"""The store of built tools: filled once, whole or not at all; and which Go fills it."""

import dataclasses
import threading
import time
from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.progress import Progress
from local.toolchain import go, store
from local.toolchain.builds import Build, catalogue
from tests.unit.local.toolchain.executables import put

pytestmark = pytest.mark.unit


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


def test_what_a_killed_build_left_goes_with_the_next_build(builder: list[str], progress: Progress) -> None:
    left = put(store.location("tool").parent.parent / ".tool-1.2.3-00000000.4711" / "tool").parent
    store.build(["tool"], progress)
    assert not left.exists()
    assert store.location("tool").exists()


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

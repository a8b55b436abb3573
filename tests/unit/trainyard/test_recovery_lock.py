"""A live engine is never robbed of its lock."""

import json
import os
import socket
from pathlib import Path

import pytest

from trainyard.recovery import lock

pytestmark = pytest.mark.unit


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    folder = tmp_path / "pulumi state" / ".pulumi" / "locks" / "organization" / "trainyard" / "dev"
    folder.mkdir(parents=True)
    return folder


def environment(tmp_path: Path) -> dict[str, str]:
    return {"PULUMI_BACKEND_URL": f"file://{tmp_path}/pulumi%20state"}


def hold(locks: Path, **changes: object) -> None:
    (locks / "a.json").write_text(json.dumps({"pid": os.getpid(), "hostname": socket.gethostname(), **changes}))


def called(name: str, monkeypatch: pytest.MonkeyPatch, state: str = "S") -> None:
    """Let every process be called `name`."""
    monkeypatch.setattr(Path, "read_text", _reading(f"7 ({name}) {state} 1 7", Path.read_text))


def _reading(stat: str, original):
    return lambda path, *args, **kwargs: stat if str(path).startswith("/proc/") else original(path, *args, **kwargs)


def test_a_running_engine_is_named(locks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hold(locks)
    called("pulumi", monkeypatch)
    assert lock.running_engine(environment(tmp_path), "trainyard", "dev") == os.getpid()


@pytest.mark.parametrize(("name", "state"), [("python3", "S"), ("pulumi", "Z")])
def test_another_program_or_a_dead_engine_holds_nothing(
    locks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, state: str
):
    hold(locks)
    called(name, monkeypatch, state)
    assert lock.running_engine(environment(tmp_path), "trainyard", "dev") is None


def test_a_process_that_is_gone_holds_nothing(locks: Path, tmp_path: Path):
    hold(locks, pid=2**22 + 1)
    assert lock.running_engine(environment(tmp_path), "trainyard", "dev") is None


@pytest.mark.parametrize("change", [{"hostname": "elsewhere"}])
def test_what_another_machine_does_is_not_known_here(locks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, str]):
    hold(locks, **change)
    called("pulumi", monkeypatch)
    assert lock.running_engine(environment(tmp_path), "trainyard", "dev") is None


def test_a_lock_of_another_stack_is_no_concern(locks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hold(locks)
    called("pulumi", monkeypatch)
    assert lock.running_engine(environment(tmp_path), "trainyard", "prod") is None


def test_a_lock_file_cut_short_by_the_kill_is_held_by_nobody(locks: Path, tmp_path: Path):
    (locks / "a.json").write_text('{"pid": ')
    assert lock.running_engine(environment(tmp_path), "trainyard", "dev") is None


@pytest.mark.parametrize("backend", [{}, {"PULUMI_BACKEND_URL": "s3://bucket"}])
def test_only_a_backend_of_files_can_be_looked_into(backend: dict[str, str]):
    assert lock.running_engine(backend, "trainyard", "dev") is None

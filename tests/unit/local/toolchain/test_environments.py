"""Locks, Debian packages and the bootstrap."""

import ast
import re
import sys
from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.paths import REPOSITORY
from local.toolchain import environments, system
from local.toolchain.system import SystemPackage
from tests.unit.local.toolchain.executables import put

pytestmark = pytest.mark.unit


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

"""The environment that the Pulumi CLI is run in."""

import sys
from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.toolchain import engine, selection, store
from tests.unit.local.toolchain.executables import put

pytestmark = pytest.mark.unit


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


def test_what_lies_in_our_own_folder_on_path_is_not_taken_for_installed(
    built: None, answers: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers["pulumi"] = (99, 0, 0)
    environment = engine.engine_environment()
    monkeypatch.setenv("PATH", environment["PATH"])
    assert selection.choose("pulumi").source == "built"
    binaries = Path(engine.engine_environment()["PATH"].split(":")[0])
    assert (binaries / "pulumi").exists()


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

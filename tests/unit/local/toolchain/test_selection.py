"""What is taken as installed, what is built, and where a stand-in serves."""

from pathlib import Path

import pytest

from local.toolchain import selection
from local.toolchain.builds import catalogue
from tests.unit.local.toolchain.executables import put

pytestmark = pytest.mark.unit


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

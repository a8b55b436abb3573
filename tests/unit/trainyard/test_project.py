"""The configuration that a stack runs with."""

from pathlib import Path

import pytest
import yaml

from local.errors import LocalStackError
from trainyard.project import LOCAL_STACK, Project, merge, read_config, write_effective_config

pytestmark = pytest.mark.unit


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TRAINYARD_STATE", str(tmp_path / "state"))
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / f"Pulumi.{LOCAL_STACK}.yaml").write_text("config:\n  p:aws: {region: eu-west-1}\n  p:protect: false\n")
    return Project(name="p", title="program", folder=folder)


@pytest.mark.parametrize(
    ("base", "extra", "merged"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        # A list is one value: half of the old one would be neither.
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
    ],
)
def test_what_is_found_goes_over_what_is_committed(base: dict, extra: dict, merged: dict):
    assert merge(base, extra) == merged


def test_merging_changes_neither_side():
    base, extra = {"a": {"b": 1}}, {"a": {"c": 2}}
    merge(base, extra)
    assert (base, extra) == ({"a": {"b": 1}}, {"a": {"c": 2}})


def test_the_effective_file_holds_both_and_the_committed_one_stays(project: Project):
    committed = project.config_file(LOCAL_STACK).read_text()
    file = write_effective_config(project, {"p:aws": {"endpoint": "http://127.0.0.1:1"}})
    assert read_config(file) == {"p:aws": {"region": "eu-west-1", "endpoint": "http://127.0.0.1:1"}, "p:protect": False}
    assert project.config_file(LOCAL_STACK).read_text() == committed
    assert file.parent == project.effective_folder()
    assert yaml.safe_load((file.parent / "Pulumi.yaml").read_text())["name"] == "p"


def test_the_salt_of_the_stacks_encryption_survives(project: Project):
    file = write_effective_config(project, {})
    written = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({"encryptionsalt": "v1:salt", **written}))
    assert yaml.safe_load(write_effective_config(project, {}).read_text())["encryptionsalt"] == "v1:salt"


def test_a_setting_that_is_no_longer_found_goes(project: Project):
    write_effective_config(project, {"p:kubernetes": {"kubeconfig": "/tmp/x"}})
    assert "p:kubernetes" not in read_config(write_effective_config(project, {}))


@pytest.mark.parametrize(
    ("text", "told"),
    [(None, "Pulumi.local.yaml is missing"), ("config: [", "no valid YAML"), ("- a\n", "must hold a mapping")],
)
def test_a_bad_file_is_named(project: Project, text: str | None, told: str):
    file = project.config_file(LOCAL_STACK)
    file.unlink()
    if text is not None:
        file.write_text(text)
    with pytest.raises(LocalStackError, match=told):
        read_config(file)


def test_a_file_without_settings_has_none(project: Project):
    project.config_file(LOCAL_STACK).write_text("encryptionsalt: v1:salt\n")
    assert read_config(project.config_file(LOCAL_STACK)) == {}

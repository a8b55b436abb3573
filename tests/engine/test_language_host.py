"""The Python language host under the real engine: what a program and a policy pack get, and that nothing of them is left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.progress import Progress
from local.toolchain.engine import engine_environment
from local.toolchain.selection import choose, required_version
from local.toolchain.tools import ENGINE, ensure
from tests.engine.pulumi_project import Project, processes_under, runtime_file, until

pytestmark = pytest.mark.engine

PROGRAM = """
import pulumi

config = pulumi.Config()


class Thing(pulumi.ComponentResource):
    def __init__(self, name: str) -> None:
        super().__init__("tiny:index:Thing", name, {"size": config.get_int("size") or 1})
        self.register_outputs({})


Thing("a")
pulumi.export("token", config.get_secret("token"))
pulumi.export("organization", pulumi.get_organization())
"""
PACK = """
import os

import pulumi
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy


def limit_size(args, report_violation):
    if args.resource_type == "tiny:index:Thing" and args.props["size"] > 5:
        seen = pulumi.Config("tiny").get("size"), pulumi.get_stack(), os.getcwd()
        report_violation(f"size is over 5; the pack sees {seen}")


rule = ResourceValidationPolicy(name="limit-size", description="small things only", validate=limit_size)
PolicyPack(name="pack", enforcement_level=EnforcementLevel.MANDATORY, policies=[rule])
"""


@pytest.fixture(scope="module")
def own_host() -> None:
    ensure([ENGINE], Progress(Path(os.environ.get("TMPDIR", "/tmp")) / "trainyard-test-build.log", total=0))
    if choose("pulumi-language-python").source != "built":
        pytest.skip("an installed CLI brings its own language host")


@pytest.fixture
def project(own_host: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TRAINYARD_STATE", str(tmp_path / "state"))
    return Project(tmp_path / "project", engine_environment(), PROGRAM)


def test_a_program_gets_its_configuration_and_secrets_stay_secret(project: Project) -> None:
    project.pulumi("config", "set", "--secret", "token", "s3same")
    up = project.pulumi("up", "--yes", "--config", "size=3")
    assert up.returncode == 0, up.stdout + up.stderr
    assert "s3same" not in up.stdout + up.stderr
    # Nothing may be found on PATH that the engine has to warn about.
    assert "warning" not in up.stdout + up.stderr
    state = json.loads(project.pulumi("stack", "export").stdout)["deployment"]["resources"]
    assert next(resource for resource in state if resource["type"] == "tiny:index:Thing")["inputs"] == {"size": 3}
    outputs = json.loads(project.pulumi("stack", "output", "--json", "--show-secrets").stdout)
    assert outputs == {"token": "s3same", "organization": "organization"}
    assert json.loads(project.pulumi("stack", "output", "--json").stdout)["token"] == "[secret]"


def test_a_failing_program_is_shown_from_its_own_first_line_once(project: Project) -> None:
    project.write("__main__.py", "def deep():\n    raise ValueError('planned fault')\n\n\ndeep()\n")
    preview = project.pulumi("preview")
    shown = preview.stdout + preview.stderr
    assert preview.returncode != 0
    assert shown.count("ValueError: planned fault") == 1
    assert 'File "' + str(project.folder / "__main__.py") in shown
    # Neither the runner's frames nor a second error about the exit status: the message has been shown.
    assert "pulumi-language-python-exec" not in shown
    assert "exit status" not in shown


def test_a_program_that_ends_with_a_status_of_its_own_fails_with_it(project: Project) -> None:
    project.write("__main__.py", "import os\n\nos._exit(3)\n")
    preview = project.pulumi("preview")
    assert preview.returncode != 0
    assert "the program ended with exit status 3" in preview.stdout + preview.stderr


def test_a_missing_virtual_environment_is_named(project: Project) -> None:
    project.write("Pulumi.yaml", runtime_file("name: tiny\n", virtualenv="nowhere"))
    preview = project.pulumi("preview")
    assert preview.returncode != 0
    assert str(project.folder / "nowhere") in preview.stdout + preview.stderr


@pytest.mark.parametrize(
    ("option", "value", "allowed"), [("toolchain", "conda", "auto, pip, poetry, uv"), ("typechecker", "guess", "mypy, pyright")]
)
def test_an_unknown_runtime_option_is_refused_with_the_known_ones(project: Project, option: str, value: str, allowed: str) -> None:
    project.write("Pulumi.yaml", runtime_file("name: tiny\n", virtualenv=sys.prefix, **{option: value}))
    preview = project.pulumi("preview")
    assert preview.returncode != 0
    assert f'runtime option {option}: "{value}" is none of {allowed}' in preview.stdout + preview.stderr


def test_the_installed_sdks_tell_the_engine_which_plugins_they_need(project: Project) -> None:
    about = project.pulumi("about", "--json")
    plugins = {plugin["name"]: plugin["version"] for plugin in json.loads(about.stdout)["plugins"]}
    assert {name: plugins[name] for name in ("aws", "eks", "kubernetes")} == {
        name: required_version(f"pulumi-resource-{name}") for name in ("aws", "eks", "kubernetes")
    }


def test_the_packages_of_the_environment_are_listed_without_pip(project: Project) -> None:
    about = json.loads(project.pulumi("about", "--transitive", "--json").stdout)
    dependencies = {item["name"]: item["version"] for item in about["dependencies"]}
    assert dependencies["pulumi-aws"] == required_version("pulumi-resource-aws")


def test_a_policy_pack_sees_the_stack_and_stops_the_preview(project: Project) -> None:
    project.write("pack/PulumiPolicy.yaml", runtime_file("", virtualenv=sys.prefix))
    project.write("pack/__main__.py", PACK)
    good = project.pulumi("preview", "--policy-pack", "pack", "--config", "size=2")
    assert good.returncode == 0, good.stdout + good.stderr
    bad = project.pulumi("preview", "--policy-pack", "pack", "--config", "size=9")
    assert bad.returncode != 0
    assert f"size is over 5; the pack sees ('9', 'test', '{project.folder / 'pack'}')" in bad.stdout + bad.stderr


def test_a_pack_that_fails_to_load_fails_the_preview_with_its_reason(project: Project) -> None:
    project.write("pack/PulumiPolicy.yaml", runtime_file("", virtualenv=sys.prefix))
    project.write("pack/__main__.py", "raise RuntimeError('no such rule')\n")
    preview = project.pulumi("preview", "--policy-pack", "pack")
    assert preview.returncode != 0
    assert "RuntimeError: no such rule" in preview.stdout + preview.stderr


# A program that tells its pid and then waits, as one does that a long operation holds up.
WAITING = """
import os
import pathlib
import time

pathlib.Path("pid").write_text(str(os.getpid()))
time.sleep(60)
"""


@pytest.fixture
def waiting(project: Project) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a preview whose program waits, and returns the engine once the program runs."""
    engines: list[subprocess.Popen[str]] = []

    def start(*, ignore_interrupt: bool = False) -> subprocess.Popen[str]:
        project.write("__main__.py", WAITING)
        engines.append(project.start("preview", ignore_interrupt=ignore_interrupt))
        assert until(lambda: (project.folder / "pid").exists(), seconds=30), "the program did not start"
        return engines[-1]

    yield start
    for engine in engines:
        engine.kill()
        engine.communicate()


@pytest.mark.parametrize("ignored", [False, True], ids=["foreground", "background"])
def test_an_interrupted_preview_ends_soon_and_quietly(project: Project, waiting: Callable, ignored: bool) -> None:
    engine = waiting(ignore_interrupt=ignored)
    start = time.monotonic()
    engine.send_signal(signal.SIGINT)
    shown, _ = engine.communicate(timeout=20)
    # The engine kills a plug-in that has not ended after five seconds.
    assert time.monotonic() - start < 4.5
    assert "KeyboardInterrupt" not in shown
    assert processes_under(project.folder.parent) == {}


def test_nothing_runs_on_after_the_engine_was_killed(project: Project, waiting: Callable) -> None:
    engine = waiting()
    assert processes_under(project.folder.parent)
    engine.kill()
    assert until(lambda: not processes_under(project.folder.parent), seconds=10), processes_under(project.folder.parent)


def test_a_program_ends_with_a_killed_language_host(project: Project, waiting: Callable) -> None:
    waiting()
    program = int((project.folder / "pid").read_text())
    host = next(pid for pid, line in processes_under(project.folder.parent).items() if "/pulumi-language-python " in line)
    assert host != program
    os.kill(host, signal.SIGKILL)
    assert until(lambda: not Path(f"/proc/{program}").exists(), seconds=5)

"""How the command line runs the Pulumi CLI: its environment, its log, its events, its end. A script plays the CLI."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.paths import REPOSITORY
from tests.engine.pulumi_project import until
from trainyard.engine import Engine, EngineError

pytestmark = pytest.mark.engine

CLI = f"""\
#!{sys.executable}
import json, os, signal, sys, time
from pathlib import Path

home = Path(os.environ["PLAYED"])
(home / "argv").write_text(json.dumps(sys.argv[1:]))
(home / "environment").write_text(json.dumps(dict(os.environ)))
print("said on standard output", flush=True)
print("said on standard error", file=sys.stderr, flush=True)
if "--event-log" in sys.argv:
    events = Path(sys.argv[sys.argv.index("--event-log") + 1])
    events.write_text((home / "events").read_text())
if (home / "wait").exists():
    def stop(*_):
        (home / "interrupted").touch()
        sys.exit(255)
    signal.signal(signal.SIGINT, stop)
    (home / "ready").touch()
    time.sleep(60)
sys.exit(int((home / "status").read_text()))
"""
DIAGNOSTIC = {"diagnosticEvent": {"severity": "error", "message": "refused", "urn": ""}}
CHANGES = {"summaryEvent": {"resourceChanges": {"create": 3}}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    cli = tmp_path / "bin" / "pulumi"
    cli.parent.mkdir()
    cli.write_text(CLI)
    cli.chmod(0o755)
    (tmp_path / "status").write_text("0")
    (tmp_path / "events").write_text("")
    return tmp_path


@pytest.fixture
def engine(home: Path) -> Engine:
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return Engine(environment={**os.environ, "PATH": path, "PLAYED": str(home)}, log=home / "logs" / "engine.log")


@pytest.fixture(autouse=True)
def on_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")


def events(home: Path, *lines: dict) -> None:
    (home / "events").write_text("".join(json.dumps(line) + "\n" for line in lines))


def environment_of(home: Path) -> dict[str, str]:
    return json.loads((home / "environment").read_text())


@pytest.mark.parametrize("command", ["up", "refresh", "destroy", "import"])
def test_whatever_changes_something_keeps_every_checkpoint(engine: Engine, home: Path, command: str):
    engine.run([command, "--yes"], cwd=home)
    assert "PULUMI_SKIP_CHECKPOINTS" not in environment_of(home)


def test_a_preview_may_throw_its_checkpoints_away(engine: Engine, home: Path):
    engine.run(["preview"], cwd=home)
    assert environment_of(home)["PULUMI_SKIP_CHECKPOINTS"] == "true"


def test_a_run_is_never_asked_anything_and_tells_what_it_did(engine: Engine, home: Path):
    events(home, CHANGES)
    summary = engine.run(["up", "--yes"], cwd=home)
    assert summary.changes == {"create": 3}
    argv = json.loads((home / "argv").read_text())
    assert argv[:3] == ["up", "--yes", "--non-interactive"]


def test_output_goes_to_the_log_and_only_where_it_is_asked_for_to_a_file(engine: Engine, home: Path):
    engine.run(["up"], cwd=home)
    command, *said = engine.log.read_text().splitlines()
    assert command.startswith("$ pulumi up --non-interactive")
    assert said == ["said on standard output", "said on standard error"]
    engine.run(["preview"], cwd=home, output=home / "plan")
    assert (home / "plan").read_text() == "said on standard output\n"
    assert engine.log.read_text().splitlines()[4:] == ["said on standard error"]


def test_a_refused_run_says_why_and_names_its_log(engine: Engine, home: Path):
    events(home, DIAGNOSTIC, CHANGES)
    (home / "status").write_text("3")
    with pytest.raises(EngineError, match="pulumi up ended with status 3") as caught:
        engine.run(["up"], cwd=home)
    summary = caught.value.summary
    assert (summary.errors, dict(summary.changes)) == (["refused"], {"create": 3})
    assert caught.value.log == engine.log


def test_a_query_gives_standard_output_alone(engine: Engine, home: Path):
    assert engine.text(["stack", "ls"], cwd=home) == "said on standard output\n"


def test_a_failed_query_tells_what_the_engine_said(engine: Engine, home: Path):
    (home / "status").write_text("1")
    with pytest.raises(LocalStackError, match=r"pulumi stack ls ended with status 1: said on standard error"):
        engine.text(["stack", "ls"], cwd=home)


RUNNER = textwrap.dedent(
    """
    import os, signal
    from pathlib import Path
    from trainyard.engine import Engine
    signal.signal(signal.SIGINT, signal.default_int_handler)
    home = Path(os.environ["PLAYED"])
    Engine(environment=dict(os.environ), log=home / "log").run(["up"], cwd=home)
    """
)


@pytest.fixture
def running(engine: Engine, home: Path) -> subprocess.Popen[bytes]:
    """A process that runs the CLI, which waits."""
    (home / "wait").touch()
    process = subprocess.Popen([sys.executable, "-c", RUNNER], env={**engine.environment, "PYTHONPATH": str(REPOSITORY)}, cwd=home)
    assert until((home / "ready").exists, seconds=20)
    return process


def test_an_interrupt_reaches_the_cli_once_and_is_waited_for(running: subprocess.Popen[bytes], home: Path):
    running.send_signal(signal.SIGINT)
    assert running.wait(20) != 0
    assert (home / "interrupted").exists()


def test_a_cli_does_not_outlive_a_killed_command(running: subprocess.Popen[bytes], home: Path):
    running.kill()
    running.wait(20)
    assert until((home / "interrupted").exists, seconds=10), "the CLI goes on unseen"

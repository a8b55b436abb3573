"""What the commands make of previews that are refused: every project is judged, and no outcome of an earlier run stays."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from rich.console import Console

from guardrails import RULES
from guardrails.judge import by_id
from trainyard import commands
from trainyard.engine import EngineError
from trainyard.events import Summary, Violation

pytestmark = pytest.mark.unit

RULE = by_id(RULES)["KRP03"]


def refusal(name: str) -> Violation:
    message = f"KRP03 {name}: a is b; allowed: c.\n  Otherwise: w\n  Fix: f"
    return Violation(policy=RULE.policy_name, resource=name, message=message, mandatory=True)


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Summary | EngineError | BaseException]:
    """What the preview of each project ends with; the test fills it in."""
    found: dict[str, Any] = {}

    def stack(title: str) -> Any:
        def preview(_: Any, *, output: Path, flags: tuple[str, ...]) -> Summary:
            if isinstance(found[title], BaseException):
                raise found[title]
            output.write_text('{"steps": []}')
            return found[title]

        project = SimpleNamespace(name=title, title=title)
        return SimpleNamespace(project=project, init=lambda: None, exists=lambda: True, preview=preview)

    progress = mock.MagicMock(log=tmp_path / "log")
    # As the real one, it lets errors through.
    progress.step.return_value.__exit__.return_value = False
    session = SimpleNamespace(platform=stack("platform"), workloads=stack("workloads"), progress=progress, below=None, running=None)
    monkeypatch.setattr(commands, "open_session", lambda *_, **__: session)
    monkeypatch.setattr(commands, "_has_outputs", lambda _: True)
    monkeypatch.setattr(commands, "BUILD", tmp_path / "build")
    monkeypatch.setattr(commands, "REPOSITORY", tmp_path)
    return found


def refused(*names: str, errors: tuple[str, ...] = ()) -> EngineError:
    summary = Summary(violations=[refusal(name) for name in names], errors=list(errors))
    return EngineError("pulumi preview ended with status 255", summary=summary, log=Path("log"))


def judge(tmp_path: Path) -> tuple[bool | None, list[str]]:
    """What the command returns (None: it raised an EngineError), and the resources in what it wrote."""
    try:
        result = commands.judge("dev", mock.MagicMock(), Console(quiet=True))
    except EngineError:
        result = None
    written = json.loads((tmp_path / "build" / "policy.json").read_text())["results"]
    return result, [row["resource"] for row in written]


def test_a_refused_platform_does_not_keep_the_workloads_from_being_judged(outcomes: dict[str, Any], tmp_path: Path) -> None:
    outcomes |= {"platform": refused("pool"), "workloads": refused("job")}
    assert judge(tmp_path) == (True, ["pool", "job"])
    outcomes |= {"workloads": Summary()}
    assert judge(tmp_path) == (True, ["pool"])


def test_programs_that_nothing_objects_to_pass(outcomes: dict[str, Any], tmp_path: Path) -> None:
    outcomes |= {"platform": Summary(), "workloads": Summary()}
    assert judge(tmp_path) == (False, [])


@pytest.mark.parametrize("error", [refused(), refused("pool", errors=("program: KeyError",))])
def test_a_program_that_fails_is_an_error_and_leaves_no_old_outcome(error: EngineError, outcomes: dict[str, Any], tmp_path: Path) -> None:
    outcomes |= {"platform": refused("old"), "workloads": Summary()}
    judge(tmp_path)
    outcomes |= {"platform": error, "workloads": refused("job")}
    result, resources = judge(tmp_path)
    assert result is None
    assert resources == [*(["pool"] if error.summary.violations else []), "job"]
    assert "old" not in (tmp_path / "build" / "policy.md").read_text()


def test_what_ends_a_run_leaves_no_old_outcome(outcomes: dict[str, Any], tmp_path: Path) -> None:
    outcomes |= {"platform": refused("old"), "workloads": Summary()}
    judge(tmp_path)
    outcomes |= {"platform": KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        judge(tmp_path)
    assert json.loads((tmp_path / "build" / "policy.json").read_text())["results"] == []


def test_a_plan_has_every_project_and_fails_where_one_is_refused(outcomes: dict[str, Any], tmp_path: Path) -> None:
    outcomes |= {"platform": Summary(), "workloads": Summary()}
    commands.plan("dev", mock.MagicMock(), Console(quiet=True))
    assert sorted(path.name for path in (tmp_path / "build").glob("plan-*")) == ["plan-platform.json", "plan-workloads.json"]
    outcomes |= {"platform": refused("pool")}
    with pytest.raises(EngineError):
        commands.plan("dev", mock.MagicMock(), Console(quiet=True))
    text = (tmp_path / "build" / "plan.md").read_text()
    assert "| platform (refused) | nothing |\n| workloads | nothing |" in text
    assert "`pool`" in text
    assert [path.name for path in (tmp_path / "build").glob("plan-*")] == ["plan-workloads.json"]


def test_a_preview_ends_with_the_first_refusal(outcomes: dict[str, Any]) -> None:
    outcomes |= {"platform": refused("pool"), "workloads": Summary()}
    with pytest.raises(EngineError):
        commands.preview("dev", mock.MagicMock(), Console(quiet=True))

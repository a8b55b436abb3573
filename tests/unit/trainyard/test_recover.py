"""The order of a recovery, what it tells, and what it refuses; stack and clouds are played."""

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from local.aws.inventory import Leftover
from local.errors import LocalStackError
from local.progress import Progress
from tests.unit.trainyard.state import NAMESPACE, QUEUE, RELEASE, SUBNET, VPC, export, operation, resource
from trainyard import recover
from trainyard.engine import EngineError
from trainyard.events import Summary
from trainyard.recovery.wanted import Found, Wanted

pytestmark = pytest.mark.unit

NET = resource(VPC, "net", id="vpc-1")


class PlayedStack:
    """A stack that keeps its state in memory and notes what is asked of it."""

    def __init__(self, state: str, plan: list[dict[str, Any]] | EngineError | None = None) -> None:
        self.state, self._plan = state, plan or []
        self.calls: list[tuple[str, Any]] = []
        self.name = "dev"
        self.project = SimpleNamespace(name="trainyard", title="platform")
        self.engine = SimpleNamespace(environment={})

    def cancel(self) -> None:
        self.calls.append(("cancel", None))

    def export(self, *, show_secrets: bool = False) -> str:
        return self.state

    def replace_state(self, exported: Path) -> None:
        self.state = exported.read_text()
        self.calls.append(("replace state", exported.stat().st_mode & 0o777))

    def plan(self, output: Path) -> None:
        self.calls.append(("plan", None))
        if isinstance(self._plan, EngineError):
            raise self._plan
        output.write_text(json.dumps({"steps": [{"op": "create", "newState": each} for each in self._plan]}))

    def read_again(self, urns: Sequence[str]) -> None:
        self.calls.append(("read again", list(urns)))

    def remove(self, urns: Sequence[str]) -> None:
        self.calls.append(("remove", list(urns)))

    def ids(self) -> list[str]:
        return [each["id"] for each in json.loads(self.state)["deployment"]["resources"]]


class PlayedCluster:
    def __init__(self, records: dict[str, str]) -> None:
        self.records = records

    def half_made(self, release: dict[str, Any]) -> str | None:
        return self.records.get(release["inputs"]["name"])

    def forget(self, namespace: str, record: str) -> None:
        self.records = {name: each for name, each in self.records.items() if (namespace, each) != ("system", record)}


class PlayedSearch:
    """Finds what the test says exists, by name."""

    aws_session, endpoint, tags = None, None, {"trainyard:stack": "trainyard/dev"}

    def __init__(self, exists: dict[str, Found], cluster: PlayedCluster | None) -> None:
        self.exists, self._cluster = exists, cluster
        self.taken: dict[str, set[str]] = {}

    def knows(self, wanted: Wanted) -> bool:
        return not wanted.kind.startswith("random:")

    def find(self, wanted: Wanted, taken: set[str]) -> Found | None:
        self.taken[wanted.name] = taken
        return self.exists.get(wanted.name)

    def cluster(self, resource: dict[str, Any]) -> PlayedCluster | None:
        return self._cluster


class Played:
    """One recovery."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._tmp_path, self._patch = tmp_path, monkeypatch
        monkeypatch.setenv("TRAINYARD_STATE", str(tmp_path / "state"))
        monkeypatch.setattr(recover, "running_engine", lambda *about: None)
        self.left: list[Leftover] = []
        monkeypatch.setattr(recover, "untracked", lambda *about: self.left)

    def run(self, stack: PlayedStack, exists: dict[str, Found] | None = None, cluster: PlayedCluster | None = None) -> str:
        self.search = PlayedSearch(exists or {}, cluster)
        self._patch.setattr(recover, "Search", lambda *about: self.search)
        said = StringIO()
        session: Any = SimpleNamespace(progress=Progress(self._tmp_path / "log", total=1, console=Console(quiet=True)))
        played: Any = stack
        recover.recover_stack(session, played, Console(file=said, width=300))
        return said.getvalue()


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(tmp_path, monkeypatch)


def test_what_had_begun_and_exists_is_adopted_and_read(played: Played):
    subnet = resource(SUBNET, "a")
    stack = PlayedStack(export([NET], [operation("creating", subnet)]))
    said = played.run(stack, {"a": Found(id="subnet-1")})
    assert stack.ids() == ["vpc-1", "subnet-1"]
    assert [call for call, _ in stack.calls] == ["cancel", "replace state", "read again", "plan"]
    assert stack.calls[2] == ("read again", [subnet["urn"]])
    assert f"adopted: a ({SUBNET}) as subnet-1" in said
    assert "recovered; `make up` goes on" in said


def test_what_had_begun_and_does_not_exist_is_forgotten(played: Played):
    stack = PlayedStack(export([NET], [operation("creating", resource(SUBNET, "a"))]))
    said = played.run(stack)
    assert stack.ids() == ["vpc-1"]
    assert "pending_operations" not in json.loads(stack.state)["deployment"]
    assert f"not made, will be: a ({SUBNET})" in said


def test_what_a_preview_misses_and_exists_is_adopted_too(played: Played):
    stack = PlayedStack(export([NET]), plan=[resource(SUBNET, "a"), resource(SUBNET, "b")])
    said = played.run(stack, {"a": Found(id="subnet-1")})
    assert stack.ids() == ["vpc-1", "subnet-1"]
    assert "not made" not in said, "what was never begun is not worth a word"


def test_ids_that_the_state_has_are_not_given_out_twice(played: Played):
    stack = PlayedStack(export([NET]), plan=[resource(VPC, "second")])
    played.run(stack)
    assert played.search.taken == {"second": {"vpc-1"}}


def test_what_was_being_changed_or_deleted_is_read_again(played: Played):
    stack = PlayedStack(export([NET], [operation("deleting", NET)]))
    played.run(stack)
    assert ("read again", [NET["urn"]]) in stack.calls


def test_a_clean_state_is_left_as_it_is(played: Played):
    stack = PlayedStack(export([NET]))
    said = played.run(stack)
    assert [call for call, _ in stack.calls] == ["cancel", "plan"]
    assert "kept in" not in said


def test_a_stack_that_never_ran_only_loses_its_lock(played: Played):
    stack = PlayedStack('{"version": 3}')
    played.run(stack)
    assert stack.calls == [("cancel", None)]


def test_the_state_as_it_was_is_kept_and_for_its_owner_alone(played: Played, tmp_path: Path):
    before = export([NET], [operation("creating", resource(SUBNET, "a"))])
    stack = PlayedStack(before)
    said = played.run(stack)
    kept = list((tmp_path / "state" / "recovered").glob("trainyard.dev.*.json"))
    assert [json.loads(file.read_text()) for file in kept] == [json.loads(before)]
    assert [file.stat().st_mode & 0o777 for file in kept] == [0o600]
    assert ("replace state", 0o600) in stack.calls
    assert str(kept[0]) in said


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (RELEASE, Found(id="system/volcano", condition="pending-install")),
        # Adopted, nothing would tell the next update that it has to try again.
        (RELEASE, Found(id="system/volcano", condition="failed")),
        (QUEUE, Found(id="q", condition="CREATE_FAILED")),
    ],
)
def test_what_can_not_be_completed_is_removed(played: Played, kind: str, found: Found):
    broken = resource(kind, "broken")
    stack = PlayedStack(export([NET], [operation("creating", broken)]))
    said = played.run(stack, {"broken": found})
    assert ("remove", [broken["urn"]]) in stack.calls
    assert "read again" not in [call for call, _ in stack.calls]
    assert f"removed, half made: broken ({kind}), {found.condition}" in said


def test_a_release_that_helm_is_done_with_is_adopted(played: Played):
    release = resource(RELEASE, "volcano")
    stack = PlayedStack(export([NET], [operation("creating", release)]))
    played.run(stack, {"volcano": Found(id="system/volcano", condition="deployed")})
    assert "system/volcano" in stack.ids()
    assert ("read again", [release["urn"]]) in stack.calls


def test_an_upgrade_that_was_cut_short_is_forgotten_by_helm(played: Played):
    release = resource(RELEASE, "volcano", id="system/volcano", inputs={"name": "volcano", "namespace": "system"})
    cluster = PlayedCluster({"volcano": "sh.helm.release.v1.volcano.v2"})
    said = played.run(PlayedStack(export([release])), cluster=cluster)
    assert cluster.records == {}
    assert "removed, half made: volcano (upgrade of a Helm release)" in said


def test_a_type_that_nobody_can_ask_about_is_told_with_its_remedy(played: Played):
    stack = PlayedStack(export([NET], [operation("creating", resource("random:index/x:X", "dice"))]))
    said = played.run(stack)
    assert "not decided: dice: whether its creation ended can't be told for type random:index/x:X" in said
    assert "pulumi import random:index/x:X dice ID" in said


def test_a_failing_preview_is_told_and_stops_nothing_else(played: Played, tmp_path: Path):
    error = EngineError("pulumi preview ended", summary=Summary(errors=["trainyard:pools: zone is missing"]), log=tmp_path / "log")
    played.left = [Leftover(kind="ec2 vpc", id="vpc-9")]
    said = played.run(PlayedStack(export([NET], [operation("creating", resource(NAMESPACE, "jobs"))]), plan=error))
    assert "not decided: a preview fails" in said
    assert "trainyard:pools: zone is missing" in said
    assert "ec2 vpc vpc-9 carries the stack's tag and is not in its state" in said


def test_a_stack_that_is_being_worked_on_is_not_touched(played: Played, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recover, "running_engine", lambda *about: 4711)
    stack = PlayedStack(export([NET]))
    with pytest.raises(LocalStackError, match="process 4711 still works on the platform stack"):
        played.run(stack)
    assert stack.calls == []

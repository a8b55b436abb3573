"""`recover`: after a killed run, the state is made to tell again what there is.

A killed engine leaves its lock, and the operations that it had written down before it began them. A killed plug-in leaves less: the
engine takes its silence for "nothing was made". So both are looked into: what the state says had begun, and what a preview says is
missing. Whatever of it exists and is the stack's own (by its tags, by the resource it belongs to, by the provider's mark on an object)
enters the state, and the next `up` completes it where it was cut short.
"""

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from local.errors import LocalStackError
from local.paths import state_dir
from local.progress import Step
from trainyard.engine import EngineError
from trainyard.recovery.cluster_search import RELEASE
from trainyard.recovery.deployment import Deployment, planned
from trainyard.recovery.leftover import untracked
from trainyard.recovery.lock import running_engine
from trainyard.recovery.search import Search
from trainyard.recovery.wanted import Found, Wanted
from trainyard.session import Session
from trainyard.stack import Stack


def recover_stack(session: Session, stack: Stack, console: Console) -> None:
    """Lift the lock of a killed engine and take into the state what the killed run made; says what was done and what remains to do.

    Raises:
        LocalStackError: an engine still works on the stack, or AWS or the cluster does not answer.
    """
    engine = running_engine(stack.engine.environment, stack.project.name, stack.name)
    if engine:
        raise LocalStackError(f"process {engine} still works on the {stack.project.title} stack; wait for it, or end it, then recover")
    with session.progress.step(f"recover the {stack.project.title} stack") as step:
        stack.cancel()
        recovery = _Recovery(session, stack, step)
        recovery.run()
    recovery.report(console)


@dataclass
class _Recovery:
    session: Session
    stack: Stack
    step: Step
    kept: Path | None = None
    """Copy of the state as it was found, where it was changed."""
    adopted: list[str] = field(default_factory=list)
    cleared: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Look into everything. An empty state has nothing to recover: a run makes nothing before its provider is in the state."""
        self._search = Search(self.session, self.stack, self.step.update)
        state = Deployment(self.stack.export())
        if state.resources or state.has_pending():
            self._take_in(state, state.begun(), sorted(state.touched()))
            self._free_releases(Deployment(self.stack.export()))
            self._take_in(Deployment(self.stack.export()), self._missing(), [])
            self._look_for_leftovers()

    def report(self, console: Console) -> None:
        """Print what came of it."""
        title = self.stack.project.title
        done = (("adopted", self.adopted), ("not made, will be", self.cleared), ("removed, half made", self.removed))
        for what, names in done:
            for name in names:
                console.print(f"{title}: {what}: {name}", markup=False, highlight=False)
        for line in self.undecided:
            console.print(f"{title}: not decided: {line}", markup=False, highlight=False, style="yellow")
        if self.kept:
            console.print(f"{title}: the state as it was found is kept in {self.kept}", markup=False, highlight=False)
        next_step = "`make up` goes on, `make down` removes everything" if not self.undecided else "then `make up` goes on"
        console.print(f"{title}: recovered; {next_step}", markup=False, highlight=False)

    def _missing(self) -> list[Wanted]:
        self.step.update("preview")
        with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
            plan = Path(folder) / "plan.json"
            try:
                self.stack.plan(plan)
            except EngineError as error:
                why = "; ".join(error.summary.errors) or str(error)
                self.undecided.append(f"a preview fails, so what a killed plug-in made can't be told; put it right, recover again: {why}")
                return []
            return planned(json.loads(plan.read_text()))

    def _take_in(self, state: Deployment, wanted: Sequence[Wanted], touched: Sequence[str]) -> None:
        """Enter what exists of `wanted`, forget what had begun, and read what was `touched` again."""
        before = state.text
        usable, broken = [], []
        for each in wanted:
            self.step.update(f"look for {each.name}")
            found = self._look_up(state, each)
            if found:
                state.adopt(each, found)
                (broken if _is_broken(each, found) else usable).append((each, found))
        if state.has_pending() or usable or broken:
            state.settle()
            self._replace(before, state)
        if usable or touched:
            self.step.update(f"read {len(usable) + len(touched)} resources")
            self.stack.read_again([*(each.urn for each, _ in usable), *touched])
        if broken:
            self.step.update(f"remove {len(broken)} half-made resources")
            self.stack.remove([each.urn for each, _ in broken])
        self.adopted += [f"{each.name} ({each.kind}) as {found.id}" for each, found in usable]
        self.removed += [f"{each.name} ({each.kind}), {found.condition}" for each, found in broken]

    def _look_up(self, state: Deployment, wanted: Wanted) -> Found | None:
        if not self._search.knows(wanted):
            if wanted.pending:
                self.undecided.append(
                    f"{wanted.name}: whether its creation ended can't be told for type {wanted.kind}. "
                    f"If it exists: pulumi import {wanted.kind} {wanted.name} ID"
                )
            return None
        found = self._search.find(wanted, state.ids(wanted.kind))
        if found is None and wanted.pending:
            self.cleared.append(f"{wanted.name} ({wanted.kind})")
        return found

    def _replace(self, before: str, state: Deployment) -> None:
        folder = state_dir() / "recovered"
        folder.mkdir(parents=True, exist_ok=True)
        if self.kept is None:
            self.kept = folder / f"{self.stack.project.name}.{self.stack.name}.{time.strftime('%Y%m%dT%H%M%S')}.json"
            _write_private(self.kept, before)
        with tempfile.TemporaryDirectory(prefix="trainyard-") as scratch:
            changed = Path(scratch) / "state.json"
            _write_private(changed, state.text)
            self.stack.replace_state(changed)

    def _free_releases(self, state: Deployment) -> None:
        """An upgrade that was cut short makes Helm refuse every other one; without its record the release is the last good one again."""
        for release in (each for each in state.resources if each["type"] == RELEASE):
            cluster = self._search.cluster(release)
            record = cluster.half_made(release) if cluster else None
            if cluster and record:
                cluster.forget(release["inputs"].get("namespace") or "default", record)
                self.removed.append(f"{release['urn'].rpartition('::')[2]} (upgrade of a Helm release)")

    def _look_for_leftovers(self) -> None:
        self.step.update("ask AWS what else is there")
        state = Deployment(self.stack.export())
        for each in untracked(state, self._search.aws_session, self._search.endpoint, self._search.tags):
            self.undecided.append(f"{each} carries the stack's tag and is not in its state; delete it if nothing uses it")


def _is_broken(wanted: Wanted, found: Found) -> bool:
    """Whether it has to go before it can be made again: AWS gave it up, or Helm stopped in the middle of it."""
    return found.failed or (wanted.kind == RELEASE and found.condition in ("pending-install", "uninstalling"))


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)

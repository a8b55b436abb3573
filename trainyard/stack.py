"""One stack of one project: make it, preview it, bring it up, destroy it, always with the policy pack on."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainyard.engine import Engine
from trainyard.events import Summary
from trainyard.project import POLICY_PACK, Project

Progress = Callable[[Summary], None]


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack and how the engine reaches it. `config` is set where another file than the committed one holds its settings."""

    project: Project
    name: str
    engine: Engine
    config: Path | None = None

    def init(self) -> None:
        """Make the stack unless it is there."""
        home = self.config.parent if self.config else self.project.folder
        self.engine.text(["stack", "select", "--create", self.name], cwd=home)

    def preview(self, on_progress: Progress | None = None, *, output: Path | None = None, flags: tuple[str, ...] = ()) -> Summary:
        """Plan and judge; changes nothing. Raises EngineError where a rule or the program refuses."""
        return self._run(["preview", *self._policies(), *flags], on_progress, output)

    def up(self, on_progress: Progress | None = None) -> Summary:
        """Preview, so that nothing is made where a rule refuses anything, then update."""
        self.preview(on_progress)
        return self._run(["up", "--yes", "--skip-preview", *self._policies()], on_progress)

    def refresh(self, on_progress: Progress | None = None) -> Summary:
        """Take the real state of every resource into the stack."""
        return self._run(["refresh", "--yes", "--skip-preview"], on_progress)

    def destroy(self, on_progress: Progress | None = None) -> Summary:
        """Delete every resource, then the stack itself."""
        summary = self._run(["destroy", "--yes", "--skip-preview"], on_progress)
        home = self.config.parent if self.config else self.project.folder
        self.engine.text(["stack", "rm", "--yes", "--preserve-config", self.name], cwd=home)
        return summary

    def exists(self) -> bool:
        """Whether the backend knows the stack."""
        home = self.config.parent if self.config else self.project.folder
        listed = self.engine.text(["stack", "ls", "--json"], cwd=home)
        return f'"{self.name}"' in listed

    def cancel(self) -> None:
        """Lift the lock that a killed engine left behind."""
        home = self.config.parent if self.config else self.project.folder
        self.engine.text(["cancel", "--yes", "--stack", self.name], cwd=home)

    def _policies(self) -> list[str]:
        return ["--policy-pack", str(POLICY_PACK)]

    def _run(self, arguments: list[str], on_progress: Progress | None, output: Path | None = None) -> Summary:
        config = ["--config-file", str(self.config)] if self.config else []
        return self.engine.run([*arguments, "--stack", self.name, *config], cwd=self.project.folder, on_progress=on_progress, output=output)

"""One stack of one project: make it, preview it, bring it up, destroy it, always with the policy pack on."""

from collections.abc import Callable, Sequence
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

    @property
    def home(self) -> Path:
        """The folder that commands about the stack itself run in: the one whose file holds its encryption's salt."""
        return self.config.parent if self.config else self.project.folder

    def init(self) -> None:
        """Make the stack unless it is there."""
        self.engine.text(["stack", "select", "--create", self.name], cwd=self.home)

    def preview(self, on_progress: Progress | None = None, *, output: Path | None = None, flags: tuple[str, ...] = ()) -> Summary:
        """Plan and judge; changes nothing. Raises EngineError where a rule or the program refuses."""
        return self._run(["preview", *self._policies(), *flags], on_progress, output)

    def up(self, on_progress: Progress | None = None) -> Summary:
        """Preview, so that nothing is made where a rule refuses anything, then update unless the preview found nothing to do."""
        planned = self.preview(on_progress)
        if not planned.changed and not planned.outputs_change:
            return planned
        return self._run(["up", "--yes", "--skip-preview", *self._policies()], on_progress)

    def refresh(self, on_progress: Progress | None = None) -> Summary:
        """Take the real state of every resource into the stack."""
        return self._run(["refresh", "--yes", "--skip-preview"], on_progress)

    def destroy(self, on_progress: Progress | None = None) -> Summary:
        """Delete every resource, then the stack itself."""
        summary = self._run(["destroy", "--yes", "--skip-preview"], on_progress)
        self.engine.text(["stack", "rm", "--yes", "--preserve-config", self.name], cwd=self.home)
        return summary

    def exists(self) -> bool:
        """Whether the backend knows the stack."""
        listed = self.engine.text(["stack", "ls", "--json"], cwd=self.home)
        return f'"{self.name}"' in listed

    def cancel(self) -> None:
        """Lift the lock that a killed engine left behind."""
        self.engine.text(["cancel", "--yes", "--stack", self.name], cwd=self.home)

    def export(self, *, show_secrets: bool = False) -> str:
        """The state as JSON. With `show_secrets` it must not be written anywhere."""
        flags = ["--show-secrets"] if show_secrets else []
        return self.engine.text(["stack", "export", "--stack", self.name, *flags], cwd=self.home)

    def replace_state(self, exported: Path) -> None:
        """Make an export, changed or not, the state. Raises LocalStackError where it contradicts itself."""
        self.engine.text(["stack", "import", "--file", str(exported), "--stack", self.name], cwd=self.home)

    def plan(self, output: Path, on_progress: Progress | None = None) -> None:
        """Write what the program would change to `output` as JSON, without asking the policy pack."""
        self._run(["preview", "--json"], on_progress, output)

    def read_again(self, urns: Sequence[str], on_progress: Progress | None = None) -> Summary:
        """Take the real state of some resources into the stack."""
        return self._run(["refresh", "--yes", "--skip-preview", *_targets(urns)], on_progress)

    def remove(self, urns: Sequence[str], on_progress: Progress | None = None) -> Summary:
        """Delete some resources, which nothing else needs."""
        return self._run(["destroy", "--yes", "--skip-preview", *_targets(urns)], on_progress)

    def _policies(self) -> list[str]:
        config = self.project.policy_config
        return ["--policy-pack", str(POLICY_PACK), *(["--policy-pack-config", str(config)] if config.exists() else [])]

    def _run(self, arguments: list[str], on_progress: Progress | None, output: Path | None = None) -> Summary:
        config = ["--config-file", str(self.config)] if self.config else []
        return self.engine.run([*arguments, "--stack", self.name, *config], cwd=self.project.folder, on_progress=on_progress, output=output)


def _targets(urns: Sequence[str]) -> list[str]:
    return [word for urn in urns for word in ("--target", urn)]

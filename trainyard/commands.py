"""What each command does."""

import json
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from local.errors import LocalStackError
from local.paths import REPOSITORY, state_dir
from local.plugins.aws.schema import provider_inputs
from local.progress import Progress
from local.stack import LocalStack
from local.toolchain.environments import training_environment
from local.toolchain.system import NODE_PACKAGES, ensure_packages
from local.toolchain.tools import CHARTS, CLUSTER, CONTROLLERS, ENGINE, describe, ensure
from trainyard.down import take_down
from trainyard.engine import EngineError
from trainyard.events import Summary
from trainyard.markdown import plan_markdown
from trainyard.pack import Row, refused, rows, table, write_outcome
from trainyard.project import LOCAL_STACK
from trainyard.recover import recover_stack
from trainyard.session import Session, log_file, open_session
from trainyard.stack import Stack
from trainyard.up import bring_up, cluster

__all__ = ["clean", "down", "judge", "log_file", "logs", "plan", "preview", "recover", "setup", "status", "up"]

BUILD = REPOSITORY / "build"
PROGRAM = "__main__.py"
"""Where code scanning shows what the pack says of a resource: the engine does not tell the line that made it."""


def setup(progress: Progress) -> None:
    """Build or find every tool and environment of the local stack."""
    ensure_packages(NODE_PACKAGES)
    ensure([ENGINE, CLUSTER, CONTROLLERS, CHARTS], progress)
    training_environment(progress)
    with progress.step("schema of the aws stand-in"):
        provider_inputs()


def up(stack: str, progress: Progress, console: Console) -> None:
    """See `trainyard.up`. Interrupted, it leaves no process running; the next `up` goes on."""
    with _stopped_on_interrupt(stack):
        bring_up(open_session(stack, progress, start=True), console)


def down(stack: str, progress: Progress, console: Console) -> None:
    """See `trainyard.down`."""
    with _stopped_on_interrupt(stack):
        take_down(open_session(stack, progress, start=False), console)


def preview(stack: str, progress: Progress, console: Console) -> None:
    """Print the engine's own preview of both projects. The jobs can be previewed once there is a platform."""
    session = open_session(stack, progress, start=False)
    try:
        for each in _previews(session, ("--diff",)):
            if each.error:
                raise each.error
            console.print(each.text, markup=False, soft_wrap=True)
            console.print(f"{each.project}: {each.summary.text()}", style="bold")
            if each.summary.charts:
                charts = ", ".join(each.summary.charts)
                console.print(f"Helm renders these charts on the cluster, so no preview shows their objects: {charts}")
    finally:
        _stop_if_alone(session)


def plan(stack: str, progress: Progress, console: Console) -> None:
    """Write `build/plan-<project>.json`, `build/plan.md` and `build/policy.*`; a project that is refused does not keep the other from it.

    Raises EngineError after writing where a rule or a program refuses.
    """
    session = open_session(stack, progress, start=False)
    BUILD.mkdir(exist_ok=True)
    summaries: dict[str, Summary] = {}
    failed: EngineError | None = None
    try:
        for each in _previews(session, ("--json",)):
            failed = failed or each.error
            summaries[f"{each.project} (refused)" if each.error else each.project] = each.summary
            file = BUILD / f"plan-{each.project}.json"
            if each.error:
                file.unlink(missing_ok=True)
            else:
                file.write_text(json.dumps(json.loads(each.text), indent=2) + "\n")
    finally:
        (BUILD / "plan.md").write_text(plan_markdown(stack, summaries))
        write_outcome([row for summary in summaries.values() for row in rows(summary)], BUILD, fallback=PROGRAM)
        _stop_if_alone(session)
    if failed:
        raise failed
    for project, summary in summaries.items():
        console.print(f"build/plan-{project}.json: {summary.text()}")


def judge(stack: str, progress: Progress, console: Console) -> bool:
    """Print what the policy pack says of both projects and write it to `build/`; returns whether a rule refuses anything.

    Raises EngineError where a program fails for another reason than a rule.
    """
    session = open_session(stack, progress, start=False)
    outcome: list[Row] = []
    failed: EngineError | None = None
    try:
        for each in _previews(session, ("--diff",)):
            said = rows(each.summary)
            outcome += said
            if each.error and (each.summary.errors or not refused(said)):
                failed = failed or each.error
    finally:
        # Whatever ended it, no outcome of an earlier run may stay.
        written = write_outcome(outcome, BUILD, fallback=PROGRAM)
        _stop_if_alone(session)
    console.print(table(outcome), markup=False, soft_wrap=True)
    for path in written:
        console.print(str(path.relative_to(REPOSITORY)))
    if failed:
        raise failed
    return refused(outcome)


def recover(stack: str, progress: Progress, console: Console) -> None:
    """See `trainyard.recover`."""
    session = open_session(stack, progress, start=False)
    for each in (session.platform, session.workloads):
        if each.exists():
            recover_stack(session, each, console)


def status(stack: str, progress: Progress, console: Console) -> None:
    """Show tools, and on the local stack what runs."""
    tools = Table("tool", "version", "source", "why", title="Tools", title_justify="left")
    for tool in describe():
        tools.add_row(tool.name, tool.version or "-", tool.source, tool.why)
    console.print(tools)
    if stack != LOCAL_STACK:
        return
    below = LocalStack()
    aws, node = below.emulator.status(), below.node({}).status()
    parts = Table("part", "state", title="Local stack", title_justify="left")
    parts.add_row("AWS emulator", aws.problem or (f"answers at {aws.url}" if aws.running else "stopped"))
    parts.add_row("Kubernetes node", f"{node.phase}, {node.memory_bytes / 2**20:.0f} MiB" if node.running else "stopped")
    for name, daemon in node.daemons.items():
        parts.add_row(f"  {name}", "ready" if daemon.ready else "not ready")
    console.print(parts)
    if node.ready:
        session = open_session(stack, progress, start=False)
        if session.platform.exists():
            with cluster(session) as jobs:
                for job in jobs.jobs():
                    console.print(f"{job.kind} {job.name}: {job.phase}")


def logs(stack: str, job: str, progress: Progress, console: Console) -> None:
    """Print a job's logs."""
    session = open_session(stack, progress, start=False)
    if not session.platform.exists():
        raise LocalStackError(f"there is no stack {stack}: bring it up first")
    with cluster(session) as jobs:
        for line in jobs.logs(jobs.job(job).name):
            console.print(line, markup=False, soft_wrap=True)


def clean(progress: Progress, console: Console) -> None:
    """Stop the local stack and delete its state and logs; what is built stays in the cache."""
    with progress.step("stop the local stack"):
        LocalStack().destroy()
    shutil.rmtree(state_dir(), ignore_errors=True)
    console.print(f"Removed {state_dir()}")


@dataclass(frozen=True, kw_only=True)
class _Preview:
    """What the engine says of one stack: its title, summary and text, and the error where a rule or the program refuses."""

    project: str
    summary: Summary
    text: str = ""
    error: EngineError | None = None


def _previews(session: Session, flags: tuple[str, ...]) -> Generator[_Preview]:
    """Each stack that can be previewed; one that is refused ends nothing for the next."""
    platform_was_up = session.platform.exists() and _has_outputs(session)
    stacks: list[Stack] = [session.platform, *([session.workloads] if platform_was_up else [])]
    for stack in stacks:
        stack.init()
        output = session.progress.log.parent / f"preview-{stack.project.name}.txt"
        try:
            with session.progress.step(f"preview the {stack.project.title}") as step:
                summary = stack.preview(lambda seen, step=step: step.update(f"{seen.touched} resources"), output=output, flags=flags)
        except EngineError as error:
            yield _Preview(project=stack.project.title, summary=error.summary, error=error)
        else:
            yield _Preview(project=stack.project.title, summary=summary, text=output.read_text())


def _has_outputs(session: Session) -> bool:
    home = session.platform.config.parent if session.platform.config else session.platform.project.folder
    return session.engine.text(["stack", "output", "--json", "--stack", session.stack], cwd=home).strip() != "{}"


def _stop_if_alone(session: Session) -> None:
    """A preview that started the emulator for itself alone ends it again."""
    if session.below and session.running is None:
        session.below.emulator.stop()


@contextmanager
def _stopped_on_interrupt(stack: str) -> Generator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if stack == LOCAL_STACK:
            LocalStack().stop()
        raise

"""`up`: platform, then jobs, then what came of them."""

import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from local.errors import LocalStackError
from local.paths import REPOSITORY
from local.stack import EMULATED
from training.history import History, read_history
from trainyard.events import Summary
from trainyard.jobs import Cluster, Job, run_name
from trainyard.session import Session
from trainyard.stack import Stack

JOB_TIMEOUT_SECONDS = 1800
PLOT = REPOSITORY / "build" / "loss.svg"


def bring_up(session: Session, console: Console) -> None:
    """Bring both stacks up, wait for the jobs, and say what was made.

    Raises:
        LocalStackError: a stack was refused or failed, or a job did.
    """
    started = time.monotonic()
    summaries = {stack.project.title: update(session, stack) for stack in (session.platform, session.workloads)}
    with cluster(session) as jobs:
        names = [job.name for job in jobs.jobs()]
        finished = _wait(session, jobs, names)
        runs = _losses(session, finished)
    _report(console, session, summaries, finished, runs, time.monotonic() - started)


def update(session: Session, stack: Stack) -> Summary:
    """Bring one stack up; shows which resource of it the engine is at."""
    stack.init()
    with session.progress.step(f"{stack.project.title} stack") as step:
        return stack.up(lambda summary: step.update(f"{summary.touched} resources"))


@contextmanager
def cluster(session: Session) -> Generator[Cluster]:
    """The cluster's jobs; the kubeconfig that a stack hands out is kept only as long as it is used."""
    namespace = session.engine.text(["stack", "output", "namespace", "--stack", session.stack], cwd=_home(session)).strip()
    if session.running:
        yield Cluster(session.running.kubeconfig, namespace)
        return
    with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.touch(mode=0o600)
        words = ["stack", "output", "kubeconfig", "--show-secrets", "--stack", session.stack]
        kubeconfig.write_text(session.engine.text(words, cwd=_home(session)))
        yield Cluster(kubeconfig, namespace)


def _home(session: Session) -> Path:
    return session.platform.config.parent if session.platform.config else session.platform.project.folder


def _wait(session: Session, jobs: Cluster, names: list[str]) -> list[Job]:
    if not names:
        return []
    with session.progress.step("training jobs") as step:
        return jobs.wait(
            names,
            timeout_seconds=JOB_TIMEOUT_SECONDS,
            on_change=lambda found: step.update(", ".join(f"{run_name(job.name)} {job.phase}" for job in found)),
        )


def _losses(session: Session, jobs: list[Job]) -> dict[str, History]:
    """Read the runs' metrics from the volumes, and draw them. Runs by name."""
    node = session.running.node if session.running else None
    if node is None or not jobs:
        return {}
    files = {run_name(job.name): found for job in jobs if (found := _metrics_file(node.volumes, run_name(job.name)))}
    missing = [run_name(job.name) for job in jobs if run_name(job.name) not in files]
    if missing:
        raise LocalStackError(f"no metrics of {', '.join(missing)} under {node.volumes}")
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    session.progress.run([node.training_python, "-m", "training.plot", *files.values(), "-o", PLOT], cwd=REPOSITORY)
    return {run: read_history(path) for run, path in files.items()}


def _metrics_file(volumes: Path, run: str) -> Path | None:
    found = sorted(volumes.glob(f"*/*/**/{run}/metrics.jsonl"), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


def _report(
    console: Console, session: Session, summaries: dict[str, Summary], jobs: list[Job], runs: dict[str, History], seconds: float
) -> None:
    made = Table("stack", "resources", title=f"Stack {session.stack} is up ({seconds:.0f} s)", title_justify="left")
    for title, summary in summaries.items():
        made.add_row(title, summary.text())
    console.print(made)
    if runs:
        table = Table("job", "steps", "first loss", "last loss", "resumed at step", title="Jobs", title_justify="left")
        for name, run in runs.items():
            resumed = ", ".join(str(start["step"]) for start in run.starts if start["step"]) or "-"
            table.add_row(name, str(max(run.steps)), f"{run.first_loss:.3f}", f"{run.last_loss:.3f}", resumed)
        console.print(table)
        console.print(f"Loss curves: {PLOT.relative_to(REPOSITORY)}", highlight=False, soft_wrap=True)
    else:
        for job in jobs:
            console.print(f"Job {job.name}: {job.phase}", highlight=False, soft_wrap=True)
    warnings = [line for summary in summaries.values() for line in summary.warnings]
    for line in warnings:
        console.print(f"Warning: {line}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    if session.is_local:
        console.print("Emulated on this machine:")
        for line in EMULATED:
            console.print(f"  - {line}", highlight=False, soft_wrap=True)
    _next(console, session)


def _next(console: Console, session: Session) -> None:
    suffix = "" if session.is_local else f" STACK={session.stack}"
    console.print("Next:")
    console.print(f"  make logs JOB=pretrain-mpi{suffix}    what a job printed", highlight=False, soft_wrap=True)
    console.print(f"  make status{suffix}                   what runs, and on which tools", highlight=False, soft_wrap=True)
    console.print(
        f"  edit Pulumi.{session.stack}.yaml, then make preview{suffix}    what a change would do", highlight=False, soft_wrap=True
    )
    console.print(f"  make down{suffix}                     destroy everything", highlight=False, soft_wrap=True)

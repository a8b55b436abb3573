"""`trainyard COMMAND`, which the Makefile calls."""

import signal
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console

from local.errors import LocalStackError
from local.progress import Progress
from trainyard.engine import EngineError
from trainyard.pack import FORMATS, check_files
from trainyard.project import LOCAL_STACK

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
policy = typer.Typer(
    no_args_is_help=True, help="Judge stacks or plain files by the policy pack; exit status 1 is a violation, 2 bad input."
)
app.add_typer(policy, name="policy")
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

StackOption = Annotated[str, typer.Option("--stack", help="local runs on this machine; any other name is a stack on AWS.")]
_INTERRUPTED = 130
_BAD_INPUT = 2


@app.command()
def setup() -> None:
    """Make the Python environment and build or find the tools."""
    _run(_commands().setup, "setup")


@app.command()
def up(stack: StackOption = LOCAL_STACK) -> None:
    """Bring the platform up, run its jobs, show their losses."""
    _run(lambda progress: _commands().up(stack, progress, out), "up")


@app.command()
def down(stack: StackOption = LOCAL_STACK) -> None:
    """Destroy both stacks and prove that nothing is left."""
    _run(lambda progress: _commands().down(stack, progress, out), "down")


@app.command()
def preview(stack: StackOption = LOCAL_STACK) -> None:
    """Show what `up` would change, judged by the policy pack."""
    _run(lambda progress: _commands().preview(stack, progress, out), "preview")


@app.command()
def plan(stack: StackOption = LOCAL_STACK) -> None:
    """Write what `up` would change as JSON and Markdown."""
    _run(lambda progress: _commands().plan(stack, progress, out), "plan")


@app.command()
def recover(stack: StackOption = LOCAL_STACK) -> None:
    """After a killed `up` or `down`: lift its lock and take what it made into the state."""
    _run(lambda progress: _commands().recover(stack, progress, out), "recover")


@app.command()
def status(stack: StackOption = LOCAL_STACK) -> None:
    """Show what runs, and which tools are installed, built or stand-ins."""
    _run(lambda progress: _commands().status(stack, progress, out), "status")


@app.command()
def logs(job: Annotated[str, typer.Argument(help="Name of the job, such as pretrain-mpi.")] = "", stack: StackOption = LOCAL_STACK) -> None:
    """Print the logs of a job."""
    _run(lambda progress: _commands().logs(stack, job, progress, out), "logs")


@app.command()
def clean() -> None:
    """Stop the local stack and delete its state."""
    _run(lambda progress: _commands().clean(progress, out), "clean")


@policy.command("preview")
def policy_preview(stack: StackOption = LOCAL_STACK) -> None:
    """Judge both projects as `preview` does, and write build/policy.md, .sarif and .json."""
    status = 0

    def judge(progress: Progress) -> None:
        nonlocal status
        status = 1 if _commands().judge(stack, progress, out) else 0

    _run(judge, "policy", failure=_BAD_INPUT)
    sys.exit(status)


@policy.command("check")
def policy_check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Manifests (YAML, JSON) or DeepSpeed JSON; - is standard input.")],
    form: Annotated[str, typer.Option("--format", help="table, markdown, sarif or json.")] = "table",
    output: Annotated[str | None, typer.Option(help="File to write to instead of standard output.")] = None,
    config: Annotated[str | None, typer.Option(help="Policy configuration file: levels and exemptions.")] = None,
) -> None:
    """Judge plain files by the same rules, without Pulumi."""
    if form not in FORMATS:
        err.print(f"error: --format is {form}; allowed: {', '.join(FORMATS)}", style="red", markup=False, soft_wrap=True)
        sys.exit(_BAD_INPUT)
    sys.exit(check_files(files, form=form, output=output, config=config))


def main() -> None:
    """Run the command line."""
    # A shell that starts this with `&` leaves SIGINT ignored, for this process and all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)
    app()


def _commands() -> ModuleType:
    """What needs the stack: imported when it is run, as files are judged without it in a third of the time."""
    from trainyard import commands

    return commands


def _run(command: Callable[[Progress], None], name: str, *, failure: int = 1) -> None:
    """Run a command; what a user can act on is told in words, and the exit status says whether it worked."""
    progress = Progress(_commands().log_file(name), total=1, console=err)
    try:
        command(progress)
    except EngineError as error:
        _explain(error)
        sys.exit(failure)
    except LocalStackError as error:
        err.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        _name_log(error)
        sys.exit(failure)
    except KeyboardInterrupt:
        err.print("interrupted; run the same command again to go on, or `make down` to remove what was made", style="yellow")
        sys.exit(_INTERRUPTED)


def _explain(error: EngineError) -> None:
    for violation in error.summary.violations:
        style = "red" if violation.mandatory else "yellow"
        err.print(f"{'refused' if violation.mandatory else 'advice'}: {violation.message}", style=style, markup=False, soft_wrap=True)
    for line in error.summary.errors:
        err.print(f"error: {line}", style="red", markup=False, soft_wrap=True)
    if not error.summary.violations and not error.summary.errors:
        err.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
    _name_log(error)


def _name_log(error: LocalStackError) -> None:
    if error.log:
        err.print(f"log: {error.log}", markup=False, soft_wrap=True)


def _terminate(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt

"""Kills `pulumi up` at random moments, and proves that `make recover`, `make up` always ends well: a clean stack, then nothing left over.

CI runs three kills with a fixed seed, on the AWS half of the platform, and one in the middle of a call. The whole proof is twenty random
ones, four of them on the whole platform with its cluster, and a list of moments in which somebody dies on purpose:

    TRAINYARD_CHAOS_KILLS=20 .venv/bin/python -m pytest tests/engine/test_chaos.py -s

Who dies (the CLI, a plug-in, the language host, the program) and when (uniformly over the time of a clean run) is drawn from
TRAINYARD_CHAOS_SEED. Every kill is a row of the table that is printed at the end and kept in build/chaos.md.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from local.aws.emulator import Emulator
from local.paths import REPOSITORY
from local.progress import Progress
from local.toolchain.selection import choose
from local.toolchain.tools import ENGINE, ensure
from tests.engine.chaos_kill import Kill, Killed, draw, run_and_kill
from tests.engine.chaos_moment import Said, held
from tests.engine.chaos_report import Cycle, Report
from tests.engine.chaos_search import not_found_again
from tests.engine.chaos_stack import Ground, aws_ground, whole_ground
from trainyard.recover import recover_stack
from trainyard.recovery.deployment import Deployment

pytestmark = pytest.mark.engine

KILLS = int(os.environ.get("TRAINYARD_CHAOS_KILLS", "3"))
SEED = int(os.environ.get("TRAINYARD_CHAOS_SEED", "20"))
# A kill of the whole platform takes minutes, so there are fewer.
WHOLE_KILLS = KILLS // 5
AWS_TARGETS = ("cli", "aws plug-in", "cli", "language host", "aws plug-in", "program", "eks plug-in")
WHOLE_TARGETS = ("kubernetes plug-in", "cli", "kubernetes plug-in", "cli", "aws plug-in")
WHOLE_PROOF = 20
# Calls in whose middle somebody dies. For a killed plug-in the state knows nothing of them; and each has a difficulty of its own.
MOMENTS = (
    ("CreateVpc", "aws plug-in"),
    ("CreateNatGateway", "cli"),
    # Its attachment is a second call.
    ("CreateInternetGateway", "aws plug-in"),
    # Its tags are a second call.
    ("CreateBucket", "aws plug-in"),
    # It takes a while to become usable.
    ("CreateCluster", "aws plug-in"),
    # It has a made-up name, and a role can't be deleted with it.
    ("PutRolePolicy", "aws plug-in"),
    # It has neither id nor tags.
    ("CreateRoute", "cli"),
    # AWS refuses a second one.
    ("CreateMountTarget", "aws plug-in"),
)
# Releases that somebody dies in; both have objects that take a while.
RELEASES = (("volcano", "kubernetes plug-in"), ("volcano", "cli"), ("karpenter", "kubernetes plug-in"))
MOST_MISSES = 5
"""How many runs in a row may end before their kill comes."""


@dataclass(frozen=True, kw_only=True)
class Clean:
    """What a run that nobody kills is like."""

    ground: Ground
    seconds: float
    lost: list[str]
    """Resources that a recovery would not find."""


@pytest.fixture(scope="module")
def engine() -> None:
    """The tools, and the stand-ins in use: genuine plug-ins have ways of their own."""
    with tempfile.TemporaryDirectory() as folder:
        ensure([ENGINE], Progress(Path(folder) / "build.log", total=0))
    for name in ("pulumi-resource-aws", "pulumi-resource-eks"):
        if choose(name).source != "stand-in":
            pytest.skip(f"{name} is installed, so the stand-in is not used")


@pytest.fixture(scope="module")
def aws_half(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clean]:
    folder = tmp_path_factory.mktemp("chaos")
    emulator = Emulator(folder / "aws")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINYARD_STATE", str(folder / "state"))
        try:
            yield run_clean(aws_ground(folder, emulator))
        finally:
            emulator.stop()


@pytest.fixture(scope="module")
def whole(engine: None) -> Iterator[Clean]:
    if os.geteuid():
        pytest.skip("the local stack's node needs root")
    # Paths of sockets below it have to be short.
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    ground = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINYARD_STATE", str(folder))
        try:
            ground = whole_ground(folder)
            yield run_clean(ground)
        finally:
            if ground and ground.session.below:
                ground.session.below.destroy()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    report = Report(seed=SEED)
    yield report
    print(f"\n{report.table()}")


def test_whatever_a_stack_makes_in_aws_would_be_found_again(aws_half: Clean) -> None:
    assert aws_half.lost == []


@pytest.mark.parametrize("kill", draw(SEED, KILLS - WHOLE_KILLS, AWS_TARGETS), ids=str)
def test_a_killed_up_is_recovered_and_leaves_nothing(aws_half: Clean, report: Report, kill: Kill) -> None:
    kill_and_recover(aws_half, report, kill)


@pytest.mark.parametrize(("operation", "target"), MOMENTS if KILLS >= WHOLE_PROOF else MOMENTS[:1])
def test_what_was_made_and_never_answered_for_is_adopted(aws_half: Clean, report: Report, operation: str, target: str) -> None:
    ground = aws_half.ground
    ground.stack.init()
    with held(ground.endpoint, operation) as moment:
        killed = strike(ground, target, moment.has_come)
    assert killed.happened, f"no run called {operation}"
    moment.wait_until_made()
    cycle = Cycle.of(Kill(target=f"{target} in {operation}", part=killed.seconds / aws_half.seconds), killed, ground.stack.export())
    report.cycles.append(cycle)
    recover_and_check(ground, report, cycle)
    assert ": adopted: " in cycle.said, cycle.said


@pytest.mark.cluster
@pytest.mark.parametrize(("release", "target"), RELEASES if KILLS >= WHOLE_PROOF else [])
def test_a_helm_release_that_was_cut_short_is_made_anew(whole: Clean, report: Report, release: str, target: str) -> None:
    ground = whole.ground
    ground.stack.init()
    # Helm writes its record first, then makes the objects and waits for them.
    moment = Said(ground.session.progress.log, f"Release trainyard-{release} creating", wait_seconds=0.7)
    killed = strike(ground, target, moment.has_come)
    assert killed.happened, f"no run installed {release}"
    cycle = Cycle.of(Kill(target=f"{target} in {release}", part=killed.seconds / whole.seconds), killed, ground.stack.export())
    report.cycles.append(cycle)
    recover_and_check(ground, report, cycle)


@pytest.mark.cluster
@pytest.mark.parametrize("kill", draw(SEED, WHOLE_KILLS, WHOLE_TARGETS), ids=str)
def test_a_killed_up_of_the_whole_platform_is_recovered_too(whole: Clean, report: Report, kill: Kill) -> None:
    assert whole.lost == []
    kill_and_recover(whole, report, kill)


def run_clean(ground: Ground) -> Clean:
    """Run what gets killed to its end, once; then away with it."""
    ground.stack.init()
    started = time.monotonic()
    ground.run_whole()
    seconds = time.monotonic() - started
    lost = not_found_again(ground)
    ground.stack.destroy()
    assert ground.left() == set()
    return Clean(ground=ground, seconds=seconds, lost=lost)


def kill_and_recover(clean: Clean, report: Report, kill: Kill) -> None:
    """One row of the table."""
    cycle = killed_run(clean, kill)
    report.cycles.append(cycle)
    recover_and_check(clean.ground, report, cycle)


def killed_run(clean: Clean, kill: Kill) -> Cycle:
    """Start `up` and kill it. A run that was done before its moment is undone and tried again, a little earlier."""
    ground = clean.ground
    for _ in range(MOST_MISSES):
        ground.stack.init()
        moment = kill.part * clean.seconds
        killed = strike(ground, kill.target, lambda seconds, moment=moment: seconds >= moment)
        if killed.happened:
            return Cycle.of(kill, killed, ground.stack.export())
        ground.stack.destroy()
        kill = Kill(target=kill.target, part=kill.part * 0.8)
    raise AssertionError(f"no run lasted until its {kill.target} was to be killed")


def strike(ground: Ground, target: str, is_time: Callable[[float], bool]) -> Killed:
    """Run `up`, kill one of its processes, and see the others end."""
    folder, log = ground.stack.project.folder, ground.session.progress.log
    killed = run_and_kill(ground.argv(), target, is_time, cwd=folder, env=ground.environment, log=log)
    assert killed.lingering == {}, f"these outlived the {target}: {killed.lingering}"
    return killed


def recover_and_check(ground: Ground, report: Report, cycle: Cycle) -> None:
    """The documented way back, and what has to be true after it."""
    try:
        _recover_and_check(ground, cycle)
    finally:
        report.write(REPOSITORY / "build" / "chaos.md")


def _recover_and_check(ground: Ground, cycle: Cycle) -> None:
    said = StringIO()
    with cycle.timed("recover"):
        recover_stack(ground.session, ground.stack, Console(file=said, width=200))
    cycle.said = said.getvalue()
    assert "not decided" not in cycle.said, cycle.said
    with cycle.timed("up"):
        summary = ground.stack.up()
    assert summary.errors == []
    again = ground.stack.preview()
    assert again.changed == 0, again.text()
    assert ground.cut_short() == []
    cycle.done = len(Deployment(ground.stack.export()).resources)
    with cycle.timed("destroy"):
        ground.stack.destroy()
    assert ground.left() == set(), f"left behind by {cycle.kill}; recover had said:\n{cycle.said}"
    cycle.clean = True

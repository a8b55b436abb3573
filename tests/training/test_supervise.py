"""Ranks that die are started again within seconds, on all nodes together, and the run's losses are those of an unbroken one."""

import os
import signal
import socket
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.training.job import Job, values
from tests.training.rank import Rank, end, free_port, handles, wait, wait_until

pytestmark = pytest.mark.training
LONG = {"steps": 100_000, "schedule": {"decay_steps": 100}, "checkpoint": {"every": 20}, "evaluation": {"every": 0}, "log_every": 20}


@contextmanager
def supervised(job: Job, *options: Sequence[str], **changes: object) -> Generator[list[Rank]]:
    """One supervisor for each list of options."""
    config = str(job.write_config(**changes))
    agents = [
        Rank([*own, "-m", "training.train", "--config", config], {}, job.folder / f"agent-{index}", module="training.supervise.__main__")
        for index, own in enumerate(options)
    ]
    try:
        yield agents
    finally:
        end(agents)


def ranks_of(agent: Rank) -> list[int]:
    """Process ids of an agent's ranks: those of its children that lead a process group of their own."""
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    return [pid for pid in map(int, children) if os.getpgid(pid) == pid]


def two_nodes() -> tuple[list[str], list[str]]:
    shared = ["--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", str(free_port()), "--control-port", str(free_port())]
    return [*shared, "--node-rank", "0", "--nproc-per-node", "1"], [*shared, "--node-rank", "1", "--nproc-per-node", "1"]


def test_a_killed_rank_costs_at_most_one_save_interval_and_changes_no_loss(job: Job) -> None:
    with supervised(job, ["--nproc-per-node", "2"], steps=60, checkpoint={"every": 10}) as (agent,):
        wait_until(lambda: "step 14 " in agent.log(), "the steps after the first save")
        os.kill(ranks_of(agent)[-1], signal.SIGKILL)
        finished = wait([agent])
    assert finished.codes == [0], finished.log
    assert "rank 1 of 2 on " in finished.log
    assert "was killed by SIGKILL (out of memory, or by hand); restart 1 of 3 of all ranks" in finished.log
    assert "resumed from step" in finished.log
    assert finished.log.strip().splitlines()[-1] == "supervisor | all 2 ranks ended with exit code 0 (done)"
    broken = job.history()
    assert len(broken.starts) == 2
    unbroken = Job(job.folder / "unbroken", job.settings, ranks=2)
    unbroken.run(steps=60, checkpoint={"every": 10})
    assert values(broken, "loss") == values(unbroken.history(), "loss")


def test_a_rank_lost_on_one_node_starts_both_nodes_again_and_a_signal_to_one_saves_both(job: Job) -> None:
    with supervised(job, *two_nodes(), **LONG) as agents:
        wait_until(lambda: "step 20  saved" in agents[0].log(), "the first save")
        os.kill(ranks_of(agents[1])[0], signal.SIGKILL)
        wait_until(lambda: "resumed from step" in agents[0].log(), "the second start")
        saved = len(job.history().checkpoints)
        wait_until(lambda: len(job.history().checkpoints) > saved, "steps of the second start")
        agents[1].signal(signal.SIGTERM)
        finished = wait(agents, 60)
    assert finished.codes == [75, 75], finished.log
    assert all("rank 1 of 2 on " in log and "restart 1 of 3" in log for log in finished.logs)
    assert all(log.strip().endswith("supervisor | all 2 ranks ended with exit code 75 (restart)") for log in finished.logs)
    assert "stopping after step" in finished.log


def test_a_lost_node_may_come_again(job: Job) -> None:
    first, second = two_nodes()
    with supervised(job, first, second, **LONG) as agents:
        wait_until(lambda: "step 20  saved" in agents[0].log(), "the first save")
        pids = ranks_of(agents[1])
        agents[1].signal(signal.SIGKILL)
        wait_until(lambda: "node 1 (" in agents[0].log(), "the loss to be noticed")
        wait_until(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in pids), "the end of the lost node's ranks")
        with supervised(job, second, **LONG) as (again,):
            wait_until(lambda: "resumed from step" in agents[0].log(), "the second start")
            agents[0].signal(signal.SIGTERM)
            finished = wait([agents[0], again], 60)
    assert finished.codes == [75, 75], finished.log


@pytest.mark.parametrize(
    ("changes", "options", "code", "last"),
    [
        ({"data": {"files": ["/nowhere"]}}, ["--max-restarts", "1"], 1, "restarts are used up (1 within 3600 s)"),
        ({"checkpoint": {"resume": "required"}}, ["--max-restarts", "0"], 1, "checkpoint.resume is required, but"),
        ({"distributed": {"backend": "nccl"}}, [], 78, "nccl needs a GPU and this rank sees none"),
        ({"steps": 0}, [], 78, "steps: 0 is refused"),
    ],
    ids=["budget", "none", "config", "early"],
)
def test_the_last_line_names_rank_and_reason(job: Job, changes: dict, options: list[str], code: int, last: str) -> None:
    with supervised(job, ["--nproc-per-node", "2", *options], **changes) as agents:
        finished = wait(agents, 90)
    assert finished.codes == [code], finished.log
    line = finished.log.strip().splitlines()[-1]
    assert line.startswith("supervisor | ")
    assert last in line
    assert "Traceback" not in finished.log
    if code != 78:
        assert "of 2 on " in line


def test_a_node_that_cannot_find_node_0_says_so_and_one_that_waits_for_others_leaves_on_a_signal(job: Job) -> None:
    first, second = two_nodes()
    nowhere = ["--nnodes", "2", "--node-rank", "1", "--master-addr", "pod-0.job.invalid", "--rendezvous-timeout", "2"]
    with supervised(job, nowhere, [*first, "--rendezvous-timeout", "2"]) as (lost, alone):
        finished = wait([lost, alone], 60)
    assert finished.codes == [1, 1], finished.log
    assert "node 1 cannot reach node 0 at pod-0.job.invalid:" in finished.logs[0]
    assert "after 2 s nodes 1 of 2 have not come; look at their logs" in finished.logs[1]
    with supervised(job, second) as (waiting,):
        wait_until(lambda: handles(waiting.pid, signal.SIGTERM), "its handlers")
        waiting.signal(signal.SIGTERM)
        finished = wait([waiting], 60)
    assert finished.codes == [75], finished.log
    assert "SIGTERM came" in finished.log


@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.01, 0.05, 0.2, 0.5])
def test_a_signal_before_any_rank_runs_asks_for_a_restart_at_whatever_moment_it_comes(job: Job, seconds: float, node: int) -> None:
    options = two_nodes()[node]
    with supervised(job, options) as (waiting,):
        wait_until(lambda: handles(waiting.pid, signal.SIGTERM), "its handlers")
        time.sleep(seconds)
        waiting.signal(signal.SIGTERM)
        finished = wait([waiting], 60)
    assert finished.codes == [75], finished.log
    assert finished.log in [
        f"supervisor | SIGTERM came {when}\n" for when in ("before the ranks were started", "while no rank was running")
    ]
    wait_until(lambda: is_free(int(options[options.index("--control-port") + 1])), "the end of the coordinator", 20)


def is_free(port: int) -> bool:
    """Whether nothing listens on this port any more."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def test_a_signal_during_an_import_that_hides_every_exception_is_obeyed(job: Job) -> None:
    program = ["--nproc-per-node", "1", "-m", "tests.training.deaf_import"]
    job.folder.mkdir(parents=True, exist_ok=True)
    supervisor = Rank(program, {}, job.folder / "supervisor", module="training.supervise.__main__")
    finished = wait([supervisor], 60)
    assert finished.codes == [75], finished.log
    assert finished.log == "supervisor | SIGTERM came before the ranks were started\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--nnodes", "2"], "--node-rank: nothing is refused"),
        (["--nnodes", "2", "--node-rank", "2"], "--node-rank: 2 is refused; allowed: a place from 0"),
        (["--nnodes", "2", "--node-rank", "1"], "--master-addr: nothing is refused"),
        (["--nproc-per-node", "two"], '--nproc-per-node: "two" is refused'),
        (["--max-restarts", "-1"], "--max-restarts: -1 is refused"),
        (["--master-port", "70000"], "--master-port: 70000 is refused"),
        (["--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_a_wrong_option_is_named(job: Job, options: list[str], message: str) -> None:
    with supervised(job, options) as agents:
        finished = wait(agents, 30)
    assert finished.codes == [78]
    assert message in finished.log

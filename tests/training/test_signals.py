"""A signal to any rank, whoever sends it: all ranks agree on a step, save it and exit 75, and nothing is lost."""

import signal
import socket
import time
from pathlib import Path

import pytest

from tests.training.job import DDP, Job, merge, values, zero
from tests.training.rank import contract, wait, wait_until
from training import storage

pytestmark = pytest.mark.training


def stop_in_the_middle(job: Job, number: int, victims: list[int], engine: dict) -> int:
    """Start, signal these ranks once steps are made, and give the step that all ranks saved."""
    with job.started(steps=100_000, checkpoint={"every": 0}, schedule={"decay_steps": 100}, **engine) as processes:
        wait_until(lambda: "step 3 " in processes[0].log(), "the first steps")
        for victim in victims:
            processes[victim].signal(number)
        finished = wait(processes, 60)
    assert set(finished.codes) == {75}, finished.log
    (step,) = storage.published_steps(job.checkpoints)
    assert step == max(job.history().steps), "every optimizer step that was made must be saved"
    assert f"stopping after step {step} of 100000" in finished.log
    return step


@pytest.mark.parametrize(
    ("number", "victims", "engine"),
    [
        (signal.SIGTERM, [0, 1], DDP),
        (signal.SIGUSR1, [1], DDP),
        (signal.SIGTERM, [0], zero(1)),
        (signal.SIGINT, [0, 1], zero(3)),
    ],
    ids=["term-all", "usr1-one", "term-one-zero-1", "int-all-zero-3"],
)
def test_all_ranks_save_one_step_and_ask_for_a_restart(job: Job, number: int, victims: list[int], engine: dict) -> None:
    job.ranks = 2
    step = stop_in_the_middle(job, number, victims, engine)
    finished = job.run(steps=step + 2, **engine, schedule={"decay_steps": 100})
    assert f"resumed from step {step}" in finished.log
    assert len(values(job.history(), "loss")) == step + 2


def test_a_signal_before_the_first_step_ends_the_wait_for_others(job: Job) -> None:
    environs = [{"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "no-such-host.invalid"}]
    with job.started(environs=environs) as (process,):
        wait_until(lambda: "waiting for 2 ranks at no-such-host.invalid" in process.log(), "the wait for the other rank")
        process.signal(signal.SIGTERM)
        finished = wait([process], 60)
    assert finished.codes == [75]
    assert "SIGTERM came before the first step; nothing to save" in finished.log.splitlines()[-1]


@pytest.mark.parametrize("stays", [True, False], ids=["silent", "gone"])
def test_a_signal_ends_the_wait_for_rank_0(job: Job, stays: bool) -> None:
    """Whether it takes connections and never answers, or has gone after the first one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        environs = [{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}]
        with job.started(environs=environs) as (process,):
            connection, _ = listener.accept()
            if not stays:
                listener.close()
                connection.close()
                time.sleep(1)
            process.signal(signal.SIGTERM)
            finished = wait([process], 15)
            connection.close()
    assert finished.codes == [75], finished.log
    assert "SIGTERM came before the first step; nothing to save" in finished.log.splitlines()[-1]


def test_a_rank_that_leaves_before_all_have_come_is_missed_by_the_others(job: Job) -> None:
    environs = contract(3)
    job.settings = merge(job.settings, {"batch": {"global_batch": 12}, "distributed": {"init_timeout_seconds": 15}})
    with job.started(environs=environs[:2]) as (first, leaving):
        wait_until(lambda: connections_to(int(environs[0]["MASTER_PORT"])) == 2, "both to reach the store")
        time.sleep(0.5)
        leaving.signal(signal.SIGTERM)
        assert wait([leaving], 15).codes == [75]
        with job.started(environs=environs[2:]) as (late,):
            finished = wait([first, late], 60)
    assert finished.codes == [1, 1], finished.log
    assert "1 of 3 ranks have not come" in finished.logs[0]
    assert "ranks 1; look at their logs" in finished.logs[0]


def connections_to(port: int) -> int:
    """Established connections to a port of this machine."""
    lines = [line.split() for family in ("tcp", "tcp6") for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]]
    return sum(remote.endswith(f":{port:04X}") and state == "01" for _, _, remote, state, *_ in lines)

"""The same command under the launchers that jobs use: each gives ranks, exit codes and signals in its own way."""

import base64
import json
import os
import shutil
import signal
import subprocess

import pytest

from tests.training.job import Job, values
from tests.training.rank import REPOSITORY, Finished, Rank, contract, end, environment, free_port, training_python, wait, wait_until

pytestmark = pytest.mark.training


def launch(command: list[str], job: Job) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, timeout=240, check=False)


def torchrun(*arguments: str) -> list[str]:
    options = ["--nproc-per-node", "2", "--master-port", str(free_port())]
    return [training_python(), "-m", "training.torchrun", *options, "-m", "training.train", *arguments]


def test_torchrun_gives_the_ranks_own_exit_code_and_the_next_start_goes_on(job: Job) -> None:
    config = str(job.write_config())
    stopped = launch(torchrun("--config", config, "--set", "stop_after=5"), job)
    assert stopped.returncode == 75, stopped.stdout + stopped.stderr
    assert "launched by torchrun" in stopped.stdout
    assert "exit codes by rank: 0: 75, 1: 75" in stopped.stderr
    assert "Traceback" not in stopped.stdout + stopped.stderr
    done = launch(torchrun("--config", config), job)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "resumed from step 5" in done.stdout
    assert len(values(job.history(), "loss")) == 12
    refused = launch(torchrun("--config", config, "--set", "steps=x"), job)
    assert refused.returncode == 78, refused.stdout + refused.stderr
    last = refused.stderr.strip().splitlines()[-1]
    assert last.startswith("first, rank ")
    assert " ended with exit code 78 (config): " in last
    assert 'steps: "x" is refused' in last


def test_a_signal_to_torchrun_reaches_the_ranks_and_asks_for_a_restart(job: Job) -> None:
    config = str(job.write_config(steps=100_000, schedule={"decay_steps": 100}, checkpoint={"every": 0}))
    metrics = job.directory / "metrics.jsonl"
    with subprocess.Popen(torchrun("--config", config), cwd=REPOSITORY, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: metrics.exists() and '"step": 2,' in metrics.read_text(), "the first steps")
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 75, output
    assert "stopping after step" in output
    assert len(list(job.checkpoints.iterdir())) == 1


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun on this machine (Debian: openmpi-bin); the cluster tier runs it in pods")
def test_mpirun_gives_ranks_and_passes_the_exit_code_on(job: Job) -> None:
    options = ["--oversubscribe", "-np", "2", "-x", "PYTHONPATH", "-x", "OMP_NUM_THREADS", "-x", f"MASTER_PORT={free_port()}"]
    if os.geteuid() == 0:
        options.append("--allow-run-as-root")
    command = ["mpirun", *options, training_python(), "-m", "training.train", "--config", str(job.write_config(stop_after=3))]
    stopped = launch(command, job)
    assert stopped.returncode == 75, stopped.stdout + stopped.stderr
    assert "world size 2 (launched by mpirun" in stopped.stdout
    assert "global batch 8 = micro 2 x accumulation 2 x data-parallel replicas 2" in stopped.stdout


def test_a_plain_process_needs_no_launcher_and_draws_its_curve(job: Job) -> None:
    plain = launch([training_python(), "-m", "training.train", "--config", str(job.write_config())], job)
    assert plain.returncode == 0, plain.stdout + plain.stderr
    for name in ("loss.svg", "loss.png"):
        picture = job.folder / name
        metrics = str(job.directory / "metrics.jsonl")
        drawn = launch([training_python(), "-m", "training.plot", metrics, metrics, "-o", str(picture)], job)
        assert drawn.returncode == 0, drawn.stderr
        assert "in 12 steps, 1 starts" in drawn.stdout
        assert picture.stat().st_size > 5000
    missing = launch([training_python(), "-m", "training.plot", "/nowhere", "-o", "x.svg"], job)
    assert (missing.returncode, missing.stderr) == (2, "/nowhere: No such file or directory\n")


def under_ray(job: Job, **changes: object) -> Finished:
    """Two workers as Ray Train runs them."""
    config = str(job.write_config(**changes))
    environs = [{**environ, "RAY_JOB_ID": "01000000", "LOCAL_WORLD_SIZE": "2"} for environ in contract(2)]
    workers = [
        Rank(["--config", config], environ, job.folder / f"ray-{index}", module="tests.training.ray_stand_in")
        for index, environ in enumerate(environs)
    ]
    try:
        return wait(workers, 120)
    finally:
        end(workers)


def test_ray_s_workers_use_the_group_that_ray_made_and_leave_it_to_ray(job: Job) -> None:
    finished = under_ray(job)
    assert finished.codes == [0, 0], finished.log
    assert "world size 2 (launched by ray" in finished.logs[0]
    assert "backend gloo (of the group that ray made)" in finished.logs[0]
    assert len(values(job.history(), "loss")) == 12


def test_a_failure_under_ray_raises_for_ray_to_see(job: Job) -> None:
    finished = under_ray(job, checkpoint={"resume": "required"})
    assert finished.codes == [3, 3], finished.log
    assert "WorkerError: the trainer ended with exit code 1 (failed); the line before says why" in finished.logs[0]
    assert "checkpoint.resume is required, but" in finished.logs[0]


@pytest.mark.slow
def test_the_deepspeed_launcher_gives_ranks_and_their_arguments(job: Job) -> None:
    world = base64.urlsafe_b64encode(json.dumps({"localhost": [0, 1]}).encode()).decode()
    options = [f"--world_info={world}", "--node_rank=0", "--master_addr=127.0.0.1", f"--master_port={free_port()}", "--module"]
    command = [training_python(), "-m", "deepspeed.launcher.launch", *options, "training.train", "--config", str(job.write_config())]
    done = launch(command, job)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "world size 2 (launched by deepspeed" in done.stdout

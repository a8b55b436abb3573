"""How soon a run makes steps again after kill -9 of a rank, beside a cold start of the same job.

    python -m benchmarks.recovery [--runs 3] [--ranks 2] [--engine ddp|zero1]

Cold: from the command to the first step. Recovery: from the kill to the first step that had not been made before. Both under
`training.supervise`, saving each step, so that none is lost; the losses must be those of a run that nobody killed, which is made first
and warms the page cache. Goals: at most 0.5 of a cold start, noticed within a second.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.training_python import environment, training_python
from local.paths import REPOSITORY
from training.history import History, read_history

GOAL = 0.5
DETECTION_GOAL_SECONDS = 1.0
_ENGINES = {"ddp": {"kind": "ddp"}, "zero1": {"kind": "deepspeed", "zero_stage": 1}}
_PATIENCE_SECONDS = 300.0


@dataclass(frozen=True)
class Killed:
    """What one killed run came to, in seconds."""

    cold: float
    """From the command to the first step."""
    noticed: float
    """From the kill to the supervisor's word of it."""
    recovery: float
    """From the kill to the first new step."""
    losses: list[float]


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and give 0 if the goals are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description="Restart after kill -9 beside a cold start.")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--engine", choices=sorted(_ENGINES), default="ddp")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="trainyard-recovery-") as folder:
        unbroken = run_unbroken(Path(folder) / "unbroken", options)
        runs = [run_killed(Path(folder) / f"run-{index}", options, seed=index) for index in range(options.runs)]
    for run in runs:
        print(f"cold {run.cold:.2f} s, noticed after {run.noticed:.3f} s, recovery {run.recovery:.2f} s")
    ratio = min(run.recovery for run in runs) / min(run.cold for run in runs)
    noticed, exact = max(run.noticed for run in runs), all(run.losses == unbroken for run in runs)
    print(
        json.dumps({"ratio": round(ratio, 3), "goal": GOAL, "noticed_seconds": round(noticed, 3), "losses_equal": exact, "runs": len(runs)})
    )
    return 0 if ratio <= GOAL and noticed <= DETECTION_GOAL_SECONDS and exact else 1


def run_unbroken(folder: Path, options: argparse.Namespace) -> list[float]:
    """Losses of the run that nobody kills."""
    with supervised(folder, options) as process:
        assert process.wait(_PATIENCE_SECONDS) == 0, (folder / "log").read_text()
    return _losses(history(folder))


def run_killed(folder: Path, options: argparse.Namespace, *, seed: int) -> Killed:
    """Kill a random rank in the middle, wait for the end, and tell the times apart by the records of the run itself."""
    started = time.time()
    with supervised(folder, options) as process:
        _wait(lambda: len(history(folder).steps) >= options.steps // 2, process)
        made = max(history(folder).steps)
        victim = random.Random(seed).choice(ranks_of(process.pid))
        killed = time.time()
        os.kill(victim, signal.SIGKILL)
        _wait(lambda: "restart 1 of" in (folder / "log").read_text(), process)
        noticed = time.time()
        assert process.wait(_PATIENCE_SECONDS) == 0, (folder / "log").read_text()
    records = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [record for record in records if record["event"] == "step"]
    # A step may have been made between the look at the file and the kill.
    first_new = next(record for record in steps if record["time"] > killed and record["step"] > made and _is_new(record, records, killed))
    return Killed(steps[0]["time"] - started, noticed - killed, first_new["time"] - killed, _losses(history(folder)))


def _is_new(record: dict, records: list[dict], killed: float) -> bool:
    """Whether the second process start comes before it: not a step that was on its way when the rank was killed."""
    starts = [start["time"] for start in records if start["event"] == "start" and start["time"] > killed]
    return bool(starts) and record["time"] > starts[0]


@contextlib.contextmanager
def supervised(folder: Path, options: argparse.Namespace) -> Generator["subprocess.Popen[bytes]"]:
    """The job under the supervisor, with its output in folder/log."""
    folder.mkdir(parents=True)
    config = folder / "config.json"
    config.write_text(json.dumps(configuration(folder, options)))
    command = [
        training_python(),
        "-m",
        "training.supervise",
        "--nproc-per-node",
        str(options.ranks),
        "-m",
        "training.train",
        "--config",
        str(config),
    ]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, cwd=REPOSITORY, env=environment(), stdout=log, stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def configuration(folder: Path, options: argparse.Namespace) -> dict:
    """A small run that saves each step."""
    return {
        "name": "run",
        "steps": options.steps,
        "model": {"dim": 64, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "ffn_dim": 128},
        "data": {"sequence_length": 64, "files": [str(REPOSITORY / "training")]},
        "batch": {"micro": 2, "global_batch": 4 * options.ranks},
        "engine": _ENGINES[options.engine],
        "schedule": {"warmup_steps": 4},
        "evaluation": {"every": 0},
        "checkpoint": {"directory": str(folder), "every": 1, "keep": 3},
    }


def ranks_of(supervisor: int) -> list[int]:
    """Process ids of the ranks: the supervisor's children that lead a process group."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return [pid for pid in map(int, children) if os.getpgid(pid) == pid]


def history(folder: Path) -> History:
    """What the run has measured so far."""
    file = folder / "run" / "metrics.jsonl"
    return read_history(file) if file.exists() else History()


def _losses(measured: History) -> list[float]:
    return measured.series("loss")[1]


def _wait(condition, process: "subprocess.Popen[bytes]") -> None:  # noqa: ANN001
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the run ended with {process.poll()} before what was waited for")
        time.sleep(0.005)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

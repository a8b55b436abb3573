"""The ranks of the parity proof: forked, trained on the same samples whatever the layout, and compared with one process."""

import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from training.batch import BatchPlan
from training.config import TrainConfig
from training.data import Samples
from training.distributed import join
from training.engines import build_engine
from training.launch import read_launch
from training.layout import Layout
from training.parity_cases import GLOBAL_BATCH, LENGTH, Case
from training.schedule import learning_rate

_TIMEOUT_SECONDS = 300.0


def run_case(case: Case) -> dict:
    """What rank 0 has measured: weights, and losses, gradient norms and seconds of each step.

    Raises RuntimeError with the ranks' output if one fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        environ = {"WORLD_SIZE": str(case.ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
        pids = [_fork(case, {**environ, "RANK": str(rank), "LOCAL_RANK": str(rank)}, Path(folder)) for rank in range(case.ranks)]
        failed = _wait(pids)
        if failed:
            logs = [(Path(folder) / f"log-{rank}").read_text(errors="replace") for rank in failed]
            raise RuntimeError(f"ranks {failed} failed:\n" + "\n".join(log[-3000:] for log in logs))
        return torch.load(Path(folder) / "outcome")


def deviation(outcome: dict, reference: dict) -> tuple[float, float, float]:
    """Largest relative deviation of a step's loss, of its gradient norm, and of a weight as a share of the largest in its tensor.

    Raises RuntimeError if the two have other parameters.
    """
    if outcome["weights"].keys() != reference["weights"].keys():
        raise RuntimeError(f"other parameters than one process: {sorted(outcome['weights'].keys() ^ reference['weights'].keys())}")
    weights = ((outcome["weights"][name], whole) for name, whole in reference["weights"].items())
    return (
        _relative(outcome["losses"], reference["losses"]),
        _relative(outcome["norms"], reference["norms"]),
        max(float((found - whole).abs().max() / whole.abs().max()) for found, whole in weights),
    )


def _relative(found: Sequence[float], expected: Sequence[float]) -> float:
    return max(abs(one - other) / abs(other) for one, other in zip(found, expected, strict=True))


def train(config: TrainConfig) -> dict:
    """Train on this rank, as the trainer's loop does; gives losses, gradient norms, seconds and, on rank 0, weights."""
    launch = read_launch(os.environ)
    layout, plan = config.layout(launch.world_size), config.plan_batch(launch.world_size)
    torch.set_num_threads(1)
    ranks = join(launch, config.distributed, lambda: None)
    engine = build_engine(config, ranks, layout)
    weight = float(layout.reports_loss(ranks.rank))
    losses, norms, seconds = [], [], []
    for step in range(config.steps):
        started = time.monotonic()
        mean = engine.accumulate(_batches(step, plan, layout, ranks.rank))
        norms.append(engine.optimizer_step(_rate(config, step)))
        losses.append(ranks.sum([weight * float(mean)])[0] / plan.replicas)
        seconds.append(time.monotonic() - started)
    return {"losses": losses, "norms": norms, "seconds": seconds, "weights": engine.whole_weights()}


def samples_of(step: int) -> torch.Tensor:
    """The global batch of a step, [samples, length + 1]: noisy counting in several strides, so that there is something to learn."""
    generator = torch.Generator().manual_seed(step)
    start = torch.randint(256, (GLOBAL_BATCH, 1), generator=generator)
    stride = torch.randint(1, 4, (GLOBAL_BATCH, 1), generator=generator)
    noise = torch.randint(2, (GLOBAL_BATCH, LENGTH + 1), generator=generator)
    return (start + stride * torch.arange(LENGTH + 1) + noise) % 256


def _batches(step: int, plan: BatchPlan, layout: Layout, rank: int) -> Iterator[Samples]:
    rows = samples_of(step)
    for micro_step in range(plan.accumulation):
        first = (micro_step * plan.replicas + layout.replica(rank)) * plan.micro
        taken = rows[first : first + plan.micro]
        yield Samples(taken[:, :-1].contiguous(), taken[:, 1:].contiguous())


def _rate(config: TrainConfig, step: int) -> float:
    schedule = config.schedule
    return learning_rate(
        step, peak=config.optimizer.lr, warmup_steps=schedule.warmup_steps, decay_steps=config.decay_steps, floor=schedule.floor
    )


def import_everything() -> None:
    """What ranks need, in the process that they are forked from; nothing computes before the fork."""
    import deepspeed

    import training.engines.deepspeed
    import training.engines.pipeline
    import training.engines.pytorch  # noqa: F401

    del deepspeed


def _fork(case: Case, environ: dict[str, str], folder: Path) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    output = os.open(folder / f"log-{environ['RANK']}", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(environ)
    code = 1
    try:
        outcome = train(case.config())
        if environ["RANK"] == "0":
            torch.save(outcome, folder / "outcome")
        torch.distributed.barrier()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(pids: list[int]) -> list[int]:
    """Wait for all ranks; gives those that failed. When one fails the others are ended: they would wait for it."""
    running, failed = dict(enumerate(pids)), []
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while running:
        for rank, pid in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del running[rank]
                if status and not failed:
                    failed.append(rank)
        if running and (failed or time.monotonic() > deadline):
            failed = failed or sorted(running)
            for pid in running.values():
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return failed


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]

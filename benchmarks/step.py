"""What the trainer's loop costs beside a bare PyTorch loop: same model, data, optimizer and clipping, in turn in one process.

    python -m benchmarks.step [--rounds 4] [--steps 50] [--dim 256] [--layers 6] [--micro 4] [--accumulation 1] [--length 128]

The trainer is the whole one, with its metrics file, watchdog and stop decision; saves and evaluations are left out. Blocks of steps
alternate, and the fastest block of each counts. Goal: at most 1.03.
"""

import argparse
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.training_python import rerun_there

GOAL = 1.03


@dataclass
class Blocks:
    """Seconds of each block of steps, and the last loss, by loop."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {"bare": [], "trainer": []})
    losses: dict[str, list[float]] = field(default_factory=lambda: {"bare": [], "trainer": []})

    @property
    def ratio(self) -> float:
        """Trainer over bare, of the fastest blocks."""
        return min(self.seconds["trainer"]) / min(self.seconds["bare"])


def main(arguments: list[str]) -> int:
    """Measure, print, and give 0 if the goal is met."""
    options = _parse(arguments)
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="trainyard-step-") as folder:
        blocks = measure(configuration(options, Path(folder)), options.steps)
    per_step = {name: min(times) / options.steps for name, times in blocks.seconds.items()}
    for name, times in blocks.seconds.items():
        shown = ", ".join(f"{1000 * seconds / options.steps:.2f}" for seconds in times)
        print(f"{name}: {1000 * per_step[name]:.2f} ms a step at best (blocks: {shown}), last loss {blocks.losses[name][-1]:.6f}")
    print(
        json.dumps(
            {"ratio": round(blocks.ratio, 4), "goal": GOAL, "bare_ms": 1000 * per_step["bare"], "trainer_ms": 1000 * per_step["trainer"]}
        )
    )
    return 0 if blocks.ratio <= GOAL else 1


def configuration(options: argparse.Namespace, folder: Path) -> Any:
    """The run; every setting that the bare loop has no counterpart of is off."""
    from training.config import TrainConfig

    heads = max(1, options.dim // 64)
    return TrainConfig.from_mapping(
        {
            "name": "step",
            "steps": options.rounds * options.steps,
            "log_every": 1_000_000,
            "model": {
                "dim": options.dim,
                "num_layers": options.layers,
                "num_heads": heads,
                "num_kv_heads": heads,
                "ffn_dim": 3 * options.dim,
            },
            "data": {"sequence_length": options.length},
            "batch": {"micro": options.micro, "accumulation": options.accumulation},
            "schedule": {"warmup_steps": 0},
            "checkpoint": {"directory": str(folder), "every": 0},
            "evaluation": {"every": 0, "samples": 1},
        }
    )


def measure(config: Any, steps: int) -> Blocks:
    """Run the trainer, and between its blocks of steps as many of the bare loop."""
    from training import loop
    from training.launch import read_launch
    from training.signals import StopRequest

    blocks = Blocks()
    bare = bare_steps(config, blocks)

    class Alternating(loop.Trainer):
        """The trainer, stopped after each block for the bare loop's."""

        made, started = 0, 0.0

        def _step(self, stop: StopRequest) -> bool:
            if self.made % steps == 0:
                run_block(bare, steps, blocks)
                self.started = time.perf_counter()
            stopped = super()._step(stop)
            self.made += 1
            if self.made % steps == 0:
                blocks.seconds["trainer"].append(time.perf_counter() - self.started)
            return stopped

    loop.Trainer = Alternating  # ty: ignore[invalid-assignment]
    loop.run(config, read_launch({}), StopRequest())
    metrics = config.run_directory / "metrics.jsonl"
    records = [json.loads(line) for line in metrics.read_text().splitlines()]
    blocks.losses["trainer"] = [record["loss"] for record in records if record["event"] == "step"]
    return blocks


def run_block(bare: Iterator[None], steps: int, blocks: Blocks) -> None:
    """One block of the bare loop."""
    started = time.perf_counter()
    for _ in range(steps):
        next(bare)
    blocks.seconds["bare"].append(time.perf_counter() - started)


def bare_steps(config: Any, blocks: Blocks) -> Iterator[None]:
    """The loop as one writes it by hand, a step at a time."""
    import torch
    from torch.nn import functional as F

    from training.architecture import build_model
    from training.batch import plan_batch
    from training.data import Dataset
    from training.engines.base import build_optimizer
    from training.loader import Loader
    from training.schedule import learning_rate

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = build_model(config, device).train()
    optimizer = build_optimizer(model, config.optimizer, fused=True)
    accumulation = config.batch.accumulation or 1
    loader = Loader(Dataset(config), config)
    loader.start(0, plan_batch(replicas=1, micro=config.batch.micro, accumulation=accumulation), 0, pinned=device.type == "cuda")
    for step in range(config.steps):
        total = 0.0
        for _ in range(accumulation):
            samples = loader.next().to(device)
            loss = F.cross_entropy(model(samples.tokens).flatten(0, 1), samples.targets.flatten())
            (loss / accumulation).backward()
            total += loss.item() / accumulation
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.optimizer.clip_norm)
        rate = learning_rate(step, peak=config.optimizer.lr, warmup_steps=0, decay_steps=config.decay_steps, floor=config.schedule.floor)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        blocks.losses["bare"].append(total)
        yield


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step", description="The trainer's step beside a bare PyTorch loop's.")
    for name, default in (("rounds", 4), ("steps", 50), ("dim", 256), ("layers", 6), ("micro", 4), ("accumulation", 1), ("length", 128)):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    rerun_there("benchmarks.step")
    sys.exit(main(sys.argv[1:]))

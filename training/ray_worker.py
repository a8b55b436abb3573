"""The trainer as the loop that Ray Train runs in each of its workers.

    from ray.train import ScalingConfig
    from ray.train.torch import TorchTrainer
    from training.ray_worker import train_worker

    TorchTrainer(
        train_worker,
        train_loop_config={"arguments": ["--config", "/data/run.yaml"]},
        scaling_config=ScalingConfig(num_workers=8, use_gpu=True),
    ).fit()

Ray makes the process group, and keeps the signals; a rank that fails raises, so that Ray's own failure policy starts all of them again.
"""

from collections.abc import Mapping, Sequence

from training.exit_codes import ExitCode, describe
from training.train import main


class WorkerError(RuntimeError):
    """The trainer did not come to its end; its last line in the worker's log has the reason."""


def train_worker(settings: Mapping[str, Sequence[str]]) -> None:
    """Train with `settings["arguments"]`, those of `python -m training.train`. Raises WorkerError unless all steps are made."""
    code = main(list(settings["arguments"]))
    if code != ExitCode.DONE:
        raise WorkerError(f"the trainer {describe(code)}; the line before says why")

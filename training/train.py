"""Train one run: `python -m training.train --config file.yaml [--set key=value ...]`; `--help` lists every setting.

By hand:        python -m training.train --recipe tiny
Two ranks:      python -m training.supervise --nproc-per-node 2 -m training.train --recipe tiny-zero1      (or training.torchrun)
mpirun, srun:   mpirun -np 2 python -m training.train --config file.json      (MASTER_ADDR names rank 0's host if there are several)
Only a look:    python -m training.train --check --config file.yaml

The same command goes on from the newest whole checkpoint. SIGTERM, SIGUSR1 and SIGINT make all ranks save and exit 75 ("start me again");
0 means that all steps are made, 76 that nothing moved any more, 78 that the configuration or the launch environment was refused, 1 any
other failure. The last line of the log names the rank and the reason. `python -m training.plot` draws the metrics.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from training.command import Parser, add_options, leave, read_options, run_command
from training.config import TrainConfig
from training.exit_codes import ExitCode
from training.launch import Launch
from training.signals import StopRequest


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code."""
    return run_command(_parser(), arguments, _train)


def warm(arguments: Sequence[str]) -> None:
    """Import all that a run with these arguments needs, and start nothing: the supervisor forks ranks from here. Raises ConfigError."""
    config = read_options(_parser().parse_args(arguments))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from training.warm import import_everything

    import_everything(config)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m training.train", description="Train a model on as many ranks as the launcher started.")
    return add_options(parser, required=True)


def _train(config: TrainConfig, launch: Launch, stop: StopRequest) -> ExitCode:
    from training.loop import run

    return run(config, launch, stop)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))

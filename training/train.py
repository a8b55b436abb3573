"""Train one run: `python -m training.train --config file.yaml [--set key=value ...]`; `--help` lists every setting.

By hand:        python -m training.train --recipe tiny
Two ranks:      python -m training.torchrun --nproc-per-node 2 -m training.train --recipe tiny-zero1
mpirun, srun:   mpirun -np 2 python -m training.train --config file.json      (MASTER_ADDR names rank 0's host if there are several)
Only a look:    python -m training.train --check --config file.yaml

The same command goes on from the newest whole checkpoint. SIGTERM, SIGUSR1 and SIGINT make all ranks save and exit 75 ("start me again");
0 means that all steps are made, 78 that the configuration or the launch environment was refused, 1 any other failure. The last lines of the
log name the rank and the reason. `python -m training.plot` draws the metrics.
"""

import argparse
import logging
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from training import last_words
from training.config import TrainConfig
from training.config_file import build_config, read_config
from training.errors import StopRequestedError, TrainingError
from training.exit_codes import ExitCode
from training.launch import Launch, LaunchError, read_launch, refuse_other_local_rank
from training.lease import LeaseError
from training.recipes import RECIPES, recipe
from training.schema import ConfigError
from training.signals import StopRequest


class _Parser(argparse.ArgumentParser):
    """Help that ends with every setting, and the trainer's own exit code for a command line that is refused."""

    def format_help(self) -> str:
        from training.reference import help_text

        return f"{super().format_help()}\n{help_text()}\n"

    def error(self, message: str) -> NoReturn:
        raise ConfigError("(the command line)", " ".join(sys.argv[1:]), message)


def main(arguments: list[str] | None = None) -> int:
    """Run the command and give its exit code."""
    stop = StopRequest()
    where = f"rank {os.environ.get('RANK', '?')}"
    try:
        options = _parser().parse_args(arguments)
        if options.check:
            print(_read(options).to_json(), end="")
            return ExitCode.DONE
        stop.install()
        if options.local_rank is not None:
            refuse_other_local_rank(os.environ, options.local_rank)
        launch = read_launch(os.environ)
        where = f"rank {launch.rank} of {launch.world_size}"
        config = _read(options)
        _start_log(launch)
        return _train(config, launch, stop)
    except (ConfigError, LaunchError) as error:
        return _fail(where, str(error), ExitCode.CONFIG)
    except StopRequestedError as error:
        return _fail(where, f"{error}; nothing to save", ExitCode.RESTART)
    except (TrainingError, LeaseError, OSError) as error:
        return _fail(where, f"{type(error).__name__}: {error}", ExitCode.FAILED)
    except Exception as error:
        traceback.print_exc()
        return _fail(where, f"{type(error).__name__}: {error}", ExitCode.FAILED)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m training.train", description="Train a model on as many ranks as the launcher started.")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--config", type=Path, help="JSON or YAML file of a TrainConfig")
    source.add_argument("--recipe", choices=sorted(RECIPES), help="a named configuration")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change one setting, such as optimizer.lr=1e-3")
    parser.add_argument("--check", action="store_true", help="check the configuration, print it whole, and end")
    parser.add_argument("--local_rank", "--local-rank", type=int, help="given by the deepspeed launcher; must agree with LOCAL_RANK")
    return parser


def _read(options: argparse.Namespace) -> TrainConfig:
    if options.config:
        return read_config(options.config, options.set)
    return build_config(recipe(options.recipe).to_mapping(), options.set)


def warm(arguments: list[str]) -> None:
    """Import all that a run with these arguments needs, and start nothing: the supervisor forks ranks from here. Raises ConfigError."""
    config = _read(_parser().parse_args(arguments))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from training.warm import import_everything

    import_everything(config)


def _train(config: TrainConfig, launch: Launch, stop: StopRequest) -> ExitCode:
    # One thread per rank unless the launcher says otherwise; torch reads it when it is imported, which is only now that all is well.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from training.loop import run

    return run(config, launch, stop)


def _start_log(launch: Launch) -> None:
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stdout, format=f"%(asctime)s rank {launch.rank} | %(message)s", datefmt="%H:%M:%S"
    )
    logging.getLogger("training").setLevel(logging.INFO if launch.rank == 0 else logging.WARNING)


def _fail(where: str, reason: str, code: ExitCode) -> int:
    print(f"{where} ended with exit code {int(code)} ({code.name.lower()}): {reason}", file=sys.stderr, flush=True)
    last_words.leave(reason)
    return code


if __name__ == "__main__":
    exit_code = main()
    logging.shutdown()
    sys.stdout.flush()
    # Without interpreter shutdown: a failed rank must not wait there for peers in a collective.
    os._exit(exit_code)

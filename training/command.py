"""What the commands that run on all ranks share: options, launch environment, log, and one last line with the rank, code and reason."""

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from training import last_words
from training.config import TrainConfig
from training.config_file import build_config, read_config
from training.errors import HungPeerError, StopRequestedError, TrainingError
from training.exit_codes import ExitCode
from training.launch import Launch, LaunchError, read_launch, refuse_other_local_rank
from training.lease import LeaseError
from training.recipes import RECIPES, recipe
from training.schema import ConfigError
from training.signals import StopRequest

Work = Callable[[TrainConfig, Launch, StopRequest], ExitCode]


class Parser(argparse.ArgumentParser):
    """Help that ends with every setting, and the trainer's own exit code for a command line that is refused."""

    def format_help(self) -> str:
        """See argparse."""
        from training.reference import help_text

        return f"{super().format_help()}\n{help_text()}\n"

    def error(self, message: str) -> NoReturn:
        """Refuse the command line as a configuration is refused."""
        raise ConfigError("(the command line)", " ".join(sys.argv[1:]), message)


def run_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None, work: Work) -> int:
    """Run `work` with what the options and the launcher say, and give its exit code; every failure ends in one line."""
    stop = StopRequest()
    where = f"rank {os.environ.get('RANK', '?')}"
    try:
        options = parser.parse_args(arguments)
        if options.check:
            print(read_options(options).to_json(), end="")
            return ExitCode.DONE
        stop.install()
        if options.local_rank is not None:
            refuse_other_local_rank(os.environ, options.local_rank)
        launch = read_launch(os.environ)
        where = f"rank {launch.rank} of {launch.world_size}"
        config = read_options(options)
        _start_log(launch)
        # One thread per rank unless the launcher says otherwise; torch reads it when it is imported, which is only now that all is well.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        return work(config, launch, stop)
    except (ConfigError, LaunchError) as error:
        return _fail(where, str(error), ExitCode.CONFIG)
    except StopRequestedError as error:
        return _fail(where, f"{error}; nothing to save", ExitCode.RESTART)
    except HungPeerError as error:
        return _fail(where, str(error), ExitCode.HUNG)
    except (TrainingError, LeaseError, OSError) as error:
        return _fail(where, f"{type(error).__name__}: {error}", ExitCode.FAILED)
    except Exception as error:
        traceback.print_exc()
        return _fail(where, f"{type(error).__name__}: {error}", ExitCode.FAILED)


def add_options(parser: argparse.ArgumentParser, *, required: bool) -> argparse.ArgumentParser:
    """The options that choose a configuration; without `required` there may be none."""
    source = parser.add_mutually_exclusive_group(required=required)
    source.add_argument("--config", type=Path, help="JSON or YAML file of a TrainConfig")
    source.add_argument("--recipe", choices=sorted(RECIPES), help="a named configuration")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change one setting, such as optimizer.lr=1e-3")
    parser.add_argument("--check", action="store_true", help="check the configuration, print it whole, and end")
    parser.add_argument("--local_rank", "--local-rank", type=int, help="given by the deepspeed launcher; must agree with LOCAL_RANK")
    return parser


def read_options(options: argparse.Namespace) -> TrainConfig:
    """The configuration that the options choose. Raises ConfigError or OSError."""
    if options.config:
        return read_config(options.config, options.set)
    values = recipe(options.recipe).to_mapping() if options.recipe else {"name": "none", "steps": 1, "schedule": {"warmup_steps": 0}}
    return build_config(values, options.set)


def leave(code: int) -> NoReturn:
    """End without interpreter shutdown: a failed rank must not wait there for peers in a collective."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def _start_log(launch: Launch) -> None:
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stdout, format=f"%(asctime)s rank {launch.rank} | %(message)s", datefmt="%H:%M:%S"
    )
    logging.getLogger("training").setLevel(logging.INFO if launch.rank == 0 else logging.WARNING)


def _fail(where: str, reason: str, code: ExitCode) -> int:
    print(f"{where} ended with exit code {int(code)} ({code.name.lower()}): {reason}", file=sys.stderr, flush=True)
    last_words.leave(reason)
    return code

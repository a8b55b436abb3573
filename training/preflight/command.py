"""The command: join the other ranks, check, say what was found, end."""

import logging
from collections.abc import Sequence

from training.command import Parser, add_options, run_command
from training.config import TrainConfig
from training.exit_codes import ExitCode
from training.launch import Launch
from training.signals import StopRequest

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code."""
    parser = Parser(prog="python -m training.preflight", description="Check the hosts and links of all ranks that the launcher started.")
    return run_command(add_options(parser, required=False), arguments, _check)


def _check(config: TrainConfig, launch: Launch, stop: StopRequest) -> ExitCode:
    from training import distributed
    from training.preflight.run import run_preflight

    layout = config.layout(launch.world_size, launch.local_world_size)
    ranks = distributed.join(launch, config.distributed, stop.raise_if_received)
    run_preflight(config, ranks, layout)
    ranks.leave()
    if ranks.is_main:
        _log.info("pre-flight passed on %d ranks", ranks.world_size)
    return ExitCode.DONE

"""Around everything that ranks do together: watched for hangs, and with a name for the rank that failed first."""

import time
from collections.abc import Generator
from contextlib import contextmanager

from training.config import TrainConfig
from training.distributed import Ranks, is_lost_peer
from training.errors import StopRequestedError
from training.incident import Incident, describe_process
from training.watchdog import Watchdog, watching


@contextmanager
def guarded(config: TrainConfig, ranks: Ranks) -> Generator[Watchdog]:
    """Watch this rank during the block; collective on entry.

    A failure is noted for the others; a lost peer becomes a TrainingError (HungPeerError after a hang) that names the rank and its reason.
    """
    start = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{ranks.launch.attempt}"
    directory = config.run_directory / "incidents" / ranks.broadcast(start)
    incident = Incident(directory, ranks.rank, ranks.gather(describe_process()))
    where = f"rank {ranks.rank} of {ranks.world_size}"
    try:
        with watching(Watchdog(config.watchdog.hang_seconds, incident, where, ranks.world_size)) as watchdog:
            try:
                yield watchdog
            except RuntimeError as error:
                if is_lost_peer(error):
                    watchdog.finish_report()
                raise
    except StopRequestedError:
        raise
    except Exception as error:
        if isinstance(error, RuntimeError) and is_lost_peer(error):
            raise incident.explain_lost_peer(str(error).splitlines()[0]) from error
        incident.note("failed", f"{type(error).__name__}: {error}")
        raise

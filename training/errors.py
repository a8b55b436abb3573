"""Errors that a user of the trainer can act on; each message says what was found and what to do."""


class TrainingError(RuntimeError):
    """The run cannot go on."""


class HungPeerError(TrainingError):
    """Another rank made no progress and has ended for it; names it and the place where it stood."""


class RendezvousError(TrainingError):
    """The ranks did not find each other; names the ones that are missing or came twice."""


class PreflightError(TrainingError):
    """Hosts or links are not as the run needs them; names ranks and hosts."""


class CheckpointError(TrainingError):
    """A checkpoint could not be written, or none can be resumed from."""


class DataError(TrainingError):
    """The corpus cannot be read as the configuration says."""


class StopRequestedError(Exception):
    """A signal asked this rank to stop before there was anything to save."""

"""Work that every rank does in a thread while training goes on, and the moment at which all ranks take what follows from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from training.background import BackgroundWork
from training.distributed import Ranks
from training.errors import CheckpointError


@dataclass(frozen=True)
class _Stage:
    work: BackgroundWork
    conclude: Callable[[list[Any]], None]


class WorkBehind:
    """At most one stage of work in each slot, the same on every rank. Threads only touch files and memory.

    Ranks learn in a sum that every step makes anyway how far the others are, so each takes the same decision at the same step, and none is
    left alone in a collective. Every method but `votes`, `busy` and `wait_here` is collective.
    """

    def __init__(self, ranks: Ranks, slots: Sequence[str]) -> None:
        self._ranks = ranks
        self._stages: dict[str, _Stage | None] = dict.fromkeys(slots)

    def start(self, slot: str, what: str, action: Callable[[], Any], conclude: Callable[[list[Any]], None]) -> None:
        """Do the action on every rank; once all have, call `conclude` on all with every rank's result. It may start the next stage.

        `what` is for messages, such as "writing the checkpoint of step 20".
        """
        self._stages[slot] = _Stage(BackgroundWork(what, action), conclude)

    def busy(self, slot: str) -> bool:
        """Whether the slot has a stage, finished or not; the same on every rank."""
        return self._stages[slot] is not None

    def votes(self) -> list[float]:
        """For each slot whether this rank's work has finished, and whether it failed: to be summed over all ranks and given to `settle`."""
        votes = []
        for stage in self._stages.values():
            votes += [float(bool(stage and not stage.work.running)), float(bool(stage and stage.work.failure))]
        return votes

    def settle(self, votes: Sequence[float]) -> None:
        """Conclude what all ranks have finished, or what failed on one. Raises CheckpointError on every rank, naming that one."""
        for slot, finished, failed in zip(list(self._stages), votes[::2], votes[1::2], strict=True):
            if failed or finished == self._ranks.world_size:
                self._conclude(slot)

    def finish(self, slot: str) -> None:
        """Wait for the slot's stage and all that follow it. Raises CheckpointError as `settle` does."""
        while self.busy(slot):
            self.finish_stage(slot)

    def finish_stage(self, slot: str) -> None:
        """Wait for the slot's stage alone; what follows it has been started on return. Raises CheckpointError as `settle` does."""
        if self.busy(slot):
            self._conclude(slot)

    def wait_here(self) -> None:
        """Wait for this rank's threads, without the other ranks and whatever came of it."""
        for stage in self._stages.values():
            if stage:
                stage.work.wait()

    def _conclude(self, slot: str) -> None:
        stage = self._stages[slot]
        assert stage, "votes were cast, so there is work on every rank"
        self._stages[slot] = None
        stage.work.wait()

        def outcome() -> Any:
            if stage.work.failure:
                raise CheckpointError(stage.work.failure)
            return stage.work.result

        stage.conclude(self._ranks.together(outcome, stage.work.what, CheckpointError))

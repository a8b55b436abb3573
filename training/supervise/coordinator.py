"""The decisions for all nodes: when ranks start, when all of them stop, when it is over. Pure: events come in, orders go out.

A generation is one start of all ranks. It ends when all ranks have ended well, or at the first rank that has not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from training.exit_codes import ExitCode, combine
from training.supervise.budget import RestartBudget
from training.supervise.channel import Message

Orders = list[tuple[int, Message]]
# For ranks that lost a peer to say so before they are ended, once nothing is left to be gained by haste.
_LAST_WORDS_SECONDS = 5.0


class JoinError(ValueError):
    """An agent that does not belong here; the message says why."""


@dataclass
class _Node:
    who: str
    state: str = "ready"
    """ready, running or ended."""
    codes: dict[int, int] = field(default_factory=dict)


class Coordinator:
    """Of one run; nodes are known by their rank."""

    def __init__(self, nodes: int, processes: int, budget: RestartBudget) -> None:
        self.generation = -1
        self.verdict: tuple[ExitCode, str] | None = None
        self._num_nodes, self._processes, self._budget = nodes, processes, budget
        self._nodes: dict[int, _Node] = {}
        self._running = False
        self._started = 0.0
        self._start_at: float | None = 0.0

    def join(self, node: int, who: str, nodes: int, processes: int, now: float) -> Orders:
        """A node's agent has come. Raises JoinError with the reason if it may not."""
        if not 0 <= node < self._num_nodes:
            raise JoinError(f"node rank {node} of {who} with {self._num_nodes} nodes: node ranks go from 0 to {self._num_nodes - 1}")
        if (nodes, processes) != (self._num_nodes, self._processes):
            raise JoinError(
                f"{who} was started for {nodes} nodes x {processes} ranks, node 0 for {self._num_nodes} x {self._processes}; "
                "give all nodes the same --nnodes and --nproc-per-node"
            )
        known = self._nodes.get(node)
        if known and known.who != who:
            raise JoinError(f"node rank {node} came twice: {known.who} and {who}; give every node its own --node-rank")
        # The same host again: its agent was started anew before the old connection was seen to end.
        orders = self.lost(node, now) if known else []
        self._nodes[node] = _Node(who)
        return orders

    def ready(self, node: int, generation: int) -> None:
        """A node has no rank of this generation left and waits for the next start."""
        if node in self._nodes and generation == self.generation:
            self._nodes[node].state = "ready"

    def tick(self, now: float) -> Orders:
        """Start a generation if all nodes wait for it and the pause is over."""
        everyone = len(self._nodes) == self._num_nodes and all(node.state == "ready" for node in self._nodes.values())
        if self.verdict or self._running or not everyone or self._start_at is None or now < self._start_at:
            return []
        self.generation += 1
        self._running, self._started = True, now
        for node in self._nodes.values():
            node.state, node.codes = "running", {}
        return self._to_all({"do": "start", "generation": self.generation})

    def failed(self, node: int, generation: int, rank: int, code: int, reason: str, now: float, *, final: bool = False) -> Orders:
        """A rank has ended badly; only the first one of a generation counts, since the others follow from it.

        `final`: its node has been asked to stop, so nothing starts again.
        """
        if not self._running or generation != self.generation or node not in self._nodes:
            return []
        world = self._num_nodes * self._processes
        what = f"rank {rank} of {world} on {self._nodes[node].who} {reason}"
        if code == ExitCode.CONFIG:
            return self._end(ExitCode.CONFIG, what)
        if final:
            return self._end(ExitCode.FAILED, what)
        return self._again(what, code, now)

    def lost(self, node: int, now: float) -> Orders:
        """A node's agent is gone without having been dismissed."""
        gone = self._nodes.pop(node, None)
        if gone is None or self.verdict or not self._running:
            return []
        return self._again(f"node {node} ({gone.who}) is gone", ExitCode.FAILED, now)

    def ended(self, node: int, generation: int, codes: Mapping[int, int]) -> Orders:
        """All ranks of a node have ended, each with 0 or 75."""
        if generation != self.generation or node not in self._nodes or not self._running:
            return []
        self._nodes[node].state, self._nodes[node].codes = "ended", dict(codes)
        if any(known.state != "ended" for known in self._nodes.values()):
            return []
        everyone = {rank: code for known in self._nodes.values() for rank, code in known.codes.items()}
        return self._end(combine(list(everyone.values())), _summary(everyone))

    def overdue(self, seconds: float) -> Orders:
        """The nodes have not all come in time."""
        missing = [str(node) for node in range(self._num_nodes) if node not in self._nodes]
        return self._end(
            ExitCode.FAILED, f"after {seconds:g} s nodes {', '.join(missing)} of {self._num_nodes} have not come; look at their logs"
        )

    @property
    def is_waiting(self) -> bool:
        """Whether nodes are missing."""
        return not self.verdict and len(self._nodes) < self._num_nodes

    def next_start(self) -> float | None:
        """When a pause is over, if there is one."""
        return self._start_at if not self._running and not self.verdict else None

    def _again(self, what: str, code: int, now: float) -> Orders:
        self._running = False
        pause = self._budget.take(now, now - self._started)
        if pause is None:
            used = f"; restarts are used up ({self._budget.used} within {self._budget.window_seconds:g} s)" if self._budget.restarts else ""
            return self._end(ExitCode.HUNG if code == ExitCode.HUNG else ExitCode.FAILED, what + used)
        self._start_at = now + pause
        why = f"{what}; restart {self._budget.used} of {self._budget.restarts} of all ranks" + (f" in {pause:g} s" if pause else "")
        return self._to_all({"do": "stop", "generation": self.generation, "why": why})

    def _end(self, code: ExitCode, why: str) -> Orders:
        self._running = False
        self.verdict = code, why
        grace = 0.0 if code in (ExitCode.DONE, ExitCode.RESTART) else _LAST_WORDS_SECONDS
        return self._to_all({"do": "exit", "code": int(code), "why": why, "grace": grace})

    def _to_all(self, message: Message) -> Orders:
        return [(node, message) for node in self._nodes]


def _summary(codes: Mapping[int, int]) -> str:
    if len(set(codes.values())) == 1:
        code = next(iter(codes.values()))
        return f"all {len(codes)} ranks ended with exit code {code} ({ExitCode(code).name.lower()})"
    return "exit codes by rank: " + ", ".join(f"{rank}: {code}" for rank, code in sorted(codes.items()))

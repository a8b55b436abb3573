"""A node's agent: it keeps the imports warm, forks the node's ranks when told to, and reports how they end, within milliseconds."""

import os
import selectors
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from training.exit_codes import ExitCode, describe
from training.last_words import FILE as LAST_WORDS
from training.launch import ATTEMPT
from training.supervise.channel import Channel, Message
from training.supervise.ranks import Program, fork_rank

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
_LONGEST_RETRY_SECONDS = 2.0
_GOOD = (ExitCode.DONE, ExitCode.RESTART)


@dataclass(frozen=True, kw_only=True)
class Node:
    """This node among all, as its command line says."""

    rank: int
    nodes: int
    processes: int
    master_addr: str
    master_port: int
    control_port: int
    rendezvous_seconds: float
    shutdown_seconds: float


@dataclass
class _Generation:
    """The ranks that run now."""

    number: int
    pids: dict[int, int]
    """Rank by process id, of those that have not ended."""
    codes: dict[int, int] = field(default_factory=dict)
    """Exit code by rank, of those that have."""
    reported: bool = False
    """Whether the coordinator knows that it is over."""
    stopped: bool = False
    """Whether the coordinator has asked for its end, and waits to hear that no rank is left."""


class Agent:
    """Of one node, from the first rendezvous to the end of the run."""

    def __init__(self, node: Node, program: Program, coordinator_pid: int | None) -> None:
        self._node, self._program, self._coordinator_pid = node, program, coordinator_pid
        self._signals: list[int] = []
        self._wake, self._wakened = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._channel: Channel | None = None
        self._generation: _Generation | None = None
        self._kill_at: float | None = None
        self._verdict: tuple[int, str] | None = None
        self._stopping = False
        self._words = Path()

    def catch_signals(self) -> None:
        """Note signals and the end of ranks, and wake the loop for them. Before that, a signal ends the process as one to be restarted."""
        for end in (self._wake, self._wakened):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wakened.fileno(), warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, lambda received, _: self._signals.append(received))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._wake, selectors.EVENT_READ)

    def run(self) -> int:
        """Take part in the run until the coordinator dismisses this node; gives the exit code."""
        with tempfile.TemporaryDirectory(prefix="trainyard-ranks-") as words:
            self._words = Path(words)
            try:
                return self._run()
            finally:
                self._kill()
                if self._channel:
                    self._channel.close()

    def _run(self) -> int:
        while True:
            if self._channel is None and not self._connect():
                return self._finish()
            for key, _ in self._selector.select(self._patience()):
                if key.fileobj is self._wake:
                    self._wake.recv(4096)
                else:
                    self._obey()
            self._forward_signals()
            self._reap()
            self._report_ready()
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self._kill()
            if self._verdict and not (self._generation and self._generation.pids):
                return self._finish()

    def _finish(self) -> int:
        code, why = self._verdict or (ExitCode.FAILED, "no coordinator")
        _say(why)
        return code

    def _connect(self) -> bool:
        """Reach the coordinator; False, with a verdict, if it can't be reached or a signal came first."""
        node, delay = self._node, 0.05
        deadline = time.monotonic() + node.rendezvous_seconds
        while not self._signals:
            try:
                channel = Channel(socket.create_connection((node.master_addr, node.control_port), timeout=5.0))
                break
            except OSError as error:
                if time.monotonic() + delay > deadline:
                    where = f"{node.master_addr}:{node.control_port}"
                    why = f"node {node.rank} cannot reach node 0 at {where} within {node.rendezvous_seconds:g} s: {error}"
                    self._verdict = ExitCode.FAILED, why
                    return False
            time.sleep(delay)
            delay = min(delay * 2, _LONGEST_RETRY_SECONDS)
        else:
            self._verdict = ExitCode.RESTART, f"{signal.Signals(self._signals[0]).name} came before the ranks were started"
            return False
        self._channel = channel
        self._selector.register(channel, selectors.EVENT_READ)
        who = socket.gethostname()
        channel.send({"say": "join", "node": node.rank, "who": who, "nodes": node.nodes, "processes": node.processes})
        return True

    def _patience(self) -> float | None:
        return None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())

    def _obey(self) -> None:
        assert self._channel is not None
        messages = self._channel.receive()
        if messages is None:
            self._lose_coordinator()
            return
        for message in messages:
            self._do(message)

    def _do(self, order: Message) -> None:
        if order["do"] == "start":
            self._start(order["generation"])
        elif order["do"] == "stop":
            self._stop(order["why"])
        elif order["do"] == "exit":
            self._verdict = order["code"], order["why"]
            self._kill_at = time.monotonic() + order["grace"]

    def _stop(self, why: str) -> None:
        _say(why)
        if self._stopping:
            # This node is being taken away: the others start again without it, once another has its place.
            self._verdict = ExitCode.RESTART, "this node was asked to stop, and another rank has failed meanwhile"
        if self._generation:
            self._generation.reported = self._generation.stopped = True
        self._kill()

    def _report_ready(self) -> None:
        """Say so once no rank of a stopped generation is left."""
        generation = self._generation
        if self._channel and generation and generation.stopped and not generation.pids and not self._verdict:
            self._generation = None
            self._channel.send({"say": "ready", "generation": generation.number})

    def _start(self, number: int) -> None:
        node, pids = self._node, {}
        for local_rank in range(node.processes):
            rank = node.rank * node.processes + local_rank
            environ = {
                "RANK": str(rank),
                "WORLD_SIZE": str(node.nodes * node.processes),
                "LOCAL_RANK": str(local_rank),
                "LOCAL_WORLD_SIZE": str(node.processes),
                "MASTER_ADDR": node.master_addr,
                "MASTER_PORT": str(node.master_port),
                ATTEMPT: str(number),
                LAST_WORDS: str(self._last_words(number, rank)),
            }
            pids[fork_rank(self._program, environ, self._leave_behind)] = rank
        self._generation = _Generation(number, pids)

    def _last_words(self, generation: int, rank: int) -> Path:
        return self._words / f"{generation}-{rank}"

    def _leave_behind(self) -> None:
        for end in (self._wake, self._wakened, self._channel):
            if end:
                end.close()
        self._selector.close()

    def _reap(self) -> None:
        """Collect every process that has ended, orphans of ranks among them if this is a container's process 1."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._coordinator_pid and not self._verdict:
                self._verdict = ExitCode.FAILED, "the coordinator's process has ended"
                self._kill()
            if self._generation and pid in self._generation.pids:
                self._note_end(self._generation, pid, os.waitstatus_to_exitcode(status))

    def _note_end(self, generation: _Generation, pid: int, code: int) -> None:
        rank = generation.pids.pop(pid)
        generation.codes[rank] = code
        # What it had forked, data loaders above all, has nobody left to work for.
        _signal_group(pid, signal.SIGKILL)
        if self._channel is None or generation.reported:
            return
        report: Message = {"generation": generation.number, "rank": rank, "code": code, "final": self._stopping}
        if code not in _GOOD:
            generation.reported = True
            self._channel.send({"say": "failed", **report, "reason": self._reason(generation.number, rank, code)})
        elif not generation.pids:
            generation.reported = True
            self._channel.send({"say": "ended", "generation": generation.number, "codes": generation.codes})

    def _reason(self, generation: int, rank: int, code: int) -> str:
        file = self._last_words(generation, rank)
        words = file.read_text(encoding="utf-8", errors="replace").strip() if file.exists() else ""
        late = f", {self._node.shutdown_seconds:g} s after it was asked to stop" if self._stopping and code == -signal.SIGKILL else ""
        return describe(code) + late + (f": {words}" if words else "")

    def _forward_signals(self) -> None:
        while self._signals:
            number = self._signals.pop(0)
            if not (self._generation and self._generation.pids):
                if not self._verdict:
                    self._verdict = ExitCode.RESTART, f"{signal.Signals(number).name} came while no rank was running"
                continue
            _say(f"{signal.Signals(number).name} passed on to the ranks, which have {self._node.shutdown_seconds:g} s to save")
            for pid in self._generation.pids:
                os.kill(pid, number)
            if not self._stopping:
                self._stopping = True
                self._kill_at = time.monotonic() + self._node.shutdown_seconds

    def _kill(self) -> None:
        """End the ranks that still run, and all that they have started."""
        self._kill_at = None
        if self._generation:
            for pid in self._generation.pids:
                _signal_group(pid, signal.SIGKILL)

    def _lose_coordinator(self) -> None:
        """Node 0 is gone: its ranks are too, so end this node's and wait for it to come again."""
        assert self._channel is not None
        self._selector.unregister(self._channel)
        self._channel.close()
        self._channel = None
        self._kill()
        if self._verdict is None:
            _say(f"node {self._node.rank} has lost node 0 and waits for it to come again")
        while self._generation and self._generation.pids:
            self._reap()
            time.sleep(0.01)


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        # Ended by now, or not yet a group of its own.
        return


def _say(text: str) -> None:
    print(f"supervisor | {text}", file=sys.stderr, flush=True)

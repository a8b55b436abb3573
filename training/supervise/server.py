"""The coordinator's process on node 0: it listens for agents, passes their words to the coordinator and its orders to them."""

import os
import selectors
import signal
import socket
import time

from training.exit_codes import ExitCode
from training.supervise.channel import Channel, Message
from training.supervise.coordinator import Coordinator, JoinError, Orders

_TICK_SECONDS = 0.5
# For agents to hang up after they have been dismissed.
_FAREWELL_SECONDS = 60.0


def fork_server(listener: socket.socket, coordinator: Coordinator, rendezvous_seconds: float) -> int:
    """Serve in a process of its own, which ends with this one; gives its id."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        # Signals are the agent's: it stops the ranks, and their end is what this process waits for.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        Server(listener, coordinator, rendezvous_seconds, parent).serve()
        code = 0
    finally:
        os._exit(code)


class Server:
    """Connections of all agents."""

    def __init__(self, listener: socket.socket, coordinator: Coordinator, rendezvous_seconds: float, parent: int) -> None:
        """`parent` is the process that it serves for: its id before the fork, since it may be gone right after."""
        self._listener, self._coordinator, self._rendezvous_seconds = listener, coordinator, rendezvous_seconds
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._nodes: dict[Channel, int | None] = {}
        self._parent = parent

    def serve(self) -> None:
        """Until every agent has been dismissed and has hung up, or the process that made this one is gone."""
        missing_since = time.monotonic()
        farewell: float | None = None
        while os.getppid() == self._parent and not (farewell and (not self._nodes or time.monotonic() > farewell)):
            for key, _ in self._selector.select(self._patience()):
                self._accept() if key.fileobj is self._listener else self._listen(key.fileobj)
            now = time.monotonic()
            missing_since = missing_since if self._coordinator.is_waiting else now
            if now - missing_since > self._rendezvous_seconds:
                self._send(self._coordinator.overdue(self._rendezvous_seconds))
            self._send(self._coordinator.tick(now))
            if self._coordinator.verdict and farewell is None:
                farewell = now + _FAREWELL_SECONDS

    def _patience(self) -> float:
        start = self._coordinator.next_start()
        return _TICK_SECONDS if start is None else min(_TICK_SECONDS, max(0.0, start - time.monotonic()) or _TICK_SECONDS)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        channel = Channel(connection)
        self._nodes[channel] = None
        self._selector.register(channel, selectors.EVENT_READ)

    def _listen(self, channel: object) -> None:
        assert isinstance(channel, Channel)
        messages = channel.receive()
        if messages is None:
            self._forget(channel)
            return
        for message in messages:
            self._handle(channel, message)

    def _handle(self, channel: Channel, message: Message) -> None:
        said, now, node = message.get("say"), time.monotonic(), self._nodes.get(channel)
        if said == "join":
            self._join(channel, message)
        elif node is None:
            return
        elif said == "ready":
            self._coordinator.ready(node, message["generation"])
        elif said == "failed":
            facts = {key: message[key] for key in ("generation", "rank", "code", "reason", "final")}
            self._send(self._coordinator.failed(node, now=now, **facts))
        elif said == "ended":
            self._send(self._coordinator.ended(node, message["generation"], {int(rank): code for rank, code in message["codes"].items()}))

    def _join(self, channel: Channel, message: Message) -> None:
        node, who = message["node"], message["who"]
        try:
            orders = self._coordinator.join(node, who, message["nodes"], message["processes"], time.monotonic())
        except JoinError as error:
            _dismiss(channel, str(error))
            return
        for other in [other for other, known in self._nodes.items() if known == node]:
            _dismiss(other, f"a newer agent on {who} has taken the place of node rank {node}")
            self._nodes[other] = None
        self._send(orders)
        self._nodes[channel] = node

    def _forget(self, channel: Channel) -> None:
        self._selector.unregister(channel)
        channel.close()
        node = self._nodes.pop(channel)
        if node is not None:
            self._send(self._coordinator.lost(node, time.monotonic()))

    def _send(self, orders: Orders) -> None:
        channels = {node: channel for channel, node in self._nodes.items() if node is not None}
        for node, message in orders:
            if node in channels:
                channels[node].send(message)


def _dismiss(channel: Channel, why: str) -> None:
    channel.send({"do": "exit", "code": int(ExitCode.CONFIG), "why": why, "grace": 0.0})

"""Messages between agents and coordinator: JSON objects, one a line, over TCP."""

import json
import socket
from typing import Any

# A node that vanishes without a word is noticed after idle + interval x count = 11 s.
_KEEPALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}
_SEND_SECONDS = 10.0
_RECEIVE_BYTES = 65536

Message = dict[str, Any]


class Channel:
    """One connection, read when a selector says that there is something."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(_SEND_SECONDS)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, seconds in _KEEPALIVE.items():
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._rest = b""

    def fileno(self) -> int:
        """For selectors."""
        return self._connection.fileno()

    def send(self, message: Message) -> bool:
        """Send one message; False if the other side is gone."""
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return False
        return True

    def receive(self) -> list[Message] | None:
        """The messages that have come whole by now; None once the other side is gone or speaks something else."""
        try:
            data = self._connection.recv(_RECEIVE_BYTES)
            *lines, self._rest = (self._rest + data).split(b"\n")
            messages = [json.loads(line) for line in lines]
        except (OSError, ValueError):
            return None
        return messages if data and all(isinstance(message, dict) for message in messages) else None

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

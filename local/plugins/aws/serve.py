"""Runs the plug-in as the engine expects one: the port on standard output, and an end when the engine goes away."""

import contextlib
import os
import signal
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from local.plugins.aws.provider import AwsProvider

_MESSAGE_BYTES: Final = 400 * 1024 * 1024
"""The engine's own limit."""


def serve() -> None:
    """Serve until the engine interrupts or disappears. Nothing of it outlives the call."""
    stop = threading.Event()
    _install_signals(stop)
    server = grpc.server(
        ThreadPoolExecutor(max_workers=32),
        options=[("grpc.max_receive_message_length", _MESSAGE_BYTES), ("grpc.max_send_message_length", _MESSAGE_BYTES)],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(AwsProvider(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    threading.Thread(target=_watch_standard_input, args=(stop,), daemon=True).start()
    _wait(stop, os.getppid())
    server.stop(grace=0)
    # A call that still waits for AWS must not hold the process: the engine has gone.
    os._exit(0)


def _install_signals(stop: threading.Event) -> None:
    """A shell that starts the engine in the background leaves SIGINT ignored, which plug-ins inherit; the engine ends them with it."""

    def on_signal(number: int, frame: Any) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)


def _wait(stop: threading.Event, parent: int) -> None:
    while not stop.wait(0.5):
        if os.getppid() != parent:
            return


def _watch_standard_input(stop: threading.Event) -> None:
    """The engine holds the other end of a pipe; its end means that the engine ended, however it did."""
    with contextlib.suppress(OSError, ValueError):
        if not stat.S_ISFIFO(os.fstat(0).st_mode):
            return
        while os.read(0, 4096):
            pass
        stop.set()

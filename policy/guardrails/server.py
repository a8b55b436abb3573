"""Serve the pack over gRPC, as the engine expects a policy pack to do."""

import signal
import sys
import threading
from concurrent import futures

import grpc
from pulumi.runtime.proto import analyzer_pb2_grpc

from guardrails.service import Service

_LARGEST_MESSAGE = 400 * 2**20
"""Bytes; the last call of a run carries every resource of the program."""


def serve(service: Service) -> None:
    """Answer the engine until it ends this process; its port goes to standard output first."""
    # One worker: the engine asks one thing at a time, and a run has one state.
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1), options=[("grpc.max_receive_message_length", _LARGEST_MESSAGE)])
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    done.wait()
    server.stop(grace=None)

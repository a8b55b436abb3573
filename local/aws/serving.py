"""Listening sockets and threads of the emulator. Imported by the server once moto's settings are made."""

import threading
from collections.abc import Sequence
from pathlib import Path

from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from werkzeug.serving import make_server

from local.aws.admin import Admin
from local.aws.application import EmulatorApplication
from local.aws.extension.install import install
from local.aws.extension.store import stores
from local.aws.http_handler import Handler
from local.aws.snapshot import Snapshot


def serve(state: Path, port: int, addresses: Sequence[str], region: str, stop: threading.Event) -> None:
    """Answer on every address until `stop` is set.

    Raises:
        StateError: the saved state can't be trusted.
    """
    install()
    snapshot = Snapshot(state)
    if snapshot.load():
        snapshot.drop_unused_bodies()
    # The first use of a region's EC2 takes seconds: spend them before readiness is reported.
    _ = ec2_backends[DEFAULT_ACCOUNT_ID][region], stores[DEFAULT_ACCOUNT_ID][region]
    application = Admin(EmulatorApplication(snapshot), identity=str(state))
    servers = [make_server(address, port, application, threaded=True, request_handler=Handler) for address in addresses]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    stop.wait()
    for server in servers:
        server.shutdown()

"""The emulator's WSGI application: one AWS request at a time through moto, saved before it is answered; faults and a log of requests."""

import io
import json
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.datastructures import Headers
from werkzeug.test import run_wsgi_app

from local.aws.error_response import error_response
from local.aws.extension.pricing_application import PRICING, create_pricing_application
from local.aws.faults import Fault, Faults
from local.aws.operation import Operation, identify
from local.aws.request_log import RequestLog
from local.aws.snapshot import Snapshot

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Answer = tuple[Iterable[bytes], str, Headers]
POLL_SECONDS = 0.2


class Dispatcher(DomainDispatcherApplication):
    """moto's dispatcher by service, with the Price List service added."""

    def __init__(self) -> None:
        super().__init__(lambda service: create_pricing_application() if service == PRICING else create_backend_app(service))

    def get_backend_for_host(self, host: str | None) -> Any:
        """moto's name of the service behind a host name."""
        if host is not None and host.startswith("pricing."):
            return PRICING
        return super().get_backend_for_host(host)


class EmulatorApplication:
    """Answers AWS requests. moto is not made for threads, so requests take turns; waiting for a queue does not hold the turn."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.faults = Faults()
        self.log = RequestLog()
        self._moto = Dispatcher()
        self._turn = RLock()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read()
        operation = identify(environ, body)
        fault = self.faults.strike(operation.service, operation.name)
        entry = self.log.begin(operation, fault)
        content, status, headers = self._answer(environ, body, operation, fault)
        self.log.end(entry, int(status.split()[0]))
        if fault and fault.kind == "drop":
            _drop_connection(environ)
        start_response(status, headers.to_wsgi_list())
        return content

    def _answer(self, environ: Environ, body: bytes, operation: Operation, fault: Fault | None) -> Answer:
        if fault and fault.kind in ("throttle", "error"):
            return error_response(operation, fault.kind)
        if fault and fault.kind == "delay":
            time.sleep(fault.seconds)
        if operation.name == "ReceiveMessage" and body.startswith(b"{"):
            return self._receive(environ, body)
        return self._perform(environ, body, saves=operation.changes_state)

    def _perform(self, environ: Environ, body: bytes, *, saves: bool) -> Answer:
        with self._turn:
            try:
                answer = run_wsgi_app(
                    self._moto, environ | {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}, buffered=True
                )
            except NotImplementedError as error:
                answer = error_response(identify(environ, body), "missing", str(error))
            except Exception as error:  # moto's own failures: told in the service's wire format, and in the log.
                traceback.print_exc(file=sys.stderr)
                answer = error_response(identify(environ, body), "error", f"{type(error).__name__}: {error}")
            # A request that failed may have changed something all the same: moto does not undo.
            if saves:
                self.snapshot.save()
        return answer

    def _receive(self, environ: Environ, body: bytes) -> Answer:
        """SQS long polling: ask again and again without waiting, and let others have their turn in between."""
        request = json.loads(body)
        deadline = time.monotonic() + float(request.pop("WaitTimeSeconds", 0) or 0)
        once = json.dumps(request | {"WaitTimeSeconds": 0}).encode()
        while True:
            content, status, headers = self._perform(environ, once, saves=False)
            text = b"".join(content)
            if b'"Messages"' in text or not status.startswith("200") or time.monotonic() >= deadline:
                return [text], status, headers
            time.sleep(POLL_SECONDS)


def _drop_connection(environ: Environ) -> None:
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError("dropped on purpose")

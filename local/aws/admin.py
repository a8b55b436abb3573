"""The emulator's own paths under /_trainyard: readiness, faults, the log of requests. From this machine only."""

import json
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs

from local.aws.application import EmulatorApplication, Environ, StartResponse
from local.aws.faults import FaultError

PREFIX = "/_trainyard/"
# moto's own: POST /moto-api/reset empties the emulator.
MOTO_PREFIX = "/moto-api"


class Admin:
    """WSGI middleware in front of the AWS application."""

    def __init__(self, application: EmulatorApplication, identity: str) -> None:
        self._application = application
        self._identity = identity

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if not path.startswith((PREFIX, MOTO_PREFIX)):
            return self._application(environ, start_response)
        if not ip_address(environ.get("REMOTE_ADDR", "0.0.0.0")).is_loopback:
            return _reply(start_response, 403, {"error": "these paths answer on loopback only"})
        if path.startswith(MOTO_PREFIX):
            return self._application(environ, start_response)
        try:
            status, answer = self._route(environ["REQUEST_METHOD"], path.removeprefix(PREFIX), environ)
        except (FaultError, ValueError, TypeError) as error:
            status, answer = 400, {"error": str(error)}
        return _reply(start_response, status, answer)

    def _route(self, method: str, name: str, environ: Environ) -> tuple[int, Any]:
        if name == "health":
            return 200, self._health()
        if name == "faults":
            return self._faults(method, environ)
        if name == "requests":
            if method == "DELETE":
                self._application.log.clear()
                return 200, {}
            query = {key: values[0] for key, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
            return 200, self._application.log.listed(service=query.get("service"), after=int(query.get("after", 0)))
        return 404, {"error": f"{name}: unknown path, there are health, faults, requests"}

    def _health(self) -> dict[str, Any]:
        return {"ready": True, "identity": self._identity, "problem": self._application.snapshot.problem}

    def _faults(self, method: str, environ: Environ) -> tuple[int, Any]:
        faults = self._application.faults
        if method == "DELETE":
            faults.replace([], None)
        elif method in ("POST", "PUT"):
            given = json.loads(environ["wsgi.input"].read())
            faults.replace(given["faults"] if isinstance(given, dict) else given, given.get("seed") if isinstance(given, dict) else None)
        return 200, faults.listed()


def _reply(start_response: StartResponse, status: int, answer: Any) -> Iterable[bytes]:
    body = json.dumps(answer).encode()
    start_response(f"{status} {'OK' if status == 200 else 'Error'}", [("Content-Type", "application/json")])
    return [body]

"""A small client of the Kubernetes API: JSON over HTTPS with the standard library, quick to import and enough for set-up work."""

import base64
import http.client
import json
import os
import ssl
import tempfile
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from local.errors import LocalStackError

Json = dict[str, Any]


class ApiError(LocalStackError):
    """The API server refused a request, or there is none. `status` is the HTTP status, 0 where nothing answered."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class KubernetesApi:
    """One API server, reached as a kubeconfig with client certificates or a token says."""

    def __init__(self, server: str, context: ssl.SSLContext, *, token: str = "", timeout_seconds: float = 30.0) -> None:
        url = urllib.parse.urlsplit(server)
        self._address = (url.hostname or "", url.port or 443)
        self._context = context
        self._token = token
        self._timeout = timeout_seconds

    @classmethod
    def from_kubeconfig(cls, path: Path, *, timeout_seconds: float = 30.0) -> "KubernetesApi":
        """A client of the current context.

        Raises:
            LocalStackError: the file is missing, or signs in by means this client has not (plug-ins, passwords).
        """
        try:
            config = yaml.safe_load(path.read_text())
            context = _named(config["contexts"], config["current-context"])["context"]
            cluster = _named(config["clusters"], context["cluster"])["cluster"]
            user = _named(config["users"], context["user"])["user"]
        except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
            raise LocalStackError(f"kubeconfig {path} cannot be read: {error!r}") from error
        if not (user.get("client-certificate-data") or user.get("token")):
            raise LocalStackError(f"kubeconfig {path}: the user has neither client-certificate-data nor token, the two ways known here")
        authority = _decode(cluster.get("certificate-authority-data", ""))
        tls = ssl.create_default_context(cadata=authority or None)
        if user.get("client-certificate-data"):
            _load_client(tls, user)
        return cls(cluster["server"], tls, token=user.get("token", ""), timeout_seconds=timeout_seconds)

    def get(self, path: str) -> Json:
        """Raises ApiError (status 404 where there is no such object)."""
        return self.request("GET", path)

    def apply(self, path: str, body: Json) -> Json:
        """Server-side apply: create the object or set the given fields of it. Raises ApiError."""
        query = "?fieldManager=trainyard&force=true"
        return self.request("PATCH", path + query, body, content_type="application/apply-patch+yaml")

    def merge(self, path: str, body: Json) -> Json:
        """JSON merge patch: None removes a field. Raises ApiError."""
        return self.request("PATCH", path, body, content_type="application/merge-patch+json")

    def create(self, path: str, body: Json) -> Json:
        """Raises ApiError (status 409 where it exists)."""
        return self.request("POST", path, body)

    def delete(self, path: str) -> None:
        """Delete an object or a collection; one that is gone is no error. Raises ApiError."""
        try:
            self.request("DELETE", path)
        except ApiError as error:
            if error.status != 404:
                raise

    def is_ready(self) -> bool:
        """True where the API server says that it serves."""
        try:
            self.request("GET", "/readyz")
        except ApiError:
            return False
        return True

    def request(self, method: str, path: str, body: Json | None = None, *, content_type: str = "application/json") -> Json:
        """One request.

        Raises:
            ApiError: no answer, or one that is not 2xx.
        """
        headers: Mapping[str, str] = {"Accept": "application/json", "Content-Type": content_type}
        if self._token:
            headers = {**headers, "Authorization": f"Bearer {self._token}"}
        connection = http.client.HTTPSConnection(*self._address, context=self._context, timeout=self._timeout)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, dict(headers))
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(f"the API server at {':'.join(map(str, self._address))} does not answer: {error}", status=0) from error
        finally:
            connection.close()
        if response.status >= 300:
            raise ApiError(f"{method} {path}: {response.status} {_message(text)}", status=response.status)
        return json.loads(text) if text.startswith("{") else {"text": text}


def _named(items: list[Json], name: str) -> Json:
    for item in items:
        if item["name"] == name:
            return item
    raise KeyError(name)


def _decode(text: str) -> str:
    return base64.b64decode(text).decode()


def _load_client(tls: ssl.SSLContext, user: Json) -> None:
    # The ssl module reads certificates from files only.
    handle, name = tempfile.mkstemp()
    try:
        with os.fdopen(handle, "w") as file:
            file.write(_decode(user["client-certificate-data"]) + _decode(user["client-key-data"]))
        tls.load_cert_chain(name)
    finally:
        Path(name).unlink()


def _message(text: str) -> str:
    try:
        return json.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        return text.strip()[:300]

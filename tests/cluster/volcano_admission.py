"""Volcano's own admission beside the test's API server: what its webhooks refuse of a job beyond its definition."""

import base64
import http.client
import ssl
import subprocess
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.api_server import ApiServer, free_port, program, until

_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
# The manager looks for its registrations under these names.
_NAME = "volcano-admission-service-jobs-{}"


@contextmanager
def volcano_admission(server: ApiServer, manager: Path, queues: Iterable[str]) -> Generator[None]:
    """Run the manager for jobs until the block ends. The server must serve jobs and queues; `queues` are made and opened."""
    for name in queues:
        _open(server, name)
    port, folder = free_port(), server.folder
    certificate, key = folder / "webhook.crt", folder / "webhook.key"
    _certificate(certificate, key)
    for kind, verb in (("Mutating", "mutate"), ("Validating", "validate")):
        _register(server, kind, verb, port, certificate)
    flags = [
        *("--kubeconfig", server.kubeconfig(), "--listen-address", "127.0.0.1", "--port", port),
        *("--tls-cert-file", certificate, "--tls-private-key-file", key, "--ca-cert-file", certificate),
        *("--webhook-url", f"https://127.0.0.1:{port}", "--enabled-admission", "/jobs/mutate,/jobs/validate"),
    ]
    log = folder / "webhook.log"
    with program([manager, *flags], log):
        until(lambda: _answers(port), f"Volcano's admission ({log})")
        yield


def _open(server: ApiServer, name: str) -> None:
    """A controller sets a queue's state; none runs here."""
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}
    status, made = server.request("POST", _QUEUES, queue)
    assert status == 201, made
    status, answer = server.request("PUT", f"{_QUEUES}/{name}/status", {**made, "status": {"state": "Open", "allocated": {}}})
    assert status == 200, answer


def _certificate(certificate: Path, key: Path) -> None:
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    extra = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*words, *extra], check=True, capture_output=True)


def _register(server: ApiServer, kind: str, verb: str, port: int, certificate: Path) -> None:
    rule = {"apiGroups": ["batch.volcano.sh"], "apiVersions": ["v1alpha1"], "operations": ["CREATE"], "resources": ["jobs"]}
    url = {"url": f"https://127.0.0.1:{port}/jobs/{verb}", "caBundle": base64.b64encode(certificate.read_bytes()).decode()}
    webhook: dict[str, Any] = {
        "name": f"{verb}job.volcano.sh",
        "admissionReviewVersions": ["v1"],
        "clientConfig": url,
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
    }
    kind = f"{kind}WebhookConfiguration"
    value = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": _NAME.format(verb)},
        "webhooks": [webhook],
    }
    status, answer = server.request("POST", f"{_REGISTRATIONS}/{kind.lower()}s", value)
    assert status == 201, answer


def _answers(port: int) -> bool:
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context(), timeout=5)
    try:
        connection.request("GET", "/jobs/validate")
        return connection.getresponse().status < 500
    except OSError:
        return False
    finally:
        connection.close()

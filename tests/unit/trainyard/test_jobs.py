"""Logs of jobs, whatever the API server gives for a pod."""

import json
from pathlib import Path

import pytest
from kubernetes.client import ApiException

from trainyard.jobs import Cluster

pytestmark = pytest.mark.unit


class Core:
    """Answers for the pods' logs alone."""

    def __init__(self, answer: str | Exception | None) -> None:
        self.answer = answer

    def read_namespaced_pod_log(self, name: str, namespace: str) -> str | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ("step 1\nstep 2\n", ["step 1", "step 2"]),
        ("", []),
        (None, []),
        (ApiException(status=400, reason="Bad Request"), ["(no log: Bad Request)"]),
    ],
    ids=["lines", "empty", "nothing-yet", "no-container"],
)
def test_a_pod_s_log_is_lines_or_the_reason_why_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str | Exception | None, lines: list[str]
) -> None:
    clusters = [{"name": "local", "cluster": {"server": "https://127.0.0.1:6443"}}]
    contexts = [{"name": "local", "context": {"cluster": "local", "user": "local"}}]
    kubeconfig = {"current-context": "local", "clusters": clusters, "contexts": contexts, "users": [{"name": "local", "user": {}}]}
    (tmp_path / "config").write_text(json.dumps(kubeconfig))
    jobs = Cluster(tmp_path / "config", "training")
    monkeypatch.setattr(jobs, "core", Core(answer))
    monkeypatch.setattr(jobs, "pods", lambda job: [{"status": {"phase": "Running"}, "metadata": {"name": "trainer-0"}}])
    assert list(jobs.logs("trainer")) == ["== trainer-0 (Running)", *lines]

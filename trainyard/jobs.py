"""Training jobs on the cluster: where they stand, what they say, what their losses were."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from infra import labels
from local.errors import LocalStackError

_POLL_SECONDS = 1.0
_MPI = ("kubeflow.org", "v2beta1", "mpijobs")
_VOLCANO = ("batch.volcano.sh", "v1alpha1", "jobs")
_DONE = {"Succeeded", "Completed"}
_FAILED = {"Failed", "Aborted", "Terminated"}


@dataclass(frozen=True, kw_only=True)
class Job:
    """One training job as the cluster knows it."""

    name: str
    kind: str
    phase: str

    @property
    def done(self) -> bool:
        """Whether it trained to its end."""
        return self.phase in _DONE

    @property
    def failed(self) -> bool:
        """Whether it ended without having trained to its end."""
        return self.phase in _FAILED


class Cluster:
    """The jobs of one namespace."""

    def __init__(self, kubeconfig: str | Path, namespace: str) -> None:
        self.namespace = namespace
        self.api = config.new_client_from_config(config_file=str(kubeconfig))
        self.core = client.CoreV1Api(self.api)
        self.objects = client.CustomObjectsApi(self.api)

    def jobs(self) -> list[Job]:
        """All MPIJobs and Volcano jobs, by name. A kind whose CRD is not installed has none."""
        found = [*self._list("MPIJob", _MPI, _mpi_phase), *self._list("Volcano job", _VOLCANO, _volcano_phase)]
        return sorted(found, key=lambda job: job.name)

    def job(self, name: str) -> Job:
        """One job. Raises LocalStackError naming those that exist."""
        jobs = self.jobs()
        for job in jobs:
            if job.name == name or run_name(job.name) == name:
                return job
        known = ", ".join(job.name for job in jobs) or "none"
        raise LocalStackError(f"JOB={name or '(empty)'}: no such job in namespace {self.namespace}; there are: {known}")

    def wait(self, names: list[str], *, timeout_seconds: float, on_change: Callable[[list[Job]], None]) -> list[Job]:
        """Wait until all jobs have ended. Raises LocalStackError with a failed job's last words, or after the timeout."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            jobs = [job for job in self.jobs() if job.name in names]
            on_change(jobs)
            for job in jobs:
                if job.failed:
                    raise LocalStackError(f"job {job.name} ended as {job.phase}; its last lines:\n{self.tail(job.name)}")
            if len(jobs) == len(names) and all(job.done for job in jobs):
                return jobs
            if time.monotonic() > deadline:
                states = ", ".join(f"{job.name}: {job.phase}" for job in jobs) or "no job was found"
                raise LocalStackError(
                    f"jobs did not end within {timeout_seconds:.0f} s ({states}); `make logs JOB=NAME` shows what they do"
                )
            time.sleep(_POLL_SECONDS)

    def pods(self, job: str) -> list[dict[str, Any]]:
        """The job's pods as the API gives them, the one that prints the training log first."""
        found = self.core.list_namespaced_pod(self.namespace, label_selector=f"{labels.JOB_NAME}={run_name(job)}")
        newest_first = sorted(
            self.api.sanitize_for_serialization(found)["items"], key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True
        )
        return sorted(newest_first, key=_log_order)

    def logs(self, job: str) -> Iterator[str]:
        """Log lines of the pod that prints the training log, then of every pod that failed."""
        pods = self.pods(job)
        for index, pod in enumerate(pods):
            phase, name = pod["status"]["phase"], pod["metadata"]["name"]
            if index == 0 or phase == "Failed":
                yield f"== {name} ({phase})"
                yield from self._pod_log(name)

    def tail(self, job: str, lines: int = 15) -> str:
        """The last log lines of the job."""
        return "\n".join(list(self.logs(job))[-lines:])

    def delete_pod(self, name: str) -> None:
        """Delete one pod, as a drained node would."""
        self.core.delete_namespaced_pod(name, self.namespace)

    def _pod_log(self, pod: str) -> list[str]:
        try:
            # The client gives None for a log that has no line yet.
            text: str | None = self.core.read_namespaced_pod_log(pod, self.namespace)
        except ApiException as error:
            return [f"(no log: {error.reason})"]
        return text.splitlines() if text else []

    def _objects(self, group: str, version: str, plural: str) -> list[dict[str, Any]]:
        found: Any = self.objects.list_namespaced_custom_object(group, version, self.namespace, plural)
        return found["items"]

    def _list(self, kind: str, resource: tuple[str, str, str], phase: Callable[[dict[str, Any]], str]) -> list[Job]:
        group, version, plural = resource
        try:
            items = self._objects(group, version, plural)
        except ApiException as error:
            if error.status == 404:
                return []
            raise
        return [Job(name=item["metadata"]["name"], kind=kind, phase=phase(item)) for item in items]


def run_name(job: str) -> str:
    """A job's name without the hash that tells one version of it from the next."""
    stem, _, suffix = job.rpartition("-")
    return stem if stem and len(suffix) == 8 and all(char in "0123456789abcdef" for char in suffix) else job


def _mpi_phase(job: dict[str, Any]) -> str:
    conditions = (job.get("status") or {}).get("conditions") or []
    current = [condition["type"] for condition in conditions if condition.get("status") == "True"]
    return current[-1] if current else "Pending"


def _volcano_phase(job: dict[str, Any]) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"


def _log_order(pod: dict[str, Any]) -> tuple[bool, bool]:
    """Launchers first, then workers of index 0. The order of pods that are alike stays."""
    name, role = pod["metadata"]["name"], pod["metadata"].get("labels", {}).get(labels.JOB_ROLE)
    return (role != "launcher", not name.endswith("-0"))

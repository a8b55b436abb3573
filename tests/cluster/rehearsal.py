"""A local stack of its own for the tests of the whole platform, and what they do to it from outside."""

import io
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from rich.console import Console

from local.node.api import KubernetesApi
from local.progress import Progress
from local.stack import LocalStack
from trainyard.session import Session, log_file, open_session


class Rehearsal:
    """Commands as a user gives them, on a state folder that is nobody else's."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.told = io.StringIO()
        self.console = Console(file=self.told, width=160, highlight=False)

    def session(self, overrides: Mapping[str, Any] | None = None) -> Session:
        """A session on the running stack, with settings of the platform on top of the committed ones."""
        return open_session("local", Progress(log_file("rehearsal"), total=1), start=True, overrides=overrides)

    def api(self) -> KubernetesApi:
        """The API server of the stack's node."""
        return KubernetesApi.from_kubeconfig(LocalStack().kubeconfig)

    def aws(self, service: str) -> Any:
        """A client of the emulator, as someone beside Pulumi would use."""
        endpoint = LocalStack().emulator.endpoint
        return boto3.client(service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")

    def processes(self) -> list[str]:
        """Command lines of all processes that belong to this state folder."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                environment, words = path.read_bytes(), path.with_name("cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if path.parent.name != str(os.getpid()) and str(self.state).encode() in environment + words:
                found.append(words.replace(b"\0", b" ").decode(errors="replace").strip())
        return found


@contextmanager
def rehearsal() -> Generator[Rehearsal]:
    """A state folder with nothing running in it before, and nothing after, whatever the tests did."""
    with tempfile.TemporaryDirectory(prefix="ty-") as folder:
        before = os.environ.get("TRAINYARD_STATE")
        os.environ["TRAINYARD_STATE"] = folder
        try:
            yield Rehearsal(Path(folder))
        finally:
            LocalStack().destroy()
            if before is None:
                del os.environ["TRAINYARD_STATE"]
            else:
                os.environ["TRAINYARD_STATE"] = before

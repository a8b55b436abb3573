"""Starting, finding and stopping the AWS emulator of one copy of the repository."""

import ipaddress
import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.errors import LocalStackError
from local.paths import REPOSITORY
from local.process import Daemon, find_daemon, start_daemon
from local.progress import Progress

ACCOUNT = "123456789012"
DEFAULT_REGION = "us-east-1"
LOOPBACK = "127.0.0.1"
READY_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where the emulator answers: `url` on loopback, `node_url` on the address of the stack's own link, if it has one."""

    url: str
    node_url: str | None
    account: str
    region: str

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which AWS SDKs and tools talk to the emulator."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@dataclass(frozen=True, kw_only=True)
class Status:
    """What `status` found. `problem` says why the kept state can't be relied on, with the remedy; None if it can."""

    running: bool
    pid: int | None
    url: str | None
    node_url: str | None
    problem: str | None


class Emulator:
    """The emulator whose state is in `state`. Every method may be called from any process of the same user."""

    def __init__(self, state: Path, *, region: str = DEFAULT_REGION) -> None:
        self.state = state
        self.region = region
        self.log = state / "emulator.log"
        self._pid_file = state / "emulator.pid"
        self._settings_file = state / "emulator.json"

    @property
    def endpoint(self) -> str:
        """The URL on loopback. The port is chosen once and kept, so that it never changes under a stack's state."""
        return f"http://{LOOPBACK}:{self._settings()['port']}"

    def start(self, progress: Progress | None = None, also_bind: str | None = None) -> Endpoint:
        """Start it unless it runs with the same addresses already; wait until it answers.

        Args:
            progress: shows the start as a step.
            also_bind: a private address of a local interface (the stack's own link to its node) to answer on as well. Without one, a
                running emulator keeps the address it has.

        Raises:
            LocalStackError: the address is not allowed, the saved state is not usable, or the process did not come up.
        """
        if also_bind is not None:
            check_address(also_bind)
        settings = self._settings()
        same = also_bind in (None, settings.get("also_bind")) and settings.get("region") == self.region
        if self._daemon() and same:
            self._check_health()
            return self._endpoint(settings)
        self.stop()
        settings |= {"also_bind": also_bind, "region": self.region}
        self._write_settings(settings)
        if progress is None:
            self._launch(settings)
        else:
            with progress.step("start the AWS emulator"):
                self._launch(settings)
        return self._endpoint(settings)

    def stop(self) -> None:
        """End it, if it runs. Its state stays."""
        daemon = self._daemon()
        if daemon:
            daemon.stop()
        self._pid_file.unlink(missing_ok=True)

    def status(self) -> Status:
        """Whether it runs, where, and whether its state can be relied on."""
        daemon = self._daemon()
        settings = self._read_settings() or {}
        address = settings.get("also_bind")
        return Status(
            running=daemon is not None,
            pid=daemon.pid if daemon else None,
            url=f"http://{LOOPBACK}:{settings['port']}" if daemon else None,
            node_url=f"http://{address}:{settings['port']}" if daemon and address else None,
            problem=self._problem(running=daemon is not None),
        )

    def forget(self) -> None:
        """Stop it and delete its state: every emulated resource is gone. The port stays."""
        self.stop()
        for file in (*self.state.glob("bodies/*"), *self.state.glob("state.*"), self.state / "unsaved.json", self.state / "refused.txt"):
            file.unlink(missing_ok=True)

    def _daemon(self) -> Daemon | None:
        return find_daemon(self._pid_file)

    def _endpoint(self, settings: dict[str, Any]) -> Endpoint:
        address, port = settings.get("also_bind"), settings["port"]
        node_url = f"http://{address}:{port}" if address else None
        return Endpoint(url=f"http://{LOOPBACK}:{port}", node_url=node_url, account=ACCOUNT, region=self.region)

    def _read_settings(self) -> dict[str, Any] | None:
        try:
            return json.loads(self._settings_file.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _settings(self) -> dict[str, Any]:
        settings = self._read_settings()
        if settings is None:
            settings = {"port": _free_port()}
            self._write_settings(settings)
        return settings

    def _write_settings(self, settings: dict[str, Any]) -> None:
        self.state.mkdir(parents=True, exist_ok=True)
        partial = self._settings_file.with_suffix(".partial")
        partial.write_text(json.dumps(settings))
        partial.rename(self._settings_file)

    def _launch(self, settings: dict[str, Any]) -> None:
        (self.state / "refused.txt").unlink(missing_ok=True)
        addresses = [LOOPBACK, *([settings["also_bind"]] if settings["also_bind"] else [])]
        argv = [sys.executable, "-m", "local.aws.server", "--state", self.state, "--port", str(settings["port"]), "--region", self.region]
        for address in addresses:
            argv += ["--bind", address]
        # Credentials or an endpoint of the user's own must not reach the emulator's inner calls.
        env = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MOTO_"))}
        daemon = start_daemon(argv, log=self.log, pid_file=self._pid_file, env=env, cwd=REPOSITORY)
        self._wait(daemon)

    def _wait(self, daemon: Daemon) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if not daemon.alive:
                raise self._failure()
            health = self._health()
            if health:
                if health["identity"] != str(self.state):
                    daemon.stop()
                    raise LocalStackError(
                        f"port {self._settings()['port']} of the AWS emulator is taken by another copy; "
                        f"delete {self._settings_file} to choose a new one"
                    )
                return
            time.sleep(0.1)
        daemon.stop()
        raise LocalStackError(f"the AWS emulator did not answer within {READY_SECONDS:.0f} s", log=self.log)

    def _failure(self) -> LocalStackError:
        problem = self._problem(running=False)
        if problem:
            return LocalStackError(problem, log=self.log)
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-8:])
        if "in use" in tail:
            return LocalStackError(
                f"the AWS emulator's port {self._settings()['port']} is taken by another program: end that one, or delete "
                f"{self._settings_file} to let a new port be chosen",
                log=self.log,
            )
        return LocalStackError(f"the AWS emulator ended at its start:\n{tail}", log=self.log)

    def _health(self) -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(f"{self.endpoint}/_trainyard/health", timeout=15) as answer:
                return json.loads(answer.read())
        except (urllib.error.URLError, OSError, ValueError):
            return None

    def _check_health(self) -> None:
        problem = self._problem(running=True)
        if problem:
            raise LocalStackError(problem, log=self.log)

    def _problem(self, *, running: bool) -> str | None:
        found = None
        if running:
            health = self._health()
            found = health["problem"] if health else "it does not answer"
        elif (self.state / "refused.txt").exists():
            found = (self.state / "refused.txt").read_text()
        elif (self.state / "unsaved.json").exists():
            found = json.loads((self.state / "unsaved.json").read_text())["problem"]
        if not found:
            return None
        return (
            f"the AWS emulator's state can't be relied on: {found}. A preview would compare with resources that are not there. "
            "Start over with an empty one: `make clean`, then `make up`"
        )


def check_address(address: str) -> None:
    """Refuse an address that other machines could reach, or that is not ours.

    Raises:
        LocalStackError: not an IP address, not private, or of no local interface.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError as error:
        raise LocalStackError(f"also_bind: {address!r} is not an IP address") from error
    if parsed.is_unspecified or not parsed.is_private:
        raise LocalStackError(
            f"also_bind: {address} is not a private address; the emulator never listens where other machines can reach it"
        )
    with socket.socket(socket.AF_INET6 if parsed.version == 6 else socket.AF_INET) as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise LocalStackError(f"also_bind: {address} is the address of no local interface; make the link first") from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]

"""Process 1 of a node's pid namespace: it keeps the daemons running, reaps every orphan, and ends them in order."""

import contextlib
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from local.node import layout
from local.node.daemon import SupervisedDaemon
from local.node.spec import SupervisorSpec

WAITED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
"""Signals that the loop waits for; they are blocked otherwise."""

_TICK_SECONDS = 0.1
_IDLE_TICK_SECONDS = 1.0
_TRIM_EVERY_SECONDS = 30.0
_POD_STOP_SECONDS = 2.0


class Init:
    """The loop of process 1."""

    def __init__(self, spec: SupervisorSpec) -> None:
        inside = layout.Layout(layout.STATE)
        self._status_file = inside.status
        self._daemons = {daemon.name: SupervisedDaemon(daemon, inside.log(daemon.name)) for daemon in spec.daemons}
        self._shown = ""

    def run(self) -> None:
        """Keep all daemons running until SIGTERM or SIGINT, then end them and return. `WAITED` is blocked already."""
        _allow_many_files()
        next_trim = 0.0
        while True:
            now = time.monotonic()
            self._step(now)
            if now >= next_trim:
                self._trim_logs()
                next_trim = now + _TRIM_EVERY_SECONDS
            tick = _IDLE_TICK_SECONDS if all(daemon.ready for daemon in self._daemons.values()) else _TICK_SECONDS
            got = signal.sigtimedwait(WAITED, tick)
            if got and got.si_signo != signal.SIGCHLD:
                break
        self._stop()

    def _step(self, now: float) -> None:
        self._reap(now)
        for daemon in self._daemons.values():
            if all(self._daemons[name].was_ready for name in daemon.spec.after):
                daemon.start_if_due(now)
            daemon.probe_if_due(now)
        self._show("running")

    def _reap(self, now: float) -> None:
        by_pid = {daemon.pid: daemon for daemon in self._daemons.values() if daemon.pid}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            # Every other child is an orphan, such as the shim of a pod: reaping it is all there is to do.
            if pid in by_pid:
                by_pid[pid].ended(status, now)

    def _show(self, phase: str) -> None:
        daemons = {name: daemon.as_json() for name, daemon in self._daemons.items()}
        text = json.dumps({"phase": phase, "daemons": daemons}, indent=1)
        if text != self._shown:
            new = self._status_file.with_suffix(".new")
            new.write_text(text)
            new.replace(self._status_file)
            self._shown = text

    def _trim_logs(self) -> None:
        for daemon in self._daemons.values():
            daemon.trim_log()

    def _stop(self) -> None:
        """The kubelet first, so that it starts no pod anew; then pods, then the rest against the order of their start."""
        self._show("stopping")
        order = sorted(self._daemons.values(), key=lambda daemon: daemon.spec.name != "kubelet")
        self._end(order[:1])
        self._signal_pods()
        rest = list(reversed([daemon for daemon in self._daemons.values() if daemon.pid]))
        last = [daemon for daemon in rest if daemon.spec.name in ("etcd", "kube-apiserver")]
        self._end([daemon for daemon in rest if daemon not in last])
        for daemon in last:
            self._end([daemon])
        self._show("stopped")

    def _end(self, daemons: Iterable[SupervisedDaemon]) -> None:
        running = [daemon for daemon in daemons if daemon.pid]
        for daemon in running:
            _kill(daemon.pid, signal.SIGTERM)
        patience = max((daemon.spec.stop_seconds for daemon in running), default=0.0)
        self._wait(lambda: not any(daemon.pid for daemon in running), patience)
        for daemon in running:
            if daemon.pid:
                _kill(daemon.pid, signal.SIGKILL)
        self._wait(lambda: not any(daemon.pid for daemon in running), 2.0)

    def _signal_pods(self) -> None:
        pods = _container_processes()
        for pid in pods:
            _kill(pid, signal.SIGTERM)
        self._wait(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pods), _POD_STOP_SECONDS)

    def _wait(self, done: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self._reap(time.monotonic())
        while not done() and time.monotonic() < deadline:
            signal.sigtimedwait(WAITED, 0.05)
            self._reap(time.monotonic())


def _container_processes() -> list[int]:
    """The first process of every container: those that are process 1 of a pid namespace below ours."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.name != "1" and _innermost_pid(entry) == 1:
                found.append(int(entry.name))
    return found


def _innermost_pid(entry: Path) -> int:
    for line in (entry / "status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return 0


def _kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _allow_many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

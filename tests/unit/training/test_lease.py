"""The run directory's lease: one holder, named to the second, and free again the moment the holder ends, however it ends."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from training import lease as lease_module
from training.lease import Lease, LeaseError

pytestmark = pytest.mark.unit

HOLDER = """
import pathlib, socket, sys, time
if sys.argv[2:]:
    socket.gethostname = lambda: sys.argv[2]
from training.lease import Lease
held = Lease(pathlib.Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_run_is_refused_and_the_first_one_named(tmp_path: Path) -> None:
    lease = Lease(tmp_path)
    with pytest.raises(LeaseError, match=rf"in use by process {os.getpid()} on .* since .*; end that run or choose another"):
        Lease(tmp_path, patience_seconds=0)
    lease.release()
    Lease(tmp_path, patience_seconds=0).release()


def test_a_run_whose_lock_was_given_away_publishes_nothing_more(tmp_path: Path) -> None:
    """A file server that loses sight of a host gives its locks to the next one; the first host may still be running."""
    lease = Lease(tmp_path)
    lease.check()
    (tmp_path / "lease.lock").write_text('{"host": "elsewhere", "pid": 7, "since": "now"}')
    with pytest.raises(LeaseError, match="taken over by process 7 on elsewhere since now; nothing more is written"):
        lease.check()


def test_a_killed_holder_leaves_the_directory_free_at_once(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, cwd=root, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LeaseError, match=f"process {holder.pid} "):
        Lease(tmp_path, patience_seconds=0)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    Lease(tmp_path, patience_seconds=0).release()


def test_a_holder_that_died_on_another_host_is_waited_for_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock goes only when the file server has noticed; here when the process that stands for it ends."""
    monkeypatch.setattr(lease_module, "_PATIENCE_SECONDS", 0.0)
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", HOLDER, str(tmp_path), "node-7.elsewhere"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    timer = threading.Timer(1.0, holder.kill)
    timer.start()
    Lease(tmp_path).release()
    assert holder.wait() == -signal.SIGKILL


def test_a_holder_on_another_host_that_lives_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "_REMOTE_PATIENCE_SECONDS", 0.5)
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", HOLDER, str(tmp_path), "node-7.elsewhere"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LeaseError, match=f"process {holder.pid} on node-7.elsewhere since"):
        Lease(tmp_path)
    holder.kill()
    holder.wait()

"""The scripts that pods run from their ConfigMap: which processes are ranks, and who is asked to stop."""

import socket
import subprocess
import sys
import time

import pytest

from workloads.pod_scripts import drain_ranks, stop_mpirun, wait_for_workers

pytestmark = pytest.mark.unit


def process(proc, pid, parent, *words, name="python3"):
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "cmdline").write_bytes("\0".join([*words, ""]).encode() if words else b"")
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 4194304")


def test_data_loaders_and_other_processes_are_no_ranks(tmp_path):
    trainer = ("python3", "-m", "training.train", "--config", "/etc/trainyard/train.json")
    (tmp_path / "meminfo").write_text("")
    process(tmp_path, 1, 0, "/usr/sbin/sshd", "-De", name="sshd")
    process(tmp_path, 20, 1, "orted", "-mca", "x", name="or ted) S")
    process(tmp_path, 21, 20, *trainer)
    process(tmp_path, 22, 20, *trainer)
    process(tmp_path, 30, 21, *trainer)  # a forked data loader has its parent's command line
    process(tmp_path, 40, 1)  # a zombie has none
    process(tmp_path, 50, 1, "grep", "training.train")
    assert drain_ranks.trainers(tmp_path) == {21: 20, 22: 20, 30: 21}
    assert sorted(drain_ranks.ranks(drain_ranks.trainers(tmp_path))) == [21, 22]


def test_draining_asks_a_rank_to_stop_and_waits_until_it_has(tmp_path):
    code = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(75)); print('up', flush=True); time.sleep(30)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as rank:
        assert rank.stdout
        assert rank.stdout.readline() == b"up\n"
        process(tmp_path, rank.pid, 1, "python3", "-m", "training.train")
        assert drain_ranks.main(0.0, tmp_path) == 1, "a rank that is still there is reported"
        assert rank.wait(10) == 75, "the rank was asked with SIGTERM and left by itself"
    for name in ("cmdline", "stat"):
        (tmp_path / str(rank.pid) / name).unlink()
    assert drain_ranks.main(5.0, tmp_path) == 0


def test_stopping_mpirun_sends_the_signal_that_it_forwards_and_waits():
    code = "import signal, time; signal.signal(signal.SIGUSR1, lambda *_: exit(75)); print('up', flush=True); time.sleep(30)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout
        assert launcher.stdout.readline() == b"up\n"
        # The child stays a zombie until it is waited for, so it is "still there": the hook reports that.
        assert stop_mpirun.main(0.0, launcher.pid) == 1
        assert launcher.wait(10) == 75
    assert stop_mpirun.main(0.0, launcher.pid) == 0, "a launcher that has ended needs no more waiting"


def test_waiting_ends_when_every_worker_answers():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert wait_for_workers.main("127.0.0.1", 2, port, 5.0) == 0


def test_waiting_names_the_worker_that_does_not_answer(capsys, monkeypatch):
    monkeypatch.setattr(wait_for_workers, "POLL_SECONDS", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    start = time.monotonic()
    assert wait_for_workers.main("worker-{}.invalid", 2, port, 0.05) == 1
    assert time.monotonic() - start < 5
    assert "no answer from worker-0.invalid, worker-1.invalid" in capsys.readouterr().err

"""A node's agent before it has a coordinator: a name or port of node 0 that is late is waited for, for so long and no longer."""

import json
import signal
import socket
from collections.abc import Generator
from dataclasses import dataclass, field

import pytest

from training.exit_codes import ExitCode
from training.supervise import agent
from training.supervise.agent import Agent, Node
from training.supervise.ranks import Program

pytestmark = pytest.mark.unit
NODE = Node(
    rank=1,
    nodes=2,
    processes=1,
    master_addr="pretrain-worker-0.pretrain",
    master_port=29500,
    control_port=29501,
    rendezvous_seconds=60,
    shutdown_seconds=30,
)
NO_NAME = socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@dataclass
class Network:
    """Time that passes only while somebody sleeps, and a node 0 that is reached after some failures."""

    failures: list[OSError]
    end: socket.socket
    """What a connection is given."""
    now: float = 100.0
    sleeps: list[float] = field(default_factory=list)
    asked: list[tuple[str, int]] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps.append(seconds)

    def create_connection(self, address: tuple[str, int], timeout: float) -> socket.socket:
        assert timeout
        self.asked.append(address)
        if len(self.asked) <= len(self.failures):
            raise self.failures[len(self.asked) - 1]
        return self.end


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> Generator[tuple[Network, socket.socket]]:
    """The agent's network, and the coordinator's end of its connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    network = Network([], near)
    monkeypatch.setattr(agent, "time", network)
    monkeypatch.setattr(socket, "create_connection", network.create_connection)
    # It would collect what this process has started.
    monkeypatch.setattr(agent.os, "waitpid", lambda *_: (0, 0))
    with near, far:
        yield network, far


def run(*signals: int) -> int:
    one = Agent(NODE, Program("unused", []), None)
    one._signals.extend(signals)
    return one.run()


@pytest.mark.parametrize("failures", [[NO_NAME] * 2, [NO_NAME, ConnectionRefusedError()], [TimeoutError(), NO_NAME]])
def test_a_node_0_that_is_late_is_waited_for(coordinator: tuple[Network, socket.socket], failures: list[OSError]) -> None:
    network, far = coordinator
    network.failures = failures
    far.sendall(json.dumps({"do": "exit", "code": 0, "why": "done", "grace": 0}).encode() + b"\n")
    assert run() == ExitCode.DONE
    assert network.asked == [(NODE.master_addr, NODE.control_port)] * 3
    assert network.sleeps == [0.05, 0.1]
    assert json.loads(far.recv(4096).splitlines()[0])["say"] == "join"


def test_a_node_0_that_never_comes_is_named_before_the_time_is_over(
    coordinator: tuple[Network, socket.socket], capsys: pytest.CaptureFixture[str]
) -> None:
    network, _ = coordinator
    network.failures = [NO_NAME] * 1000
    assert run() == ExitCode.FAILED
    assert 100 + 60 - 2 < network.now <= 100 + 60
    assert max(network.sleeps) == 2
    words = "node 1 cannot reach node 0 at pretrain-worker-0.pretrain:29501 within 60 s: [Errno -2] Name or service not known"
    assert words in capsys.readouterr().err


def test_a_signal_ends_the_wait(coordinator: tuple[Network, socket.socket]) -> None:
    network, _ = coordinator
    assert run(signal.SIGTERM) == ExitCode.RESTART
    assert network.asked == []
